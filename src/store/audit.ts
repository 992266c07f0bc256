/**
 * Checks the guarantees over a whole store: the journal is ordered and whole, every entry is what its type says, every step
 * in it is legal by the grid, and replaying it gives the ledger, field by field. Reads only; of all it reads it keeps only
 * what it knows of each thread and of what was used.
 */
import { channelOf, isSystemChannel } from "../domain/axes.js";
import { TidingsError } from "../domain/errors.js";
import type { ThreadId } from "../domain/ids.js";
import type { Change, JournalEntry, ThreadState } from "../domain/journal.js";
import { canonicalJson, type Json } from "../domain/json.js";
import { isOnFloor, type Kept } from "../domain/notification.js";
import { HOST } from "../domain/principal.js";
import { epochGrowth, evolve } from "../domain/reducer.js";
import { COLUMN_CHANNELS, isTerminal, TRANSITIONS } from "../domain/transitions.js";
import { sameBudgets, type ThreadBudgets } from "../domain/usage.js";
import { breathe } from "../platform/timers.js";
import { auditCarriers, opensCarrier } from "./audit_carriers.js";
import { UsageAudit } from "./audit_usage.js";
import type { JournalPage, LedgerRecord, Store } from "./contract.js";
import { wrongForm } from "./entry_form.js";

export interface AuditProblem {
  /** Which promise is broken; the invariants of docs/SPEC.md. */
  readonly rule: string;
  readonly subject: string;
  readonly message: string;
}

export interface AuditReport {
  readonly ok: boolean;
  readonly checked: { readonly entries: number; readonly events: number; readonly notifications: number };
  readonly problems: readonly AuditProblem[];
}

const PAGE = 250;
const PROBLEMS_MAX = 100;

export async function audit(store: Store, onProgress?: (what: string, done: number) => void): Promise<AuditReport> {
  const problems: AuditProblem[] = [];
  const report = (rule: string, subject: string, message: string) => {
    if (problems.length < PROBLEMS_MAX) problems.push({ rule, subject, message });
  };
  for (const message of await store.check()) report("storage", "storage", message);
  const checked = { entries: 0, events: 0, notifications: 0 };
  try {
    const journal = await auditJournal(store, report, onProgress);
    Object.assign(checked, { entries: journal.entries, events: journal.events });
    const ledger = await auditLedger(store, report, onProgress);
    checked.notifications = ledger.notifications;
    const said = `the journal holds ${journal.changes} changes, the stories of the ledger ${ledger.changes}`;
    if (journal.changes !== ledger.changes) report("I5", "journal", said);
    const carriers = await auditCarriers(store, report);
    if (journal.carriers !== carriers)
      report("I5", "journal", `the journal opens ${journal.carriers} carriers, and there are ${carriers}`);
  } catch (error) {
    // Too damaged to be read to its end: what was found, and this.
    if (!isUnreadable(error)) throw error;
    report("storage", "storage", error.message);
  }
  return { ok: problems.length === 0, checked, problems };
}

type Report = (rule: string, subject: string, message: string) => void;

async function auditJournal(store: Store, report: Report, onProgress?: (what: string, done: number) => void) {
  const { floor_seq } = await store.facts();
  const owners = new Map<string, string>();
  const states = new Map<string, ThreadState>();
  const budgets = new Map<string, ThreadBudgets | null>();
  const told = new Map<string, { state: ThreadState; seq: number; budgets: ThreadBudgets | null }>();
  for (let after: Parameters<Store["threads"]>[0] = null; ; ) {
    const threads = await store.threads(after, PAGE);
    for (const thread of threads) {
      owners.set(thread.id, thread.user_id);
      states.set(thread.id, thread.state);
      budgets.set(thread.id, thread.budgets);
    }
    const last = threads.at(-1);
    if (last === undefined || threads.length < PAGE) break;
    after = last.id;
  }
  let seq = 0;
  let at = 0;
  let entries = 0;
  let events = 0;
  let changes = 0;
  let carriers = 0;
  const usage = new UsageAudit(floor_seq);
  for (let after = 0; ; ) {
    const page = await readOn(store, after, report);
    for (const entry of page.entries) {
      const name = `entry ${entry.seq}`;
      if (entry.seq <= seq) report("I16", name, `follows ${seq}`);
      if (entry.seq >= floor_seq && entry.seq !== Math.max(seq + 1, floor_seq))
        report("I16", name, `there is a gap after ${seq}`);
      if (entry.at < at) report("I20", name, "is older than the entry before it");
      if (entry.thread_id !== null && owners.get(entry.thread_id) !== entry.user_id)
        report("I18", name, `is of ${entry.user_id} and names the thread ${entry.thread_id} of another`);
      seq = entry.seq;
      at = entry.at;
      entries += 1;
      changes += await auditEntry(store, entry, floor_seq, report);
      const wrong = wrongForm(entry);
      if (wrong !== undefined) {
        // Nothing that it says can be relied on.
        report("I5", name, wrong);
        continue;
      }
      if (entry.type === "event") events += 1;
      if (opensCarrier(entry)) carriers += 1;
      usage.take(entry);
      if (entry.type === "thread" && entry.thread_id !== null) {
        const before = told.get(entry.thread_id)?.budgets ?? null;
        told.set(entry.thread_id, { state: entry.state, seq: entry.seq, budgets: entry.budgets ?? before });
      }
    }
    onProgress?.("journal entries", entries);
    await breathe();
    if (page.end) break;
    after = page.after;
  }
  for (const [id, { state, seq: last, budgets: given }] of told) {
    // Of a thread that is over, the newest entry may have been pruned before an older one that is still wanted.
    const whole = last >= floor_seq || states.get(id) === "open";
    if (whole && states.get(id) !== state)
      report("I5", `thread ${id}`, `is ${states.get(id)}, and the journal says ${state}`);
    // What started one that is over may have been pruned.
    if (states.get(id) === "open" && !sameBudgets(given, budgets.get(id) ?? null))
      report("I5", `thread ${id}`, "has other budgets than the journal says");
  }
  await usage.finish(store, states, report);
  return { entries, events, changes, carriers };
}

/** The next page; past an entry that cannot be read it goes on with the next one, and says so. */
async function readOn(store: Store, after: number, report: Report): Promise<JournalPage> {
  try {
    return await store.entries(HOST, after, PAGE);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  try {
    const page = await store.entries(HOST, after, 1);
    return { ...page, end: false };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    report("storage", `entry ${after + 1}`, error.message);
    const { floor_seq: floor, last_seq } = await store.facts();
    return { entries: [], after: after + 1, end: after + 1 >= last_seq, floor };
  }
}

/** Whatever makes reading fail is a finding, except that the store was closed. */
function isUnreadable(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof TidingsError && error.code === "closed");
}

/** Answers how many of its changes are about notifications that exist. */
async function auditEntry(store: Store, entry: JournalEntry, floor: number, report: Report): Promise<number> {
  let present = 0;
  for (const change of entry.changes) {
    const stored = await store.get(HOST, change.notification_id);
    if (stored !== undefined) {
      present += 1;
      if (stored.delivery.user_id !== entry.user_id)
        report(
          "I18",
          change.notification_id,
          `belongs to ${stored.delivery.user_id}, entry ${entry.seq} to ${entry.user_id}`,
        );
    } else if (entry.seq >= floor) {
      report("I6", change.notification_id, `entry ${entry.seq} is about it, and it is not in the ledger`);
    }
  }
  return present;
}

async function auditLedger(store: Store, report: Report, onProgress?: (what: string, done: number) => void) {
  let notifications = 0;
  let changes = 0;
  for (let after = 0; ; ) {
    const page = await store.ledger(after, PAGE);
    for (const kept of page) {
      notifications += 1;
      after = kept.number;
      try {
        const story = (await store.story(HOST, kept.delivery.id)) ?? [];
        changes += auditStory(kept, story, report);
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        report("storage", kept.delivery.id, error.message);
      }
    }
    onProgress?.("notifications", notifications);
    await breathe();
    if (page.length < PAGE) return { notifications, changes };
  }
}

/** Replays one notification's story and compares; answers how many changes it has. */
function auditStory(ledger: LedgerRecord, story: readonly JournalEntry[], report: Report): number {
  const { id } = ledger.delivery;
  let kept: Kept | undefined;
  const onFloor: Place[] = [];
  let lastSeq: number | null = null;
  let changes = 0;
  for (const entry of story) {
    for (const change of entry.changes) {
      if (change.notification_id !== id) continue;
      changes += 1;
      if (change.prev !== lastSeq) report("I5", id, `entry ${entry.seq} links to ${change.prev}, not to ${lastSeq}`);
      lastSeq = entry.seq;
      const wrong = illegal(kept, change);
      if (wrong !== undefined) {
        report("I5", id, `entry ${entry.seq}: ${wrong}`);
        return changes;
      }
      kept = evolve(kept, change, entry.at);
      const resting = wrongRest(kept);
      if (resting !== undefined) report("I9", id, `entry ${entry.seq}: ${resting}`);
      if (isOnFloor(kept.delivery)) onFloor.push({ thread_id: kept.delivery.thread_id, seq: entry.seq });
    }
  }
  if (kept === undefined) {
    report("I5", id, "is in the ledger and nowhere in the journal");
    return changes;
  }
  for (const part of ["notification", "delivery"] as const) {
    const replayed = canonicalJson(kept[part] as unknown as Json);
    const stored = canonicalJson(ledger[part] as unknown as Json);
    if (replayed !== stored) report("I5", id, `the ledger says ${stored}, the journal ${replayed}`);
  }
  auditShown(ledger, onFloor, report);
  return changes;
}

interface Place {
  readonly thread_id: ThreadId | null;
  readonly seq: number;
}

/** `onFloor`: each entry after which it was on the floor. The first has shown it; older versions have kept a later one. */
function auditShown({ delivery: { id }, shown }: LedgerRecord, onFloor: readonly Place[], report: Report): void {
  if (shown.length > 1) report("I5", id, "is listed twice as shown in a conversation");
  for (const { thread_id, seq } of shown) {
    if (onFloor.some((place) => place.thread_id === thread_id && place.seq === seq)) continue;
    const [first] = onFloor;
    const said = first === undefined ? "never" : `in ${first.thread_id} by entry ${first.seq}`;
    report("I5", id, `is listed as shown in ${thread_id} by entry ${seq}, and the journal says ${said}`);
  }
}

/** Whether the grid allows this step from where the delivery is. */
function illegal(kept: Kept | undefined, change: Change): string | undefined {
  if (change.command === "create") return kept === undefined ? undefined : "is created twice";
  if (kept === undefined) return `begins with ${change.command}`;
  const { state, channel, lease_epoch } = kept.delivery;
  const cell = TRANSITIONS[state][change.command];
  if (!COLUMN_CHANNELS[change.command].includes(channel)) return `${change.command} on the channel ${channel}`;
  const path = "to" in cell ? cell.to.join() : "";
  if ("miss" in cell || change.path.join() !== path) return `${change.command} in ${state} went ${change.path.join()}`;
  const merge = "merge" in cell ? cell.merge : undefined;
  if (merge === "new" || merge === "new_linked") return `a merge into ${state}`;
  if (isTerminal(state) && change.words !== undefined) return `the words of a ${state} one were changed`;
  const epoch = change.set.lease_epoch ?? lease_epoch;
  if (epoch !== lease_epoch + epochGrowth(change.command, change.path))
    return `the lease epoch went from ${lease_epoch} to ${epoch}`;
  return undefined;
}

function wrongRest(kept: Kept): string | undefined {
  const { state, channel, effective } = kept.delivery;
  if (channel !== channelOf(effective)) return `the channel is ${channel}, the routing says ${channelOf(effective)}`;
  if (state === "LOCKED" && isSystemChannel(channel)) return `rests LOCKED on the channel ${channel}`;
  if (state === "DISPATCHED" && !isSystemChannel(channel)) return `rests DISPATCHED on the channel ${channel}`;
  return undefined;
}
