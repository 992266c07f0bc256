/**
 * What became of every event, told from the journal alone: with each subscriber that matches it, it is a row of one
 * notification, counts to a row or a notification, or is kept back; never two of these, never none.
 */
import { LIMITS } from "../../dist/domain/limits.js";
import { BATCHED, rowsIn, subscribersOf } from "./batches.mjs";

const SEVERITIES = ["debug", "info", "warning", "error", "critical"];
/** In these it is with somebody, who has been told what it says. */
const OUT = new Set(["DISPATCHED", "LOCKED", "ESCALATED", "DELIVERED"]);

export class Accounting {
  #problem;
  /** By notification: its rows, as the journal has made them. */
  #items = new Map();
  /** By subscriber, user and thread: the one that takes rows. */
  #open = new Map();
  /** By event and subscriber: what became of it. */
  #fates = new Map();
  /** By user: the newest choice. */
  #choices = new Map();
  /** By summary of what was too much: how many were folded into it. */
  #folded = new Map();
  /** Batches of the operator's files that were closed and worded. */
  closed = 0;

  constructor(problem) {
    this.#problem = problem;
  }

  take(entry) {
    if (entry.type === "event") this.#takeEvent(entry);
    if (entry.type === "settings") this.#choices.set(entry.user_id, entry.disabled_subscribers);
    for (const change of entry.changes) this.#takeChange(entry, change);
    if (entry.type === "event" && entry.event.type === "tidings.overflow") this.#takeOverflow(entry);
  }

  get folded() {
    return [...this.#folded.values()].reduce((sum, number) => sum + number, 0);
  }

  /** The summary says of how many it is: of all that were ever folded into it. */
  #takeOverflow({ seq, event, changes }) {
    const folded = changes.filter(({ set }) => set.reason === "folded");
    const summary = changes.find(({ set }) => set.reason !== "folded")?.notification_id;
    const all = (this.#folded.get(summary) ?? 0) + folded.length;
    this.#folded.set(summary, all);
    if (event.payload.notifications !== all)
      this.#problem(`${summary} says at ${seq} that it is of ${event.payload.notifications}, and is of ${all}`);
    for (const { notification_id: id, note } of folded) {
      if (!note?.includes(summary)) this.#problem(`${id} was folded at ${seq}, and does not say into ${summary}`);
      const { subscriber } = this.#items.get(id) ?? {};
      if (subscriber === "narrate" || subscriber === "narrate_rows")
        this.#problem(`${id} must be told to the user, and was folded at ${seq}`);
    }
  }

  /** What the user has switched off, as the journal has it. */
  choiceOf(user_id) {
    return this.#choices.get(user_id) ?? [];
  }

  #takeEvent({ seq, event, changes }) {
    const subscribers = [];
    for (const change of changes) {
      const fate = fateOf(change);
      if (fate === undefined) continue;
      subscribers.push(fate.subscriber);
      this.#fates.set(`${event.id} ${fate.subscriber}`, fate);
      const filter = BATCHED[fate.subscriber]?.severity_filter ?? "debug";
      const isBelow = SEVERITIES.indexOf(event.severity) < SEVERITIES.indexOf(filter);
      if (BATCHED[fate.subscriber] !== undefined && isBelow !== (fate.outcome === "filtered"))
        this.#problem(
          `${event.id} (${event.severity}) was ${fate.outcome} by ${fate.subscriber}, which wants ${filter}`,
        );
    }
    const wanted = subscribersOf(event.type);
    const found = subscribers.filter((id) => BATCHED[id] !== undefined);
    if (wanted.toSorted().join() !== found.toSorted().join())
      this.#problem(`${event.id} at ${seq} (${event.type}) went to ${found.join()}, not to ${wanted.join()}`);
    if (new Set(subscribers).size !== subscribers.length)
      this.#problem(`${event.id} at ${seq} was taken twice by one of ${subscribers.join()}`);
  }

  #takeChange(entry, change) {
    const { notification_id: id, command, notification, set, path } = change;
    if (command === "create") {
      this.#items.set(id, {
        subscriber: notification.subscriber_id,
        redriven: notification.redrive_of !== null,
        place: `${notification.subscriber_id} ${notification.user_id} ${notification.thread_id}`,
        state: undefined,
        open: set.open_until !== undefined,
        count: 1,
        rows: [{ token: tokenOf(entry), times: 1 }],
        events: [notification.event_id],
      });
    }
    const item = this.#items.get(id);
    // Retention has removed how it began.
    if (item === undefined) return;
    if (command === "merge") this.#merge(entry, change, item);
    if (command === "flush") this.#flush(change, item);
    if (command === "create" && item.open) this.#opened(id, item.place);
    if (set.open_until === null) this.#closed(id, item);
    const before = item.state;
    item.state = path.at(-1) ?? item.state;
    if (item.open && OUT.has(item.state)) this.#problem(`${id} is ${item.state} at ${entry.seq} and its batch is open`);
    if (before === "SUPPRESSED" && item.state !== before) this.#problem(`${id} was kept back and is ${item.state}`);
  }

  #opened(id, place) {
    if (this.#open.has(place)) this.#problem(`${id} was opened for ${place}, and ${this.#open.get(place)} is open`);
    this.#open.set(place, id);
  }

  #closed(id, item) {
    item.open = false;
    if (this.#open.get(item.place) === id) this.#open.delete(item.place);
  }

  #merge(entry, change, item) {
    const { notification_id: id, row, set, event_id } = change;
    item.count += 1;
    item.events.push(event_id);
    if (set.count !== item.count) this.#problem(`${id} counts ${set.count} at ${entry.seq}, not ${item.count}`);
    if (row === undefined) {
      item.rows[0].times += 1;
      item.rows[0].token = tokenOf(entry);
      return;
    }
    if (set.rows === undefined) {
      const counted = item.rows[row];
      if (counted === undefined) return this.#problem(`${id} has no row ${row} at ${entry.seq}`);
      counted.times += 1;
      counted.token = tokenOf(entry);
      return;
    }
    if (!item.open) this.#problem(`${id} has a further row at ${entry.seq}, and its batch is closed`);
    if (row !== item.rows.length || set.rows !== row + 1)
      this.#problem(`${id} has ${item.rows.length} rows, and then row ${row} of ${set.rows}`);
    item.rows.push({ token: tokenOf(entry), times: 1 });
    const size = BATCHED[item.subscriber]?.max_size;
    if (size !== undefined && item.rows.length > size)
      this.#problem(`${id} has ${item.rows.length} rows, and ${item.subscriber} wants ${size} at most`);
  }

  /** Its words show every row with its count, but for those that a rule has left out. */
  #flush({ notification_id: id, set, words, note }, item) {
    if (set.open_until !== null || BATCHED[item.subscriber] === undefined) return;
    if (!item.open) this.#problem(`${id} was closed twice`);
    this.closed += 1;
    if (words?.content === undefined) return;
    const shown = rowsIn(words.content);
    if (shown === undefined) return this.#problem(`${id} was closed with the words ${words.content}`);
    const all = item.rows.map(({ token, times }) => `${token} ${times}`);
    const told = shown.map(([token, times]) => `${token} ${times}`);
    const asMade = all.filter((row) => told.includes(row));
    const isWhole = told.length === all.length;
    if (asMade.join() !== told.join() || (note === undefined && !isWhole))
      this.#problem(`${id} has the rows ${all.join()} and shows ${told.join()} (${note ?? "none is left out"})`);
  }

  /** What an answer said of one event must be what the journal says of it. */
  compareAnswer(event, subscriber, outcome, notification) {
    const fate = this.#fates.get(`${event} ${subscriber}`);
    if (fate === undefined || fate.outcome !== outcome || fate.notification !== notification)
      this.#problem(
        `${event} was answered ${outcome} by ${subscriber} in ${notification}, and is ${JSON.stringify(fate)}`,
      );
  }

  /** The ledger against the journal. `views` may be a little newer. */
  compareViews(views) {
    const owners = new Map();
    for (const view of views.values()) {
      if (view.open_until !== null && view.state !== "PENDING") this.#problem(`${view.id} is ${view.state} and open`);
      const item = this.#items.get(view.id);
      if (item === undefined) continue;
      if (view.count !== item.count) this.#problem(`${view.id} counts ${view.count}, and the journal ${item.count}`);
      if (item.rows.reduce((sum, { times }) => sum + times, 0) !== item.count)
        this.#problem(`${view.id} counts ${item.count}, and its rows ${JSON.stringify(item.rows)}`);
      if (item.redriven) continue;
      if (view.event_ids.join() !== listed(item.events).join())
        this.#problem(
          `${view.id} is of the events ${view.event_ids.join()}, and by the journal of ${item.events.join()}`,
        );
      for (const event of view.event_ids) {
        const key = `${event} ${view.subscriber_id}`;
        if (owners.has(key)) this.#problem(`${event} is in ${owners.get(key)} and in ${view.id}`);
        owners.set(key, view.id);
      }
      this.#compareWords(view);
    }
  }

  #compareWords({ id, subscriber_id, state, open_until, content, count, degraded }) {
    if (BATCHED[subscriber_id] === undefined || open_until !== null || !OUT.has(state)) return;
    const shown = rowsIn(content);
    if (degraded !== null || shown === undefined || shown.length === 0)
      return this.#problem(`${id} is ${state} and says ${JSON.stringify(content)} (${degraded})`);
    const told = shown.reduce((sum, [, times]) => sum + times, 0);
    if (told > count) this.#problem(`${id} shows ${told} of ${count}`);
  }
}

/** As a notification lists them: the first, and the latest up to the limit. */
function listed([first, ...others]) {
  return [first, ...(others.length < LIMITS.eventIdsListed ? others : others.slice(1 - LIMITS.eventIdsListed))];
}

/** The event of an entry has a word of its own in its payload. */
function tokenOf({ event }) {
  return event?.payload.token;
}

/** What a creation or a merge says became of the event of its entry; undefined if it is about something else. */
function fateOf({ command, notification_id, notification, subscriber_id, set }) {
  if (command === "create" && notification.subscriber_id !== "overflow") {
    const kept = set.reason === "filtered" || set.reason === "muted" ? set.reason : undefined;
    const outcome = kept ?? (set.open_until === undefined ? "queued" : "batched");
    return { subscriber: notification.subscriber_id, outcome, notification: notification_id };
  }
  if (command === "merge" && subscriber_id !== undefined && subscriber_id !== "overflow")
    return {
      subscriber: subscriber_id,
      outcome: set.rows === undefined ? "merged" : "batched",
      notification: notification_id,
    };
  return undefined;
}
