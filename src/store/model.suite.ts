/**
 * A store against a model: random commands over every column of the grid, dedup, promotion, observation, thread close
 * and redrive. The model is the pure reducer over plain maps. After every step the ledger must equal the model, what
 * the journal replays to must equal the ledger, terminal states must not have changed and epochs must not have fallen.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type { Axes } from "../domain/axes.js";
import {
  ADDRESSES,
  channelOf,
  effectiveAxes,
  HANDLERS,
  isSystemChannel,
  mustNarrate,
  TARGETS,
} from "../domain/axes.js";
import { isMiss, type Miss } from "../domain/errors.js";
import type { Event } from "../domain/event.js";
import {
  DIRECT_SUBSCRIBER,
  type NotificationId,
  notificationId,
  subscriberId,
  type ThreadId,
  threadId,
  userId,
} from "../domain/ids.js";
import type { Kept } from "../domain/notification.js";
import { DEFAULT_POLICY, type DeliveryPolicy } from "../domain/policy.js";
import { HOST } from "../domain/principal.js";
import { PRIORITIES, type Priority, priorityRank } from "../domain/priority.js";
import {
  afterRelease,
  type Command,
  closeCommands,
  create,
  decide,
  decideMerge,
  evolve,
  overdueCommand,
} from "../domain/reducer.js";
import { mostSevere } from "../domain/severity.js";
import { parseSubject } from "../domain/subject.js";
import { type Column, isTerminal } from "../domain/transitions.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { Row, Store } from "./contract.js";
import { acceptance, keptAndCounted, type StoreHarness } from "./contract.suite.js";
import { PlainEditor } from "./editor.suite.js";
import { addedUpAndCounted } from "./series.suite.js";

const START_MS = Date.UTC(2026, 0, 3);
const USERS = ["alice", "bob"].map(userId);
const THREADS = ["a1", "a2", "b1"].map(threadId);
const OWNER_OF = (thread: ThreadId) => userId(thread.startsWith("a") ? "alice" : "bob");
const WINDOW_MS = 5_000;
const BATCH = { window_ms: 3_000, max_size: 3 };
/** What comes with its own words, and what is worded by its rows. */
const [GIVEN, WORDED] = [DIRECT_SUBSCRIBER, subscriberId("tool_failure")];
/** Whoever is told something of an open batch is told all of it. */
const NEEDS_WORDS: readonly Column[] = ["dispatch", "collect", "ack", "escalate", "expire"];
const POLICY: DeliveryPolicy = {
  ...DEFAULT_POLICY,
  agentTtlMs: 20_000,
  contextTtlMs: 60_000,
  systemTtlMs: 90_000,
  backoffMs: 1_000,
};

/** What happens to batches; each must have happened. */
export const BATCH_VISITS = [
  "told of several rows",
  "without what was seen",
  "without what is off",
  "kept back whole",
  "full",
  "urgent",
  "counted to a later row after it was closed",
  "counted to a row after its window",
  "judged before it was taken to the user",
];

/** How often each cell of the grid was visited, as `STATE column`: a history that visits nothing proves nothing. */
export type Visits = Map<string, number>;

/** What the store should hold, by the reducer alone. */
class Model {
  at = START_MS;
  readonly kept = new Map<NotificationId, Kept>();
  readonly windows = new Map<string, { id: NotificationId; row: number; until: number }>();
  readonly rows = new Map<NotificationId, Row[]>();
  /** By user and thread, the batch that was opened last. */
  readonly newest = new Map<string, NotificationId>();
  /** The keys of the rows. */
  readonly keys = new Map<NotificationId, (string | null)[]>();
  readonly editor = new PlainEditor();
  readonly closed = new Set<ThreadId>();
  readonly observed = new Map<string, number>();
  readonly leases = new Map<string, number>();
  readonly redriven = new Set<NotificationId>();
  readonly numbers = new Map<NotificationId, number>();

  constructor(readonly visits: Visits) {}

  get context() {
    return { at: this.at, policy: POLICY };
  }

  add(kept: Kept, event: Event): void {
    this.numbers.set(kept.delivery.id, this.numbers.size);
    this.kept.set(kept.delivery.id, kept);
    this.rows.set(kept.delivery.id, [{ event, count: 1, since: event.timestamp }]);
    this.keys.set(kept.delivery.id, [kept.notification.dedupe_key]);
  }

  rowsOf({ delivery }: Kept): Row[] {
    return this.rows.get(delivery.id) ?? [];
  }

  say(rows: readonly Row[]): string {
    return this.editor.words(WORDED, rows).content;
  }

  hasObserved(thread_id: ThreadId | null, subject: string | null): boolean {
    if (thread_id === null || subject === null) return false;
    const { name, generation } = parseSubject(subject);
    return (this.observed.get(`${thread_id}/${name}`) ?? -1) >= generation;
  }

  /** Which rows are to be told now, and why not the others. */
  judge(kept: Kept, toldNow: boolean): { told: Row[]; observed: boolean; held: number } {
    const { notification, delivery } = kept;
    const forAgent = notification.axes.target === "agent" || notification.axes.handler === "agent";
    const seen = ({ event }: Row) => forAgent && this.hasObserved(delivery.thread_id, event.subject);
    const rows = this.rowsOf(kept);
    const off = ({ event }: Row) => toldNow && this.editor.off.has(event.type);
    const told = rows.filter((row) => !seen(row) && !off(row));
    return { told, observed: rows.some(seen), held: rows.length - told.length };
  }

  wordCommand(kept: Kept, toldNow: boolean): Command {
    const { told, observed, held } = this.judge(kept, toldNow);
    if (told.length === 0 && held > 0) return { column: "suppress", reason: observed ? "observed" : "muted" };
    const { subscriber_id, redrive_of, content, severity, kind } = kept.notification;
    const given = subscriber_id === GIVEN || redrive_of !== null;
    const worst = given ? severity : mostSevere(told.map(({ event }) => event.severity));
    const words = { content: given ? content : this.say(told), severity: worst, degraded: null };
    const types = told.map(({ event }) => event.type);
    const another = given || types.includes(kind) ? undefined : types[0];
    return { column: "flush", words: another === undefined ? words : { ...words, kind: another } };
  }

  /** What must be done before it is told; null if all of it is told as it stands. */
  judgeCommand(kept: Kept): Command | null {
    const { attempts, rows } = kept.delivery;
    const whole = attempts === 0 || rows === 1;
    if (whole && (this.editor.off.size === 0 || this.judge(kept, true).held === 0)) return null;
    return this.wordCommand(kept, true);
  }

  beforeTelling(kept: Kept, column: Column): Command | null {
    const { open_until, state } = kept.delivery;
    if (open_until !== null) return NEEDS_WORDS.includes(column) ? this.wordCommand(kept, true) : null;
    if (column !== "escalate" || state !== "PENDING") return null;
    const command = this.judgeCommand(kept);
    return command === null || decide(kept, command, this.context).outcome !== "changed" ? null : command;
  }

  flush(kept: Kept, forAgent = false): void {
    const toldNow = forAgent || isSystemChannel(kept.delivery.channel);
    const command = this.wordCommand(kept, toldNow);
    const { told, observed, held } = this.judge(kept, toldNow);
    if (told.length > 1) this.visit("batch", "told of several rows");
    if (told.length > 0 && held > 0) this.visit("batch", observed ? "without what was seen" : "without what is off");
    if (told.length === 0) this.visit("batch", "kept back whole");
    const shown = command.column === "flush" && isSystemChannel(kept.delivery.channel);
    this.run(kept.delivery.id, shown ? [command, { column: "dispatch" }] : [command]);
  }

  /** The one that was opened last, if it is still open. */
  openBatch(user_id: string, thread_id: ThreadId | null): Kept | undefined {
    const id = this.newest.get(`${user_id}/${thread_id}`);
    const kept = id === undefined ? undefined : this.kept.get(id);
    return kept?.delivery.open_until === null ? undefined : kept;
  }

  leaseExpired(kept: Kept): boolean {
    const { lease } = kept.delivery;
    return lease !== null && (this.leases.get(lease.id) ?? 0) <= this.at;
  }

  /** The state after a command and what follows from it; or the code of the miss. */
  run(id: NotificationId, commands: readonly Command[], byHolder = false, judged = true): string | undefined {
    const kept = this.kept.get(id);
    if (kept === undefined) return "not_found";
    let current = kept;
    const queue = [...commands];
    for (let command = queue.shift(); command !== undefined; command = queue.shift()) {
      const { delivery } = current;
      if (byHolder && delivery.state === "LOCKED" && "epoch" in command && command.epoch === delivery.lease_epoch)
        if (this.leaseExpired(current)) return "stale_lease";
      const first = judged ? this.beforeTelling(current, command.column) : null;
      if (first !== null) {
        if (first.column === "suppress") queue.length = 0;
        else queue.unshift(command);
        if (delivery.open_until === null) this.visit("batch", "judged before it was taken to the user");
        command = first;
      }
      this.visit(delivery.state, command.column);
      const decision = decide(current, command, this.context);
      if (decision.outcome === "miss") return decision.miss.miss;
      if (decision.outcome === "same") continue;
      current = {
        notification: { ...current.notification, ...decision.change.words },
        delivery: decision.next,
      };
      if (command.column === "release" && queue.length === 0) queue.push(...this.afterLetGo(current));
    }
    this.kept.set(id, current);
    return undefined;
  }

  afterLetGo(kept: Kept): Command[] {
    const seen = this.observedCommand(kept);
    if (seen?.column === "suppress") return [seen];
    const further = afterRelease(kept.delivery, POLICY);
    return [...(seen === null ? [] : [seen]), ...(further === null ? [] : [further])];
  }

  observedCommand(kept: Kept): Command | null {
    const { notification, delivery } = kept;
    if (isSystemChannel(delivery.channel) || (delivery.rows === 1 && notification.subject === null)) return null;
    const { told, observed } = this.judge(kept, false);
    if (!observed || (told.length > 0 && delivery.open_until !== null)) return null;
    return this.wordCommand(kept, false);
  }

  visit(state: string, column: string): void {
    const cell = `${state} ${column}`;
    this.visits.set(cell, (this.visits.get(cell) ?? 0) + 1);
  }

  inOrder(): Kept[] {
    return [...this.kept.values()];
  }

  pendingFor(user_id: string, thread_id: ThreadId | undefined): Kept[] {
    return this.inOrder()
      .filter(({ delivery }) => {
        const reachable =
          delivery.effective.address === "user" ? true : thread_id !== undefined && delivery.thread_id === thread_id;
        const forAgent = delivery.channel === "agent" || delivery.channel === "context";
        return (
          delivery.user_id === user_id &&
          delivery.state === "PENDING" &&
          forAgent &&
          reachable &&
          delivery.not_before <= this.at
        );
      })
      .sort(
        (one, other) =>
          priorityRank(one.delivery.priority) - priorityRank(other.delivery.priority) ||
          (this.numbers.get(one.delivery.id) ?? 0) - (this.numbers.get(other.delivery.id) ?? 0),
      );
  }
}

/** The store under test and what is remembered of it between steps. */
class Real {
  readonly replayed = new Map<NotificationId, Kept>();
  before = new Map<NotificationId, Kept>();
  cursor = 0;

  constructor(
    readonly store: Store,
    readonly clock: ManualClock,
    readonly editor: PlainEditor,
  ) {}
}

type Step = fc.AsyncCommand<Model, Real>;

function step(name: string, run: (model: Model, real: Real) => Promise<void>): Step {
  return {
    check: () => true,
    async run(model, real) {
      await run(model, real);
      await compare(model, real);
    },
    toString: () => name,
  };
}

async function ledgerOf(store: Store): Promise<Map<NotificationId, Kept>> {
  const ledger = new Map<NotificationId, Kept>();
  for (let after = 0; ; ) {
    const page = await store.ledger(after, 100);
    for (const { notification, delivery, number } of page) {
      ledger.set(delivery.id, { notification, delivery });
      after = number;
    }
    if (page.length < 100) return ledger;
  }
}

async function compare(model: Model, real: Real): Promise<void> {
  const ledger = await ledgerOf(real.store);
  expect([...ledger.values()]).toEqual(model.inOrder());
  for (const [id, before] of real.before) {
    const now = ledger.get(id) as Kept;
    if (isTerminal(before.delivery.state)) {
      expect(now.delivery.state).toBe(before.delivery.state);
      expect(now.notification).toEqual(before.notification);
    }
    expect(now.delivery.lease_epoch).toBeGreaterThanOrEqual(before.delivery.lease_epoch);
  }
  for (let end = false; !end; ) {
    const page = await real.store.entries(HOST, real.cursor, 100);
    for (const entry of page.entries)
      for (const change of entry.changes)
        real.replayed.set(change.notification_id, evolve(real.replayed.get(change.notification_id), change, entry.at));
    real.cursor = page.after;
    end = page.end;
  }
  expect(real.replayed).toEqual(ledger);
  real.before = ledger;
}

interface EmitPlan {
  readonly user: number;
  readonly thread: number | null;
  readonly axes: Axes;
  readonly priority: Priority;
  readonly key: number | null;
  readonly text: number;
  readonly subject: string | null;
  readonly filtered: boolean;
  /** Worded by its subscriber, and batched. */
  readonly worded: boolean;
}

async function emit(plan: EmitPlan, model: Model, real: Real): Promise<void> {
  const thread_id = plan.thread === null ? null : (THREADS[plan.thread] as ThreadId);
  const user_id = thread_id === null ? (USERS[plan.user] as (typeof USERS)[number]) : OWNER_OF(thread_id);
  const dedupe_key = plan.key === null ? null : `k${plan.key}`;
  const content = `text ${plan.text}`;
  const { axes, priority, filtered, subject } = plan;
  const { worded } = plan;
  const subscriber_id = worded ? WORDED : GIVEN;
  const type = plan.text === 2 ? "tool.call.timeout" : "tool.call.failure";
  const severity = plan.text === 1 ? "warning" : "error";
  const accepted = await real.store.accept(
    HOST,
    acceptance(
      { user_id, thread_id, dedupe_key, subject, type, severity, payload: { text: plan.text } },
      {
        ...{ subscriber_id, axes, priority, filtered, severity, dedupe_window_ms: WINDOW_MS },
        ...(worded ? { content: null, batch: BATCH } : { content }),
      },
    ),
  );
  const stored = accepted.matches[0]?.stored;
  const [event] = await real.store.events(HOST, [accepted.event_id]);
  if (stored === undefined || event === undefined) throw new Error("the draft was not taken");
  const row: Row = { event, count: 1, since: event.timestamp };

  const over = thread_id !== null && model.closed.has(thread_id);
  const batched = worded && !filtered && priority !== "critical" && !over;
  const shown = isSystemChannel(channelOf(effectiveAxes(axes, thread_id !== null)));
  const escalates = over && mustNarrate(axes);
  const muted = !filtered && !batched && (shown || escalates) && model.editor.off.has(type);
  const window = dedupe_key === null || filtered ? undefined : [user_id, thread_id, worded, dedupe_key].join("/");
  const until = model.at + WINDOW_MS;

  const merge = (into: Kept, at: number): boolean | { linked_to: NotificationId | null } => {
    model.visit(into.delivery.state, "merge");
    const rows = model.rowsOf(into);
    const with_ = (shownEvent: Event | undefined) =>
      rows.map((one, index) => (index === at ? { ...one, event: shownEvent ?? one.event, count: one.count + 1 } : one));
    const merged = decideMerge(
      into,
      {
        ...{ event_id: event.id, subscriber_id, priority, ...(worded ? { row: at } : {}) },
        words: () => {
          const { data, directive } = into.notification;
          if (!worded) {
            const words = { content, data, directive, severity, degraded: null } as const;
            return { words, revises: content !== into.notification.content };
          }
          const text = model.say(with_(event));
          const same = JSON.stringify(rows[at]?.event.payload) === JSON.stringify(event.payload);
          const sameSubject = rows[at]?.event.subject === event.subject;
          const revises = !(same && sameSubject) && model.say(with_(undefined)) !== text;
          const worst = mostSevere(with_(event).map((one) => one.event.severity));
          return { words: { content: text, data, directive, severity: worst, degraded: null }, revises };
        },
      },
      model.at,
    );
    if (merged.outcome === "new") return { linked_to: merged.linked_to };
    expect(stored.delivery.id).toBe(into.delivery.id);
    model.kept.set(into.delivery.id, merged.next);
    if (worded) model.rows.set(into.delivery.id, at < rows.length ? with_(event) : [...rows, row]);
    const full = at === rows.length && merged.next.delivery.rows >= BATCH.max_size;
    const urgent = merged.next.delivery.open_until !== null && merged.next.delivery.priority === "critical";
    if (full) model.visit("batch", "full");
    if (urgent) model.visit("batch", "urgent");
    if (into.delivery.open_until === null && at > 0) model.visit("batch", "counted to a later row after it was closed");
    if (full || urgent) model.flush(merged.next);
    return true;
  };

  let linked_to: NotificationId | null = null;
  const known = window === undefined || muted ? undefined : model.windows.get(window);
  const into = known === undefined ? undefined : model.kept.get(known.id);
  if (known !== undefined && into !== undefined && known.until > model.at) {
    const answer = merge(into, known.row);
    if (answer === true) return;
    if (typeof answer === "object") linked_to = answer.linked_to;
  }
  const forAgent = axes.target === "agent" || axes.handler === "agent";
  const isObserved = forAgent && model.hasObserved(thread_id, subject);
  const open = batched && !isObserved ? model.openBatch(user_id, thread_id) : undefined;
  const alike =
    open !== undefined &&
    open.delivery.priority === priority &&
    JSON.stringify(open.notification.axes) === JSON.stringify(axes);
  if (open !== undefined && alike) {
    const late = model.at - open.notification.created_at >= WINDOW_MS && dedupe_key !== null;
    const known = late ? model.keys.get(open.delivery.id)?.indexOf(dedupe_key) : -1;
    const at = known === undefined || known < 0 ? open.delivery.rows : known;
    if (at === open.delivery.rows) model.keys.get(open.delivery.id)?.push(dedupe_key);
    else model.visit("batch", "counted to a row after its window");
    merge(open, at);
    if (window !== undefined && at === open.delivery.rows)
      model.windows.set(window, { id: open.delivery.id, row: at, until });
    return;
  }
  // The id and what follows from the input are the store's to choose; the rest is compared field by field.
  const notification = { ...stored.notification, linked_to, content: worded ? model.say([row]) : content };
  const suppress = filtered ? "filtered" : isObserved ? "observed" : muted ? "muted" : null;
  const waits = priority === "low" && !isSystemChannel(channelOf(axes));
  const open_until = batched ? (waits ? Infinity : model.at + BATCH.window_ms) : null;
  const { next } = create(notification, { priority, ttl_ms: null, suppress, open_until }, model.context);
  model.add({ notification, delivery: next }, event);
  if (next.open_until !== null) model.newest.set(`${user_id}/${thread_id}`, next.id);
  if (over) model.run(next.id, closeCommands(next), false, false);
  if (window !== undefined) model.windows.set(window, { id: next.id, row: 0, until });
}

/** Any notification; of three times once one that is held, and once a dead letter, if there are any: those are few. */
const pick = (model: Model, index: number) => {
  const rare = (["LOCKED", "FAILED"] as const)[index % 3];
  const few = model.inOrder().filter(({ delivery }) => delivery.state === rare);
  const some = few.length > 0 ? few : model.inOrder();
  return some[Math.floor(index / 3) % Math.max(1, some.length)]?.delivery.id ?? notificationId("none");
};

async function command(index: number, make: (kept: Kept | undefined) => Command, model: Model, real: Real) {
  const id = pick(model, index);
  const chosen = make(model.kept.get(id));
  const answer = await real.store.command(HOST, { id, command: chosen, operation: "ack" });
  const miss = model.run(id, [chosen], true);
  expect(isMiss(answer) ? answer.miss : undefined).toBe(miss);
}

async function claim(thread: number | null, user: number, limit: number, leaseMs: number, model: Model, real: Real) {
  const thread_id = thread === null ? undefined : (THREADS[thread] as ThreadId);
  const user_id = thread_id === undefined ? (USERS[user] as (typeof USERS)[number]) : OWNER_OF(thread_id);
  if (thread_id !== undefined) await real.store.startThread(HOST, user_id, thread_id).catch(() => undefined);
  if (thread_id !== undefined && model.closed.has(thread_id)) return;
  const answer = await real.store.claim(HOST, {
    user_id,
    ...(thread_id === undefined ? {} : { thread_id }),
    limit,
    owner: "turn",
    lease_ms: leaseMs,
  });
  for (const { notification, delivery } of model.inOrder()) {
    const here = notification.thread_id === null || notification.thread_id === thread_id;
    if (delivery.open_until === null || delivery.user_id !== user_id || !here) continue;
    const kept = model.kept.get(delivery.id);
    if (kept !== undefined && !isSystemChannel(delivery.channel)) model.flush(kept, true);
  }
  const expected: Kept[] = [];
  for (const pending of model.pendingFor(user_id, thread_id)) {
    if (expected.length === limit) break;
    const command = model.judgeCommand(pending);
    if (command !== null) model.run(pending.delivery.id, [command]);
    const kept = model.kept.get(pending.delivery.id);
    if (kept?.delivery.state === "PENDING") expected.push(kept);
  }
  expect(answer.claimed.map((one) => one.delivery.id)).toEqual(expected.map((one) => one.delivery.id));
  if (answer.lease === null) return;
  const { id, owner, expires_at } = answer.lease;
  expect(expires_at).toBe(model.at + leaseMs);
  model.leases.set(id, expires_at);
  for (const kept of expected)
    model.run(kept.delivery.id, [
      { column: "collect", lease: { id, owner }, ...(thread_id === undefined ? {} : { thread_id }) },
    ]);
}

async function sweep(model: Model, real: Real): Promise<void> {
  for (let acted = 1; acted > 0; ) acted = await real.store.sweep(3);
  for (let acted = true; acted; ) {
    acted = false;
    for (const kept of model.inOrder()) {
      const { open_until, deadline } = kept.delivery;
      const ended = open_until !== null && open_until <= model.at && deadline > model.at;
      const due = overdueCommand(kept.delivery, model.leaseExpired(kept), model.at);
      if (ended) model.flush(kept);
      else if (due !== null) model.run(kept.delivery.id, [due]);
      else continue;
      acted = true;
    }
  }
}

/** The operator switches a kind off, or on again. */
async function switchOne(model: Model, real: Real): Promise<void> {
  for (const { off } of [model.editor, real.editor]) if (!off.delete("tool.call.timeout")) off.add("tool.call.timeout");
}

async function observe(thread: number, subject: string, model: Model, real: Real): Promise<void> {
  const thread_id = THREADS[thread] as ThreadId;
  await real.store.startThread(HOST, OWNER_OF(thread_id), thread_id).catch(() => undefined);
  await real.store.observe(HOST, thread_id, subject);
  const about = parseSubject(subject);
  const name = `${thread_id}/${about.name}`;
  model.observed.set(name, Math.max(model.observed.get(name) ?? -1, about.generation));
  for (const kept of model.inOrder()) {
    const { notification, delivery } = kept;
    if (delivery.thread_id !== thread_id || delivery.state !== "PENDING") continue;
    const its = notification.subject === null ? null : parseSubject(notification.subject).name;
    if (delivery.rows === 1 && its !== about.name) continue;
    const command = model.observedCommand(kept);
    if (command !== null) model.run(delivery.id, [command]);
  }
}

async function closeThread(thread: number, model: Model, real: Real): Promise<void> {
  const thread_id = THREADS[thread] as ThreadId;
  await real.store.startThread(HOST, OWNER_OF(thread_id), thread_id).catch(() => undefined);
  await real.store.closeThread(HOST, thread_id);
  if (model.closed.has(thread_id)) return;
  model.closed.add(thread_id);
  for (const { delivery } of model.inOrder())
    if (delivery.thread_id === thread_id) model.run(delivery.id, closeCommands(delivery));
}

async function redrive(index: number, model: Model, real: Real): Promise<void> {
  const failed = model.inOrder().filter(({ delivery }) => delivery.state === "FAILED");
  const dead = index % 4 === 0 ? undefined : failed[index % Math.max(1, failed.length)];
  const id = dead?.delivery.id ?? pick(model, index);
  const answer = await real.store.redrive(HOST, id);
  const old = model.kept.get(id);
  const expected: Miss["miss"] | undefined =
    old === undefined
      ? "not_found"
      : !isTerminal(old.delivery.state)
        ? "wrong_channel"
        : old.delivery.state !== "FAILED" || model.redriven.has(id)
          ? "terminal"
          : undefined;
  expect(isMiss(answer) ? answer.miss : undefined).toBe(expected);
  if (isMiss(answer) || old === undefined) return;
  model.redriven.add(id);
  const notification = {
    ...old.notification,
    id: answer.notification.id,
    created_at: model.at,
    dedupe_until: 0,
    wake_ms: null,
    redrive_of: id,
    linked_to: null,
  };
  const { next } = create(
    notification,
    { priority: old.delivery.priority, ttl_ms: null, suppress: null },
    model.context,
  );
  const [event] = await real.store.events(HOST, [notification.event_id]);
  if (event === undefined) throw new Error("the event behind it is gone");
  model.add({ notification, delivery: next }, event);
  if (notification.thread_id !== null && model.closed.has(notification.thread_id))
    model.run(next.id, closeCommands(next), false, false);
}

const index = fc.nat({ max: 50 });
const threadIndex = fc.nat({ max: THREADS.length - 1 });
const userIndex = fc.nat({ max: USERS.length - 1 });
const axes = fc.record({
  address: fc.constantFrom(...ADDRESSES),
  target: fc.constantFrom(...TARGETS),
  handler: fc.constantFrom(...HANDLERS),
});
const subject = fc.constantFrom("h_1", "h_1#gen-1", "h_1#gen-2", "h_2#gen-1", "h_3", "h_4");
/** Mostly the epoch that holds, sometimes one that does not. */
const off = fc.constantFrom(0, 0, 0, -1, 1);
const epochOf = (kept: Kept | undefined, by: number) => Math.max(0, (kept?.delivery.lease_epoch ?? 0) + by);

const emitting = fc
  .record({
    user: userIndex,
    thread: fc.option(threadIndex),
    axes,
    priority: fc.constantFrom(...PRIORITIES),
    key: fc.option(fc.nat({ max: 1 })),
    text: fc.nat({ max: 2 }),
    subject: fc.option(subject),
    filtered: fc.constantFrom(false, false, false, true),
    worded: fc.boolean(),
  })
  .map((plan) => step(`emit ${JSON.stringify(plan)}`, (model, real) => emit(plan, model, real)));

const CONTEXT: Axes = { address: "session", target: "agent", handler: "system" };
const NARRATE: Axes = { address: "session", target: "user", handler: "agent" };
const FLOOR: Axes = { address: "session", target: "user", handler: "system" };

/** Much that goes the same way, so that there are batches of several rows. */
const batching = fc
  .record({
    user: fc.constant(0),
    thread: fc.constantFrom(0, 0, 0, 1),
    axes: fc.constantFrom(CONTEXT, CONTEXT, CONTEXT, NARRATE, FLOOR),
    priority: fc.constantFrom<Priority>("normal", "normal", "normal", "normal", "low", "critical"),
    key: fc.option(fc.nat({ max: 3 })),
    text: fc.nat({ max: 2 }),
    subject: fc.constantFrom("h_1", "h_2#gen-1", "h_3", "h_4", null),
    filtered: fc.constant(false),
    worded: fc.constant(true),
  })
  .map((plan) => step(`emit ${JSON.stringify(plan)}`, (model, real) => emit(plan, model, real)));

const steps: fc.Arbitrary<Step>[] = [
  emitting,
  emitting,
  batching,
  batching,
  batching,
  fc
    .record({ one: index, by: off, action: fc.constantFrom("rendered", "clicked", "dismissed") } as const)
    .map(({ one, by, action }) =>
      step(`ack ${one} ${by} ${action}`, (model, real) =>
        command(
          one,
          (kept) => ({
            column: "ack",
            revision: Math.max(1, (kept?.delivery.revision ?? 1) + by),
            action: action as "rendered",
          }),
          model,
          real,
        ),
      ),
    ),
  fc
    .record({ one: index, by: off, column: fc.constantFrom("settle", "release") } as const)
    .map(({ one, by, column }) =>
      step(`${column} ${one} ${by}`, (model, real) =>
        command(one, (kept) => ({ column: column as "settle", epoch: epochOf(kept, by) }), model, real),
      ),
    ),
  fc
    .record({ one: index, by: off })
    .map(({ one, by }) =>
      step(`promote ${one} ${by}`, (model, real) =>
        command(
          one,
          (kept) => ({ column: "escalate", reason: "promoted", epoch: epochOf(kept, by), note: "tool" }),
          model,
          real,
        ),
      ),
    ),
  fc
    .record({ one: index, column: fc.constantFrom("dispatch", "expire", "escalate", "suppress", "flush") } as const)
    .map(({ one, column }) =>
      step(`${column} ${one}`, (model, real) => command(one, () => PLAIN[column as keyof typeof PLAIN], model, real)),
    ),
  fc
    .record({
      thread: fc.option(threadIndex),
      user: userIndex,
      limit: fc.integer({ min: 1, max: 4 }),
      lease: fc.constantFrom(500, 10_000),
    })
    .map(({ thread, user, limit, lease }) =>
      step(`claim ${thread} ${user} ${limit} ${lease}`, (model, real) =>
        claim(thread, user, limit, lease, model, real),
      ),
    ),
  fc.constantFrom(1, 499, 1_000, 5_000, 30_000).map((ms) =>
    step(`wait ${ms}`, async (model, real) => {
      real.clock.advance(ms);
      model.at += ms;
    }),
  ),
  fc.constant(step("sweep", sweep)),
  fc.constant(step("switch", switchOne)),
  fc
    .record({ thread: threadIndex, about: subject })
    .map(({ thread, about }) =>
      step(`observe ${thread} ${about}`, (model, real) => observe(thread, about, model, real)),
    ),
  threadIndex.map((thread) => step(`close ${thread}`, (model, real) => closeThread(thread, model, real))),
  index.map((one) => step(`redrive ${one}`, (model, real) => redrive(one, model, real))),
];

const PLAIN = {
  flush: { column: "flush", words: { content: "said anew", severity: "info", degraded: "by hand" } },
  dispatch: { column: "dispatch" },
  expire: { column: "expire" },
  escalate: { column: "escalate", reason: "deadline" },
  suppress: { column: "suppress", reason: "muted" },
} as const satisfies Record<string, Command>;

export interface ModelRun {
  readonly runs: number;
  readonly steps: number;
  readonly seed: number;
}

/** Runs the property; throws with the seed and the shrunk history if the store and the model disagree. */
export async function checkAgainstModel(harness: () => Promise<StoreHarness>, options: ModelRun): Promise<Visits> {
  const visits: Visits = new Map();
  await fc.assert(
    fc.asyncProperty(fc.commands(steps, { maxCommands: options.steps, size: "max" }), async (commands) => {
      const place = await harness();
      const clock = new ManualClock(START_MS);
      const editor = new PlainEditor();
      const store = await place.open({ clock, policy: POLICY, editor });
      try {
        await store.figures();
        await fc.asyncModelRun(() => ({ model: new Model(visits), real: new Real(store, clock, editor) }), commands);
        expect((await audit(store)).problems).toEqual([]);
        const [kept, counted] = await keptAndCounted(store);
        expect(kept).toEqual(counted);
        const [added, happened] = await addedUpAndCounted(store, 7);
        expect(added).toEqual(happened);
      } finally {
        await store.close();
        await place.remove();
      }
    }),
    { numRuns: options.runs, seed: options.seed },
  );
  return visits;
}
