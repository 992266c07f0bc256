/**
 * The pure core: a delivery, a command and the time give the next delivery and the change that is journaled, or a
 * miss. `decide` is what the stores run inside their transactions and what the property tests use as their model;
 * `evolve` replays a journaled change and is what `audit` compares the ledger with.
 */
import { type Address, channelOf, effectiveAxes, isSystemChannel, mustNarrate, shownBySystem } from "./axes.js";
import { assert, type Miss, type MissCode, unreachable } from "./errors.js";
import type { EventId, NotificationId, SubscriberId, ThreadId } from "./ids.js";
import type { Change, Patch } from "./journal.js";
import { canonicalJson } from "./json.js";
import type {
  AckAction,
  Delivery,
  EscalateReason,
  Kept,
  LeaseRef,
  Notification,
  SuppressReason,
} from "./notification.js";
import { backoffAfter, type DeliveryPolicy } from "./policy.js";
import { higherPriority, type Priority } from "./priority.js";
import { COLUMN_CHANNELS, type Column, isTerminal, type State, TRANSITIONS } from "./transitions.js";

/** One column of the grid with its arguments. `merge` is apart, since it changes the notification's words too. */
export type Command =
  /** `address` moves a floor item to the inbox. `content`: it says something else now. */
  | {
      readonly column: "dispatch";
      readonly address?: Extract<Address, "user">;
      readonly content?: string;
      readonly note?: string;
    }
  | { readonly column: "collect"; readonly lease: LeaseRef; readonly thread_id?: ThreadId }
  | { readonly column: "ack"; readonly revision: number; readonly action: AckAction }
  | { readonly column: "settle"; readonly epoch: number }
  /** `quiet`: from now on nobody is woken for it. */
  | { readonly column: "release"; readonly epoch: number; readonly quiet?: true }
  /** With an `epoch`: by the holder (a promotion). Without: a takeover by the watchdog. `content`: what the user is told instead. */
  | {
      readonly column: "escalate";
      readonly reason: EscalateReason;
      readonly epoch?: number;
      readonly address?: Extract<Address, "user">;
      readonly content?: string;
      readonly note?: string;
    }
  | { readonly column: "expire" }
  /** What it is worded as, of the rows that are to be told. */
  | { readonly column: "flush"; readonly words: FlushWords; readonly note?: string }
  | { readonly column: "suppress"; readonly reason: SuppressReason; readonly note?: string };

/** `kind`: where it is another than that of the event that made it, of which nothing is told. */
export type FlushWords = Pick<Notification, "content" | "severity" | "degraded"> & Partial<Pick<Notification, "kind">>;

/** A change before the store links it to the previous one about the same notification. */
export type NewChange = Change & { readonly prev: null };

/** While it is made. */
type Mutable<Made> = { -readonly [Field in keyof Made]: Made[Field] };

export type Decision =
  | { readonly outcome: "changed"; readonly change: NewChange; readonly next: Delivery }
  | { readonly outcome: "same" }
  | { readonly outcome: "miss"; readonly miss: Miss };

export interface DecideContext {
  /** The store's clock, in milliseconds. */
  readonly at: number;
  readonly policy: DeliveryPolicy;
}

export function decide({ delivery, notification }: Kept, command: Command, context: DecideContext): Decision {
  const { column } = command;
  const cell = TRANSITIONS[delivery.state][column];
  // Whoever names another epoch than the row's has lost it, wherever it is now.
  const lost = "epoch" in command && command.epoch !== undefined && command.epoch !== delivery.lease_epoch;
  if (lost && !isTerminal(delivery.state)) return missed(delivery, column, "stale_lease");
  if ("miss" in cell) return missed(delivery, column, cell.miss);
  if (!COLUMN_CHANNELS[column].includes(delivery.channel)) return missed(delivery, column, "wrong_channel");

  switch (command.column) {
    case "dispatch": {
      const reworded = revised(delivery, notification, command.content);
      const patch = { ...reworded, ...(command.address === undefined ? {} : moved(delivery, command.address)) };
      const again = "again" in cell;
      if (again && Object.keys(patch).length === 0) return { outcome: "same" };
      const decision = changed(delivery, column, again ? [] : pathOf(cell), patch, context, command.note);
      return withContent(decision, reworded, command.content);
    }
    case "collect": {
      // What is addressed to the user is bound to a thread only now.
      const bound = command.thread_id !== undefined && delivery.effective.address === "user";
      const patch: Patch = { lease: command.lease, ...(bound ? { thread_id: command.thread_id } : {}) };
      return changed(delivery, column, pathOf(cell), patch, context);
    }
    case "ack": {
      const { action } = command;
      const patch: Patch = action === "rendered" ? { action } : { action, read_at: context.at };
      if ("same" in cell) {
        if (action === "rendered" || delivery.read_at !== null) return { outcome: "same" };
        return changed(delivery, column, [], patch, context);
      }
      if (command.revision !== delivery.revision) return missed(delivery, column, "stale_revision");
      return changed(delivery, column, pathOf(cell), patch, context);
    }
    case "settle":
      return changed(delivery, column, pathOf(cell), { lease: null }, context);
    case "release": {
      const attempts = delivery.attempts + 1;
      // What cannot go to the user waits for the next message when its attempts are used up.
      const rests = delivery.channel === "context" && attempts >= context.policy.attemptsMax;
      const quiet = delivery.quiet || command.quiet === true || rests;
      // What was stopped has not failed: it waits for the next message, and does not rest beside that.
      const not_before = context.at + (command.quiet === true ? 0 : backoffAfter(attempts, context.policy));
      const patch: Patch = { lease: null, attempts, not_before, ...(quiet && !delivery.quiet ? { quiet } : {}) };
      return changed(delivery, column, pathOf(cell), patch, context);
    }
    case "escalate": {
      const effective = shownBySystem(delivery.effective, command.address);
      const reworded = revised(delivery, notification, command.content);
      const patch: Patch = {
        ...reworded,
        lease: null,
        effective,
        channel: channelOf(effective),
        deadline: context.at + context.policy.systemTtlMs,
        reason: command.reason,
      };
      const decision = changed(delivery, column, pathOf(cell), patch, context, command.note);
      return withContent(decision, reworded, command.content);
    }
    case "expire":
      return changed(delivery, column, pathOf(cell), { reason: "unacknowledged" }, context);
    case "flush":
      return flushed(delivery, notification, command, context);
    case "suppress":
      return changed(delivery, column, pathOf(cell), { reason: command.reason }, context, command.note);
    default:
      return unreachable(command);
  }
}

/** Other words are a new revision. */
function revised(delivery: Delivery, notification: Notification, content: string | undefined): Patch {
  return content === undefined || content === notification.content ? {} : { revision: delivery.revision + 1 };
}

function withContent(decision: Decision, reworded: Patch, content: string | undefined): Decision {
  if (decision.outcome !== "changed" || reworded.revision === undefined || content === undefined) return decision;
  return { ...decision, change: { ...decision.change, words: { content, degraded: null } } };
}

/** Nobody has been told what an open one says, so that its words are no new revision. */
function flushed(
  delivery: Delivery,
  notification: Notification,
  { words, note }: Extract<Command, { column: "flush" }>,
  context: DecideContext,
): Decision {
  const open = delivery.open_until !== null;
  const { content, severity, degraded, kind } = notification;
  const sameText = words.content === content;
  const sameKind = words.kind === undefined || words.kind === kind;
  const same = sameText && sameKind && words.severity === severity && words.degraded === degraded;
  if (!open && same) return { outcome: "same" };
  const patch: Patch = open ? { open_until: null } : sameText ? {} : { revision: delivery.revision + 1 };
  const decision = changed(delivery, "flush", [], patch, context, note);
  if (same || decision.outcome !== "changed") return decision;
  return { ...decision, change: { ...decision.change, words } };
}

function moved(delivery: Delivery, address: Address): Patch {
  if (delivery.effective.address === address) return {};
  const effective = { ...delivery.effective, address };
  return { effective, channel: channelOf(effective) };
}

function pathOf(cell: (typeof TRANSITIONS)[State][Column]): readonly State[] {
  assert("to" in cell, "the reducer asked for the path of a cell that has none");
  return cell.to;
}

/** +1 on every claim, takeover, promotion and escalation (each path that passes LOCKED), and on every release. */
export function epochGrowth(column: Column, path: readonly State[]): number {
  return path.includes("LOCKED") || column === "release" ? 1 : 0;
}

function changed(
  delivery: Delivery,
  column: Column,
  path: readonly State[],
  patch: Patch,
  context: DecideContext,
  note?: string,
): Decision {
  const growth = epochGrowth(column, path);
  // What leaves PENDING takes no more rows.
  const closed = delivery.open_until === null || path.length === 0 ? patch : { ...patch, open_until: null };
  const set: Patch = growth === 0 ? closed : { ...closed, lease_epoch: delivery.lease_epoch + growth };
  const change: NewChange = { notification_id: delivery.id, command: column, path, prev: null, set };
  const noted = note === undefined ? change : { ...change, note };
  return { outcome: "changed", change: noted, next: patched(delivery, path, set, context.at) };
}

function missed(delivery: Delivery, column: Column, code: MissCode): Decision {
  return { outcome: "miss", miss: explainMiss(code, delivery, column) };
}

const ASKED: Record<Column, string> = {
  dispatch: "dispatched",
  collect: "collected",
  ack: "acknowledged",
  settle: "settled",
  release: "released",
  escalate: "escalated",
  expire: "expired",
  flush: "flushed",
  merge: "merged",
  suppress: "suppressed",
};

/** Says why nothing was changed, and what the caller can do. */
export function explainMiss(code: MissCode, delivery: Delivery, column: Column): Miss {
  const { id, state, channel } = delivery;
  const what = `notification ${id} was not ${ASKED[column]}`;
  const why: Record<MissCode, string> = {
    stale_lease:
      state === "LOCKED"
        ? `it is held under lease epoch ${delivery.lease_epoch}, which is not the caller's; collect again for what is pending`
        : `the lease is over: it is ${state} now at lease epoch ${delivery.lease_epoch}; collect again for what is pending`,
    stale_revision: `its text has changed: read it again and acknowledge revision ${delivery.revision}`,
    wrong_channel: `it is ${state} on the channel ${channel}, where that is not possible`,
    terminal: `it is ${state}, which never changes`,
    not_found: "it does not exist",
  };
  return { miss: code, id, message: `${what}: ${why[code]}` };
}

/** The miss for an id that does not exist, or is another user's. */
export function missNotFound(id: string): Miss {
  return { miss: "not_found", id, message: `no notification ${JSON.stringify(id)} for this user` };
}

/** A notification enters the ledger: routed, and on a system channel dispatched at once. */
export function create(
  notification: Notification,
  options: {
    readonly priority: Priority;
    readonly ttl_ms: number | null;
    readonly suppress: SuppressReason | null;
    /** Opens a batch: it takes further rows until then, and is not dispatched before. */
    readonly open_until?: number | null;
  },
  context: DecideContext,
): { change: NewChange; next: Delivery } {
  const effective = effectiveAxes(notification.axes, notification.thread_id !== null);
  const channel = channelOf(effective);
  const open_until = options.suppress === null ? (options.open_until ?? null) : null;
  const path: State[] = ["PENDING"];
  if (options.suppress !== null) path.push("SUPPRESSED");
  else if (isSystemChannel(channel) && open_until === null) path.push("DISPATCHED");
  const { policy, at } = context;
  const ttl =
    options.ttl_ms ??
    (isSystemChannel(channel) ? policy.systemTtlMs : channel === "agent" ? policy.agentTtlMs : policy.contextTtlMs);
  const set: Mutable<Patch> = { priority: options.priority, deadline: at + ttl };
  if (effective !== notification.axes) {
    set.effective = effective;
    set.channel = channel;
  }
  if (open_until !== null) set.open_until = Math.min(open_until, at + ttl);
  if (options.suppress !== null) set.reason = options.suppress;
  const change: NewChange = {
    notification_id: notification.id,
    command: "create",
    path,
    prev: null,
    set,
    notification,
  };
  return { change, next: patched(start(notification), path, set, at) };
}

/** What a delivery is before its first change says anything else. */
function start(notification: Notification): Delivery {
  return {
    id: notification.id,
    user_id: notification.user_id,
    thread_id: notification.thread_id,
    state: "PENDING",
    channel: channelOf(notification.axes),
    effective: notification.axes,
    priority: "normal",
    revision: 1,
    count: 1,
    rows: 1,
    lease_epoch: 0,
    lease: null,
    deadline: 0,
    open_until: null,
    not_before: 0,
    attempts: 0,
    quiet: false,
    updated_at: 0,
    action: null,
    read_at: null,
    reason: null,
  };
}

export interface MergeInput {
  readonly event_id: EventId;
  readonly subscriber_id: SubscriberId;
  readonly priority: Priority;
  /** The row that it counts to, where there are rows. */
  readonly row?: number | undefined;
  /** What it says then, asked only where it is to be said now. */
  words(): MergedWords;
}

export interface MergedWords {
  readonly words: Pick<Notification, "content" | "data" | "severity" | "directive" | "degraded">;
  /** Whether the text says more than another count. */
  readonly revises: boolean;
}

export type MergeDecision =
  | { readonly outcome: "merged"; readonly change: NewChange; readonly next: Kept }
  /** A new notification, which names the held one if there is one. */
  | { readonly outcome: "new"; readonly linked_to: NotificationId | null };

/**
 * The column `merge`: an event came with the key of this notification, within its window. A merge never extends a
 * deadline; the revision grows only when the text changes, since a count alone is nothing new to read.
 */
export function decideMerge(kept: Kept, input: MergeInput, at: number): MergeDecision {
  const { notification, delivery } = kept;
  const cell = TRANSITIONS[delivery.state].merge;
  assert("merge" in cell, "the column merge holds merge cells only");
  switch (cell.merge) {
    case "new":
      return { outcome: "new", linked_to: null };
    case "new_linked":
      return { outcome: "new", linked_to: delivery.id };
    case "count":
      return mergedInto(kept, { count: delivery.count + 1 }, undefined, input, at);
    case "revise":
    case "revise_again": {
      const priority = higherPriority(delivery.priority, input.priority);
      const set: Mutable<Patch> = { count: delivery.count + 1 };
      if (priority !== delivery.priority) set.priority = priority;
      if (input.row === delivery.rows) set.rows = delivery.rows + 1;
      // It is worded when its batch is closed.
      if (delivery.open_until !== null) return mergedInto(kept, set, undefined, input, at);
      const { words, revises } = input.words();
      if (revises) set.revision = delivery.revision + 1;
      // It says something new, or is more urgent: it does not wait any longer for somebody to come by.
      if (revises || priority !== delivery.priority) {
        if (delivery.quiet) set.quiet = false;
        if (delivery.state === "PENDING" && priority === "critical" && delivery.not_before > at) set.not_before = at;
      }
      return mergedInto(kept, set, sameWords(notification, words) ? undefined : words, input, at);
    }
    default:
      return unreachable(cell.merge);
  }
}

function sameWords(notification: Notification, words: MergedWords["words"]): boolean {
  const { content, severity, directive, degraded, data } = words;
  return (
    notification.content === content &&
    notification.severity === severity &&
    notification.degraded === degraded &&
    notification.directive === directive &&
    canonicalJson(notification.data) === canonicalJson(data)
  );
}

function mergedInto(
  kept: Kept,
  set: Patch,
  words: MergedWords["words"] | undefined,
  input: MergeInput,
  at: number,
): MergeDecision {
  const change: Mutable<NewChange> = {
    notification_id: kept.delivery.id,
    command: "merge",
    path: [],
    prev: null,
    set,
    event_id: input.event_id,
    subscriber_id: input.subscriber_id,
  };
  if (input.row !== undefined) change.row = input.row;
  if (words !== undefined) change.words = words;
  const notification = words === undefined ? kept.notification : { ...kept.notification, ...words };
  return { outcome: "merged", change, next: { notification, delivery: patched(kept.delivery, [], set, at) } };
}

/** Applies what the journal says; the caller has checked that it is legal. */
export function evolve(kept: Kept | undefined, change: Change, at: number): Kept {
  if (change.command === "create") {
    const { notification, path, set } = change;
    assert(notification !== undefined, `the journal creates ${change.notification_id} without saying what it is`);
    return { notification, delivery: patched(start(notification), path, set, at) };
  }
  assert(kept !== undefined, `the journal changes ${change.notification_id} before it is created`);
  const notification = change.words === undefined ? kept.notification : { ...kept.notification, ...change.words };
  return { notification, delivery: patched(kept.delivery, change.path, change.set, at) };
}

function patched(delivery: Delivery, path: readonly State[], set: Patch, at: number): Delivery {
  // Field by field, since this is on every path, and a spread with an assignment takes ten times as long.
  const next = {
    id: delivery.id,
    user_id: delivery.user_id,
    thread_id: delivery.thread_id,
    state: path.length === 0 ? delivery.state : (path[path.length - 1] as State),
    channel: delivery.channel,
    effective: delivery.effective,
    priority: delivery.priority,
    revision: delivery.revision,
    count: delivery.count,
    rows: delivery.rows,
    lease_epoch: delivery.lease_epoch,
    lease: delivery.lease as LeaseRef | null,
    deadline: delivery.deadline,
    open_until: delivery.open_until,
    not_before: delivery.not_before,
    attempts: delivery.attempts,
    quiet: delivery.quiet,
    updated_at: at,
    action: delivery.action,
    read_at: delivery.read_at,
    reason: delivery.reason,
  } satisfies Record<keyof Delivery, unknown>;
  // A change sets one or two of them: to ask it for each of the others took longer than everything else here.
  for (const name in set) {
    const value = set[name as keyof Patch];
    if (value !== undefined && name in next) (next as Record<string, unknown>)[name] = value;
  }
  // Not asked for beforehand: the words of an assertion cost more than the rest of this.
  if ((next.state === "LOCKED") !== (next.lease !== null))
    assert(false, `${next.id} would be ${next.state} with${next.lease === null ? "out" : ""} a lease`);
  return next as Delivery;
}

/** What the watchdog does with a delivery whose time is up; null if it is not. */
export function overdueCommand(delivery: Delivery, leaseExpired: boolean, at: number): Command | null {
  const { state, channel, deadline } = delivery;
  switch (state) {
    case "PENDING":
      if (deadline > at) return null;
      if (channel === "agent") return { column: "escalate", reason: "deadline" };
      if (channel === "context") return { column: "suppress", reason: "expired" };
      return { column: "expire" };
    case "DISPATCHED":
    case "ESCALATED":
      return deadline <= at ? { column: "expire" } : null;
    case "LOCKED":
      if (!leaseExpired) return null;
      if (channel === "agent") return { column: "escalate", reason: "lease_expired" };
      return { column: "release", epoch: delivery.lease_epoch };
    case "DELIVERED":
    case "FAILED":
    case "SUPPRESSED":
      return null;
    default:
      return unreachable(state);
  }
}

/** A released agent item that has had its attempts goes to the user; a context item waits on. */
export function afterRelease(delivery: Delivery, policy: DeliveryPolicy): Command | null {
  if (delivery.channel !== "agent" || delivery.attempts < policy.attemptsMax) return null;
  return { column: "escalate", reason: "attempts" };
}

/**
 * What closing a thread does to a delivery in it: floor items move to the inbox, must-narrate ones escalate there,
 * agent-decides and context ones end SUPPRESSED `expired` (released first, if a turn holds them). What is addressed
 * to the user was never the thread's: a turn that holds it lets go.
 */
export function closeCommands(delivery: Delivery): Command[] {
  const { state, channel, effective, lease_epoch } = delivery;
  if (isTerminal(state)) return [];
  if (effective.address === "user") return state === "LOCKED" ? [{ column: "release", epoch: lease_epoch }] : [];
  if (channel === "floor") return [{ column: "dispatch", address: "user" }];
  if (channel === "agent" && mustNarrate(effective))
    return [{ column: "escalate", reason: "thread_closed", address: "user" }];
  const suppress: Command = { column: "suppress", reason: "expired" };
  return state === "LOCKED" ? [{ column: "release", epoch: lease_epoch }, suppress] : [suppress];
}
