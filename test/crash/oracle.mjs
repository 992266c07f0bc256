/**
 * What a folder's processes were heard to promise, over all their lives, and whether the folder keeps it. Nothing
 * here looks into the database: promises are checked through the door by which they came, which is a *plane*:
 *
 * - `emit(event)`, `list(filter)`, `facts()`, as the library has them
 * - `explain(ids)`: an explanation or a miss for each
 * - `journal()`: every entry, from the oldest that there is
 * - `settings(user_id)`: what that user has switched off
 */
import { parseSubject } from "../../dist/domain/subject.js";
import { isMiss } from "../../dist/index.js";
import { Accounting } from "./accounting.mjs";

const SETTLED = new Set(["DELIVERED", "FAILED", "SUPPRESSED"]);
const PAGE = 1_000;
const EXPLAINED = 12;
const RESENT = 25;
const PROBLEMS_MAX = 50;

export class Oracle {
  /** Answers by operation. @type {Record<string, number>} */
  answers = {};
  /** @type {string[]} */
  problems = [];
  /** By the word that its payload carries: what was asked, and what was answered. */
  #tokens = new Map();
  /** Asked for and not answered, and how often; after a kill, nobody knows whether they were stored. */
  #open = new Map();
  /** The latest promise about each notification. */
  #notifications = new Map();
  #closedThreads = new Set();
  #observations = new Set();
  /** Dead letter to what it was redriven as. */
  #redriven = new Map();
  #backups = new Map();
  /** By user: what was switched off by the newest answer, and by what was asked and not answered. */
  #choices = new Map();
  /** What an answer said became of an event: by event, subscriber and outcome. */
  #fates = [];
  /** Batches that were closed and worded, as of the newest look at the journal. */
  closed = 0;
  /** And what was folded into a summary, since too much waited. */
  folded = 0;
  /** Events in the order in which they were answered. */
  #events = [];
  #pruned = false;

  get eventsAnswered() {
    return this.#events.length;
  }

  get notificationsAnswered() {
    return this.#notifications.size;
  }

  get pruned() {
    return this.#pruned;
  }

  problem(text) {
    if (this.problems.length < PROBLEMS_MAX) this.problems.push(text);
  }

  /** One line about a life: what it was asked for, what it answered, what it showed. */
  take(line) {
    switch (line.tell) {
      case "intent":
        if (!this.#tokens.has(line.token)) this.#tokens.set(line.token, { input: line.event });
        this.#open.set(line.token, (this.#open.get(line.token) ?? 0) + 1);
        return;
      case "answer":
        this.#count(line);
        this.#takeAnswer(line);
        return;
      case "choosing":
        this.#choices.set(line.user_id, { answered: this.#choices.get(line.user_id)?.answered, asked: line.choice });
        return;
      case "pruning":
        this.#pruned = true;
        return;
      case "backing_up":
        this.#backups.set(line.file, { promised: this.#events.length, answered: false, checked: false });
        return;
      case "problem":
        this.problem(`the worker's ${line.what} failed: ${line.name}: ${line.message}`);
        return;
      case "shown":
        this.#promise(line.told, line.seq);
    }
  }

  /** An answer that says that nothing was changed promises nothing. */
  #count({ operation, told, misses }) {
    const name = misses > 0 && told.length === 0 ? "misses" : operation;
    this.answers[name] = (this.answers[name] ?? 0) + 1;
  }

  #takeAnswer(line) {
    const fresh = line.outcome !== "duplicate";
    for (const one of line.told) this.#promise(one, fresh ? (line.seq ?? 0) : 0);
    if (line.token !== undefined) this.#takeEvent(line);
    if (line.operation === "settings") this.#choices.set(line.user_id, { answered: line.choice });
    if (fresh)
      for (const [subscriber, outcome, id] of line.matches ?? [])
        this.#fates.push([line.event, subscriber, outcome, id]);
    if (line.operation === "closeThread") this.#closedThreads.add(line.thread);
    if (line.operation === "observe") this.#observations.add(observation(line.thread, parseSubject(line.subject)));
    if (line.redriven !== undefined) this.#redriven.set(line.redriven, line.told[0][0]);
    if (line.operation === "backup") this.#backups.get(line.file).answered = true;
  }

  /** However often and at whatever moment it is sent: one event, which was new once. */
  #takeEvent({ token, event, seq, outcome }) {
    const known = this.#tokens.get(token);
    const open = this.#open.get(token) ?? 0;
    if (open > 1) this.#open.set(token, open - 1);
    else this.#open.delete(token);
    const before = known.id;
    const isNew = event !== undefined && outcome !== "duplicate";
    // Retention forgets a producer's id with its event.
    if (before !== undefined && !this.#pruned && (event !== before || (isNew && known.wasNew)))
      this.problem(`${token}, answered as ${before}, was sent again and answered ${outcome} ${event}`);
    known.wasNew ||= isNew;
    if (event !== undefined && event !== before) {
      known.id = event;
      this.#events.push({ id: event, seq, token });
    }
    known.seq = seq;
  }

  #promise([id, state, revision, epoch, count], seq) {
    const before = this.#notifications.get(id);
    const settled = SETTLED.has(state) ? state : undefined;
    if (before === undefined) {
      this.#notifications.set(id, { revision, epoch, count, settled, seq });
      return;
    }
    if (before.settled !== undefined && settled !== undefined && before.settled !== settled)
      this.problem(`notification ${id} was answered ${before.settled}, and later ${settled}`);
    before.revision = Math.max(before.revision, revision);
    before.epoch = Math.max(before.epoch, epoch);
    before.count = Math.max(before.count, count);
    before.seq = Math.max(before.seq, seq);
    before.settled ??= settled;
  }

  /**
   * Reopened for writing: producers send again, the store goes on, and all that was ever promised is looked for; the
   * newest events, `explained` of them, each by its own id. `onEntry` sees the journal. Answers the whole ledger.
   */
  async examine(plane, { life, explained = EXPLAINED, onEntry = () => {} }) {
    await this.#sendAgain(plane);
    const token = `${life}.probe`;
    const event = { type: "cli.probe", source: "probe", payload: { token } };
    this.take({ tell: "intent", token });
    const { id, seq, outcome } = await plane.emit(event);
    this.take({ tell: "answer", operation: "probe", token, event: id, seq, outcome, told: [] });
    if (outcome !== "accepted") this.problem(`the store went on with an emit answered ${outcome}`);
    const { floor_seq } = await plane.facts();
    const accounting = new Accounting((text) => this.problem(text));
    const made = await this.#compareJournal(plane, {
      lastSeq: seq,
      floor: floor_seq,
      onEntry: (entry) => {
        onEntry(entry);
        if (!this.#pruned) accounting.take(entry);
      },
    });
    const views = await this.#compareLedger(plane, { made, floor: floor_seq });
    if (!this.#pruned) this.#compareFates(accounting, views);
    await this.#compareChoices(plane, accounting);
    await this.#explain(plane, explained, floor_seq);
    return views;
  }

  /** Every event that was answered is in one place, and in the one that was answered. */
  #compareFates(accounting, views) {
    for (const fate of this.#fates) accounting.compareAnswer(...fate);
    accounting.compareViews(views);
    this.closed = accounting.closed;
    this.folded = accounting.folded;
  }

  async #compareChoices(plane, accounting) {
    for (const [user_id, { answered = [], asked }] of this.#choices) {
      const { disabled_subscribers: found } = await plane.settings(user_id);
      const isSo = (choice) => choice !== undefined && found.toSorted().join() === choice.toSorted().join();
      if (!isSo(answered) && !isSo(asked))
        this.problem(`${user_id} has switched off ${answered.join()} (or ${asked?.join()}), and not ${found.join()}`);
      if (!this.#pruned && !isSo([...accounting.choiceOf(user_id)]))
        this.problem(`${user_id} has switched off ${found.join()}, which is not in the journal`);
      this.#choices.set(user_id, { answered: found });
    }
  }

  /** What the dead processes had in hand, and some of what they had answered. */
  async #sendAgain(plane) {
    const { floor_seq } = await plane.facts();
    const withIds = [...this.#tokens].filter(([, known]) => known.input !== undefined);
    const unanswered = withIds.filter(([token]) => this.#open.has(token));
    const answered = withIds
      .filter(([token, known]) => known.id !== undefined && !this.#open.has(token))
      .slice(-RESENT);
    const sent = [...unanswered, ...answered].map(([token, known]) =>
      this.#sendOneAgain(plane, token, known, floor_seq),
    );
    await Promise.all(sent);
    this.#open.clear();
  }

  async #sendOneAgain(plane, token, known, floor) {
    const { id, seq } = known;
    const first = await plane.emit(known.input);
    const second = await plane.emit(known.input);
    if (second.outcome !== "duplicate" || second.id !== first.id)
      this.problem(`${token} was sent again twice and answered ${first.id}, then ${second.outcome} ${second.id}`);
    if (id !== undefined && (first.outcome !== "duplicate" || first.id !== id)) {
      if (!(this.#pruned && seq < floor))
        this.problem(`${token} was answered as ${id}, and after the crash ${first.outcome} as ${first.id}`);
    }
    this.answers.sent_again = (this.answers.sent_again ?? 0) + 1;
    if (first.id !== id) this.#events.push({ id: first.id, seq: first.seq, token });
    known.id = first.id;
    known.seq = first.seq;
    known.wasNew = true;
  }

  /** Answers how often a notification was made or merged, where the whole journal is there to tell. */
  async #compareJournal(plane, { lastSeq, floor, onEntry }) {
    const found = new Map();
    const closed = new Set();
    const observations = new Set();
    const redriven = new Set();
    let made = 0;
    for await (const entry of plane.journal()) {
      onEntry(entry);
      if (entry.type === "event") this.#found(entry, found);
      if (entry.type === "thread" && entry.state === "closed") closed.add(entry.thread_id);
      if (entry.type === "observation")
        observations.add(observation(entry.thread_id, { name: entry.subject, generation: entry.generation }));
      for (const { command, notification } of entry.changes) {
        if (command === "create" || command === "merge") made += 1;
        const of = notification?.redrive_of ?? null;
        if (of === null) continue;
        if (redriven.has(of)) this.problem(`the dead letter ${of} was redriven twice`);
        redriven.add(of);
      }
      if (entry.seq >= lastSeq) break;
    }
    for (const [token, known] of this.#tokens) {
      if (known.seq === undefined || found.has(token) || (this.#pruned && known.seq < floor)) continue;
      this.problem(`the event ${known.id ?? token} was answered with seq ${known.seq} and is not in the journal`);
    }
    if (this.#pruned) return undefined;
    for (const thread of this.#closedThreads)
      if (!closed.has(thread)) this.problem(`the thread ${thread} was answered closed and is not`);
    for (const one of this.#observations)
      if (!observations.has(one)) this.problem(`the observation ${one} was answered and is not in the journal`);
    for (const of of this.#redriven.keys())
      if (!redriven.has(of)) this.problem(`the redrive of ${of} was answered and is not in the journal`);
    return made;
  }

  #found({ seq, event }, found) {
    // Its own: that there were too many, or that a file has changed.
    if (event.source === "tidings") return;
    const { token } = event.payload;
    const known = this.#tokens.get(token);
    if (known === undefined) return this.problem(`the event ${event.id} at seq ${seq} was never asked for`);
    if (found.has(token)) this.problem(`${token} is in the journal twice: ${found.get(token)} and ${event.id}`);
    found.set(token, event.id);
    if (known.seq === undefined) return;
    if (known.seq !== seq || (known.id !== undefined && known.id !== event.id))
      this.problem(`${token} was answered as ${known.id} at ${known.seq} and is ${event.id} at ${seq}`);
  }

  async #compareLedger(plane, { made, floor }) {
    // As it was promised up to now: what is shown while the list is read may be newer than the list.
    const promises = [...this.#notifications].map(([id, promised]) => [id, { ...promised }]);
    const views = new Map();
    let counted = 0;
    for (let after; ; ) {
      const page = await plane.list({ limit: PAGE, ...(after === undefined ? {} : { after }) });
      for (const view of page.notifications) {
        views.set(view.id, view);
        counted += view.count;
      }
      if (page.next === null) break;
      after = page.next;
    }
    for (const [id, promised] of promises) {
      const view = views.get(id);
      const mayBeGone = this.#pruned && promised.seq < floor && promised.settled !== "FAILED";
      if (view === undefined && !mayBeGone) this.problem(`the notification ${id} was answered and is not there`);
      if (view !== undefined) this.#keeps(view, promised);
    }
    if (made !== undefined && counted !== made)
      this.problem(`the journal made and merged ${made} times, the notifications count ${counted}`);
    for (const [of, as] of this.#redriven)
      if (views.get(as)?.redrive_of !== of && !this.#pruned) this.problem(`${as} does not say that it redrives ${of}`);
    return views;
  }

  #keeps(view, { settled, revision, epoch, count }) {
    const { id, state } = view;
    if (settled !== undefined && state !== settled) this.problem(`${id} was answered ${settled} and is ${state}`);
    if (view.revision < revision) this.problem(`${id} was answered at revision ${revision} and is at ${view.revision}`);
    if (view.lease_epoch < epoch) this.problem(`${id} was answered at epoch ${epoch} and is at ${view.lease_epoch}`);
    if (view.count < count) this.problem(`${id} was answered with count ${count} and has ${view.count}`);
  }

  /** Of what was promised the newest, each by its own id. */
  async #explain(plane, explained, floor) {
    const isKept = ({ seq }) => !this.#pruned || seq >= floor;
    const events = this.#events.slice(-explained).filter(isKept);
    for (const [index, explanation] of (await plane.explain(events.map(({ id }) => id))).entries()) {
      const { id, token } = events[index];
      if (isMiss(explanation)) this.problem(`${id} was answered and cannot be explained: ${explanation.message}`);
      else if (explanation.event?.payload.token !== token)
        this.problem(`${id} was answered to ${token} and is another`);
    }
    const notifications = [...this.#notifications].slice(-EXPLAINED).filter(([, promised]) => isKept(promised));
    const ids = notifications.map(([id]) => id);
    for (const [index, explanation] of (await plane.explain(ids)).entries())
      if (isMiss(explanation))
        this.problem(`${ids[index]} was answered and cannot be explained: ${explanation.message}`);
  }

  /** Backups made since the last time, with what each must hold: everything answered before it was begun. */
  takeBackups() {
    const fresh = [...this.#backups].filter(([, backup]) => !backup.checked);
    for (const [, backup] of fresh) backup.checked = true;
    return fresh.map(([file, { answered, promised }]) => ({
      file,
      answered,
      events: this.#events.slice(0, promised).map(({ id }) => id),
    }));
  }
}

/** As the journal has it: a subject's name and generation apart. */
function observation(thread, { name, generation }) {
  return `${thread} ${name} ${generation}`;
}
