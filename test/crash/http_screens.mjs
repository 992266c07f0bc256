/** What the tabs of a folder were shown, over all its lives, against what its journal says they had to be shown. */
import { Tab } from "./http_tab.mjs";

/** As many as a client is sent when it connects. */
const ITEMS_AT_CONNECT = 100;
const SHOWN_MS_MAX = 15_000;
const UPDATED = "notification/updated";

export class Screens {
  #oracle;
  #tally;
  /** Those that are not compared yet. */
  #tabs = [];
  /** Notifications that somebody asked to acknowledge. */
  #acknowledging = new Set();
  #journalId;

  constructor(oracle, tally) {
    this.#oracle = oracle;
    this.#tally = tally;
  }

  async open({ door, token, user_id, asBrowser }) {
    const tab = await Tab.open({ url: door.url, token, user_id, asBrowser, oracle: this.#oracle });
    this.#tally.sockets += 1;
    this.#tabs.push(tab);
    return tab;
  }

  acknowledging(id) {
    this.#acknowledging.add(id);
  }

  /** What waited at `seq` waits on the screen of whoever connects after it: the newest, as many as are sent. */
  async showAgain(tab, seq, views) {
    const waits = [...views.values()].filter((view) => view.user_id === tab.user_id && isShown(view) && isLive(view));
    const missing = () => {
      const oldest = waits.findLastIndex(({ id }) => tab.frames.some((frame) => frame.id === id && frame.seq <= seq));
      const wanted = tab.ids.size < ITEMS_AT_CONNECT ? waits : waits.slice(0, oldest + 1);
      return wanted.filter(({ id }) => !tab.ids.has(id));
    };
    let late;
    const limit = new Promise((resolve) => {
      late = setTimeout(resolve, SHOWN_MS_MAX);
    });
    await Promise.race([tab.until(() => missing().length === 0), tab.closed, limit]);
    clearTimeout(late);
    for (const { id, state } of missing())
      this.#oracle.problem(`${id} is ${state} and was not shown to ${tab.user_id}, who came back`);
    this.#tally.shownAgain += tab.frames.filter((frame) => frame.seq <= seq).length;
  }

  /** Takes the journal from its beginning, entry by entry, and then judges what the tabs that are closed were shown. */
  comparison() {
    const replay = new Replay();
    return {
      onEntry: (entry) => {
        replay.take(entry);
        if (entry.type !== "delivery" || entry.operation !== "ack") return;
        for (const { notification_id: id } of entry.changes)
          if (!this.#acknowledging.has(id)) this.#oracle.problem(`${id} is acknowledged, and nobody did that`);
      },
      finish: (floor) => {
        const closed = this.#tabs.filter((tab) => tab.isClosed);
        for (const tab of closed) this.#compare(tab, replay.pushes.get(tab.user_id) ?? new Map(), floor);
        this.#tabs = this.#tabs.filter((tab) => !closed.includes(tab));
      },
    };
  }

  #compare(tab, pushes, floor) {
    const who = tab.user_id;
    const had = new Set();
    const isGone = (seq) => this.#oracle.pruned && seq < floor;
    // What comes at first is where things stand; from the first update on it is each step.
    const stepsFrom = tab.frames.find(({ kind }) => kind === UPDATED)?.seq ?? Number.POSITIVE_INFINITY;
    const last = tab.frames.at(-1)?.seq ?? 0;
    for (const frame of tab.frames) {
      const { seq, id } = frame;
      const key = keyOf(frame);
      if (had.has(key)) this.#oracle.problem(`${who} was shown ${id} at ${seq} twice by one connection`);
      had.add(key);
      const push = pushes.get(key);
      if (push === undefined) {
        if (!isGone(seq)) this.#oracle.problem(`${who} was shown ${id} at ${seq}, which is not in the journal`);
        continue;
      }
      const fields = seq > stepsFrom ? ["kind", "state", "revision", "count"] : ["state", "revision", "count"];
      for (const field of fields)
        if (frame[field] !== push[field])
          this.#oracle.problem(`${who} was shown ${id} at ${seq} with ${field} ${frame[field]}, not ${push[field]}`);
    }
    for (const [key, { seq, id, kind }] of pushes)
      if (seq > stepsFrom && seq < last && !had.has(key) && !isGone(seq))
        this.#oracle.problem(`${who} was shown seq ${stepsFrom} to ${last} and not ${id} at ${seq} (${kind})`);
    this.#tally.frames += tab.frames.length;
    this.#journalId ??= tab.journalId;
    if (tab.journalId !== undefined && tab.journalId !== this.#journalId)
      this.#oracle.problem(`the journal ${this.#journalId} became ${tab.journalId}`);
  }
}

/** Who is to be shown what, told from the journal alone. */
class Replay {
  /** By user and place: a notification as it stood after an entry that changed it on a screen. */
  pushes = new Map();
  #items = new Map();

  take({ seq, user_id, changes }) {
    const arrived = new Map();
    for (const { command, notification_id: id, notification, path, set } of changes) {
      if (command === "create")
        this.#items.set(id, { effective: notification.axes, state: "PENDING", revision: 1, count: 1 });
      const item = this.#items.get(id);
      // Retention has removed how it began.
      if (item === undefined) continue;
      // On no screen before: it is new, its batch was open until now, or an agent had it.
      const isNew = command === "create" || command === "escalate" || item.state === "PENDING";
      item.state = path.at(-1) ?? item.state;
      for (const field of ["effective", "revision", "count"]) item[field] = set[field] ?? item[field];
      arrived.set(id, arrived.get(id) || isNew);
    }
    for (const [id, came] of arrived) {
      const { effective, ...stands } = this.#items.get(id);
      if (!isShown({ effective }) || stands.state === "PENDING" || (came && stands.state === "SUPPRESSED")) continue;
      const push = { seq, id, kind: came ? "notification/created" : UPDATED, ...stands };
      const ofUser = this.pushes.get(user_id) ?? new Map();
      this.pushes.set(user_id, ofUser.set(keyOf(push), push));
    }
  }
}

/** For the user, and by the system. */
function isShown({ effective }) {
  return effective.target === "user" && effective.handler === "system";
}

function isLive({ state }) {
  return state === "DISPATCHED" || state === "ESCALATED";
}

function keyOf({ seq, id }) {
  return `${seq} ${id}`;
}
