/**
 * What users are to be shown, as it happens: the journal read as pushes. Only what a system channel owns is pushed;
 * what is the agent's alone is not, until it escalates.
 */
import { type Axes, channelOf, isSystemChannel } from "../domain/axes.js";
import { assert, ConflictError } from "../domain/errors.js";
import type { EventId, NotificationId, TokenId, UserId } from "../domain/ids.js";
import type { Change, JournalEntry } from "../domain/journal.js";
import { LIMITS } from "../domain/limits.js";
import type { Kept, NotificationView } from "../domain/notification.js";
import { HOST, userPrincipal } from "../domain/principal.js";
import { evolve } from "../domain/reducer.js";
import { viewOf } from "../domain/view.js";
import type { Store, Stored } from "../store/contract.js";
import { cursorTooOld, watchPages } from "./watch.js";

/** A notification came to a system channel (`created`), or changed on one. It is shown as it was at `seq`. */
export interface Push {
  readonly kind: "created" | "updated";
  readonly user_id: UserId;
  readonly seq: number;
  readonly notification: NotificationView;
}

export interface FeedBatch {
  /** Everything up to here is in this batch or an earlier one. */
  readonly seq: number;
  readonly pushes: readonly Push[];
  readonly revoked: readonly TokenId[];
  /** What was read, also of users that nobody wants. */
  readonly entries: readonly JournalEntry[];
}

/** Batches after `start`, of the users that `wants` names. */
export async function* feed(
  store: Store,
  start: Promise<number>,
  wants: (user_id: UserId) => boolean,
  signal: AbortSignal,
): AsyncGenerator<FeedBatch, void, undefined> {
  const states = new States(store);
  for await (const page of watchPages(store, HOST, start, signal)) {
    const pushes: Push[] = [];
    const revoked: TokenId[] = [];
    for (const entry of page.entries) {
      if (entry.type === "token" && entry.action === "revoked") revoked.push(entry.token_id);
      if (entry.changes.length > 0 && wants(entry.user_id)) pushes.push(...(await pushesOf(states, entry)));
    }
    yield { seq: page.after, pushes, revoked, entries: page.entries };
  }
}

/** Few: a page is read at one go, and others wait meanwhile. */
const REPLAY_PAGE = 64;

/** Asked before each piece of a long reading: waits until it may go on, and throws where nobody wants it any more. */
export type Pace = () => Promise<void> | undefined;

/**
 * What one user was to be shown after `after`, as it would have been pushed then; refused with `cursor_too_old` where
 * retention has removed any of it. `end`: that was all, when it was read; whoever asks on gets what has come since.
 */
export async function* replay(
  store: Store,
  user_id: UserId,
  after: number,
  pace: Pace,
): AsyncGenerator<FeedBatch & { readonly end: boolean }, void, undefined> {
  const states = new States(store);
  for (let cursor = after; ; ) {
    await pace();
    const page = await store.entries(userPrincipal(user_id), cursor, REPLAY_PAGE);
    if (cursor + 1 < page.floor) throw cursorTooOld(cursor, page.floor);
    const pushes: Push[] = [];
    for (const entry of page.entries) {
      if (entry.changes.length === 0) continue;
      await pace();
      pushes.push(...(await pushesOf(states, entry)));
    }
    yield { seq: page.after, pushes, revoked: [], entries: page.entries, end: page.end };
    cursor = page.after;
  }
}

async function pushesOf(states: States, entry: JournalEntry): Promise<Push[]> {
  const { seq, user_id } = entry;
  const pushes: Push[] = [];
  for (const [id, changes] of byNotification(entry.changes)) {
    if (states.hides(id, changes)) continue;
    const shown = await states.after(entry, id, changes);
    if (shown === undefined) throw new ConflictError("cursor_too_old", `retention has removed ${id} while it was read`);
    if (!isSystemChannel(shown.delivery.channel)) continue;
    // An open batch is shown when it is closed, and what is kept back never.
    if (shown.delivery.state === "PENDING" || shown.delivery.state === "SUPPRESSED") continue;
    const arrived = changes.some(arrives);
    pushes.push({ kind: arrived ? "created" : "updated", user_id, seq, notification: viewOf(shown) });
  }
  return pushes;
}

function byNotification(all: readonly Change[]): ReadonlyMap<NotificationId, Change[]> {
  const found = new Map<NotificationId, Change[]>();
  for (const change of all) {
    const changes = found.get(change.notification_id);
    if (changes === undefined) found.set(change.notification_id, [change]);
    else changes.push(change);
  }
  return found;
}

/** What an agent alone is concerned with, and what is kept back: nothing is shown by it. */
const UNSEEN: ReadonlySet<Change["command"]> = new Set(["collect", "settle", "release", "suppress"]);

/** Whether it comes to the user with this change. */
function arrives({ command, path }: Change): boolean {
  return command === "create" || command === "escalate" || (command === "dispatch" && path.length > 0);
}

type Shown = Pick<Stored, "notification" | "delivery" | "event_ids" | "seq">;

/** How many notifications are remembered: those that change again soon. */
const REMEMBERED_MAX = 256;
/** And of how many it is known that they are for an agent. */
const HIDDEN_MAX = 4_096;

/** Notifications as the entries left them, one after the other. */
class States {
  readonly #store: Store;
  /** Those that changed last stand last. */
  readonly #states = new Map<NotificationId, Shown>();
  readonly #hidden = new Set<NotificationId>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Whether nothing of it can be shown after these changes: known without reading it. */
  hides(id: NotificationId, changes: readonly Change[]): boolean {
    if (changes.some(({ command }) => command === "escalate" || command === "dispatch")) {
      this.#hidden.delete(id);
      return false;
    }
    const [first] = changes;
    if (first?.command === "create" && !isSystemChannel(first.set.channel ?? channelOf(axesOf(first)))) {
      if (this.#hidden.size >= HIDDEN_MAX) this.#hidden.clear();
      this.#hidden.add(id);
    }
    return this.#hidden.has(id) || changes.every(({ command }) => UNSEEN.has(command));
  }

  /** The notification as this entry left it. */
  async after(entry: JournalEntry, id: NotificationId, changes: readonly Change[]): Promise<Shown | undefined> {
    const known = this.#states.get(id);
    const [first] = changes;
    const goesOn = first?.command === "create" || (known !== undefined && known.seq === first?.prev);
    const shown = goesOn ? evolved(known, entry, changes) : await this.#read(entry, id);
    this.#states.delete(id);
    if (shown === undefined) return undefined;
    this.#states.set(id, shown);
    if (this.#states.size > REMEMBERED_MAX) this.#states.delete(this.#states.keys().next().value ?? id);
    return shown;
  }

  /** From the ledger, if this is its newest entry; else its story is told again up to here. */
  async #read(entry: JournalEntry, id: NotificationId): Promise<Shown | undefined> {
    const stored = await this.#store.get(HOST, id);
    if (stored === undefined || stored.seq === entry.seq) return stored;
    let shown: Shown | undefined;
    for (const one of (await this.#store.story(HOST, id)) ?? []) {
      if (one.seq > entry.seq) break;
      const changes = one.changes.filter((change) => change.notification_id === id);
      shown = evolved(shown, one, changes);
    }
    return shown;
  }
}

function axesOf({ notification, notification_id }: Change): Axes {
  assert(notification !== undefined, `the journal creates ${notification_id} without saying what it is`);
  return notification.axes;
}

function evolved(before: Shown | undefined, entry: JournalEntry, changes: readonly Change[]): Shown | undefined {
  let kept: Kept | undefined = before;
  let event_ids = before?.event_ids ?? [];
  for (const change of changes) {
    kept = evolve(change.command === "create" ? undefined : kept, change, entry.at);
    const event_id = change.notification?.event_id ?? change.event_id;
    if (event_id !== undefined) event_ids = listed([...event_ids, event_id]);
  }
  return kept === undefined ? undefined : { ...kept, event_ids, seq: entry.seq };
}

/** As the ledger lists them: the first, and the latest up to the limit. */
function listed(event_ids: readonly EventId[]): readonly EventId[] {
  const [first] = event_ids;
  if (first === undefined || event_ids.length <= LIMITS.eventIdsListed) return event_ids;
  return [first, ...event_ids.slice(1 - LIMITS.eventIdsListed)];
}
