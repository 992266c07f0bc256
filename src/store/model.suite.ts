/**
 * A store against a model: random commands over every column of the grid, dedup, promotion, observation, thread close
 * and redrive. The model is the pure reducer over plain maps. After every step the ledger must equal the model, what
 * the journal replays to must equal the ledger, terminal states must not have changed and epochs must not have fallen.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type { Axes } from "../domain/axes.js";
import { ADDRESSES, HANDLERS, TARGETS } from "../domain/axes.js";
import { isMiss, type Miss } from "../domain/errors.js";
import { type NotificationId, notificationId, subscriberId, type ThreadId, threadId, userId } from "../domain/ids.js";
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
import { parseSubject } from "../domain/subject.js";
import { isTerminal } from "../domain/transitions.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { Store } from "./contract.js";
import { acceptance, type StoreHarness } from "./contract.suite.js";

const START_MS = Date.UTC(2026, 0, 3);
const USERS = ["alice", "bob"].map(userId);
const THREADS = ["a1", "a2", "b1"].map(threadId);
const OWNER_OF = (thread: ThreadId) => userId(thread.startsWith("a") ? "alice" : "bob");
const WINDOW_MS = 5_000;
const POLICY: DeliveryPolicy = {
  ...DEFAULT_POLICY,
  agentTtlMs: 20_000,
  contextTtlMs: 60_000,
  systemTtlMs: 90_000,
  backoffMs: 1_000,
};

/** How often each cell of the grid was visited, as `STATE column`: a history that visits nothing proves nothing. */
export type Visits = Map<string, number>;

/** What the store should hold, by the reducer alone. */
class Model {
  at = START_MS;
  readonly kept = new Map<NotificationId, Kept>();
  readonly windows = new Map<string, NotificationId>();
  readonly closed = new Set<ThreadId>();
  readonly observed = new Map<string, number>();
  readonly leases = new Map<string, number>();
  readonly redriven = new Set<NotificationId>();
  readonly numbers = new Map<NotificationId, number>();

  constructor(readonly visits: Visits) {}

  get context() {
    return { at: this.at, policy: POLICY };
  }

  add(kept: Kept): void {
    this.numbers.set(kept.delivery.id, this.numbers.size);
    this.kept.set(kept.delivery.id, kept);
  }

  leaseExpired(kept: Kept): boolean {
    const { lease } = kept.delivery;
    return lease !== null && (this.leases.get(lease.id) ?? 0) <= this.at;
  }

  /** The state after a command and what follows from it; or the code of the miss. */
  run(id: NotificationId, commands: readonly Command[], byHolder = false): string | undefined {
    const kept = this.kept.get(id);
    if (kept === undefined) return "not_found";
    let { delivery } = kept;
    const queue = [...commands];
    for (let command = queue.shift(); command !== undefined; command = queue.shift()) {
      if (byHolder && delivery.state === "LOCKED" && "epoch" in command && command.epoch === delivery.lease_epoch)
        if (this.leaseExpired({ ...kept, delivery })) return "stale_lease";
      this.visit(delivery.state, command.column);
      const decision = decide(delivery, command, this.context);
      if (decision.outcome === "miss") return decision.miss.miss;
      if (decision.outcome === "same") continue;
      delivery = decision.next;
      const letGo = command.column === "release" && queue.length === 0;
      const further = letGo ? this.afterLetGo({ ...kept, delivery }) : null;
      if (further !== null) queue.push(further);
    }
    this.kept.set(id, { ...kept, delivery });
    return undefined;
  }

  afterLetGo({ notification, delivery }: Kept): Command | null {
    const about = notification.subject === null ? null : parseSubject(notification.subject);
    const seen = about === null ? -1 : (this.observed.get(`${delivery.thread_id}/${about.name}`) ?? -1);
    if (about !== null && seen >= about.generation) return { column: "suppress", reason: "observed" };
    return afterRelease(delivery, POLICY);
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
}

async function emit(plan: EmitPlan, model: Model, real: Real): Promise<void> {
  const thread_id = plan.thread === null ? null : (THREADS[plan.thread] as ThreadId);
  const user_id = thread_id === null ? (USERS[plan.user] as (typeof USERS)[number]) : OWNER_OF(thread_id);
  const dedupe_key = plan.key === null ? null : `k${plan.key}`;
  const content = `text ${plan.text}`;
  const { axes, priority, filtered, subject } = plan;
  const accepted = await real.store.accept(
    HOST,
    acceptance(
      { user_id, thread_id, dedupe_key, subject },
      { axes, priority, filtered, content, dedupe_window_ms: WINDOW_MS },
    ),
  );
  const stored = accepted.matches[0]?.stored;
  if (stored === undefined) throw new Error("the draft was not taken");

  const window = dedupe_key === null || filtered ? undefined : [user_id, thread_id, dedupe_key].join("/");
  const openId = window === undefined ? undefined : model.windows.get(window);
  const open = openId === undefined ? undefined : model.kept.get(openId);
  let linked_to: NotificationId | null = null;
  if (open !== undefined && open.notification.dedupe_until > model.at) {
    const words = { content, data: null, severity: "error", directive: null } as const;
    model.visit(open.delivery.state, "merge");
    const merge = decideMerge(
      open,
      { event_id: accepted.event_id, subscriber_id: subscriberId("tool_failure"), words, priority },
      model.at,
    );
    if (merge.outcome === "merged") {
      expect(stored.delivery.id).toBe(openId);
      model.kept.set(open.delivery.id, merge.next);
      return;
    }
    linked_to = merge.linked_to;
  }
  // The id and what follows from the input are the store's to choose; the rest is compared field by field.
  const notification = { ...stored.notification, linked_to };
  const about = subject === null ? null : parseSubject(subject);
  const seen = about === null ? -1 : (model.observed.get(`${thread_id}/${about.name}`) ?? -1);
  const forAgent = axes.target === "agent" || axes.handler === "agent";
  const isObserved = about !== null && forAgent && seen >= about.generation;
  const suppress = filtered ? "filtered" : isObserved ? "observed" : null;
  const { next } = create(notification, { priority, ttl_ms: null, suppress }, model.context);
  model.add({ notification, delivery: next });
  if (thread_id !== null && model.closed.has(thread_id)) model.run(next.id, closeCommands(next));
  if (window !== undefined) model.windows.set(window, next.id);
}

/** Any notification; every third time one that is held, if there is one, since those are few. */
const pick = (model: Model, index: number) => {
  const held = model.inOrder().filter(({ delivery }) => delivery.state === "LOCKED");
  const some = index % 3 === 0 && held.length > 0 ? held : model.inOrder();
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
  const expected = model.pendingFor(user_id, thread_id).slice(0, limit);
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
      const due = overdueCommand(kept.delivery, model.leaseExpired(kept), model.at);
      if (due === null) continue;
      model.run(kept.delivery.id, [due]);
      acted = true;
    }
  }
}

async function observe(thread: number, subject: string, model: Model, real: Real): Promise<void> {
  const thread_id = THREADS[thread] as ThreadId;
  await real.store.startThread(HOST, OWNER_OF(thread_id), thread_id).catch(() => undefined);
  await real.store.observe(HOST, thread_id, subject);
  const about = parseSubject(subject);
  const name = `${thread_id}/${about.name}`;
  model.observed.set(name, Math.max(model.observed.get(name) ?? -1, about.generation));
  for (const { notification, delivery } of model.inOrder()) {
    if (delivery.thread_id !== thread_id || delivery.state !== "PENDING" || notification.subject === null) continue;
    const its = parseSubject(notification.subject);
    if (its.name === about.name && its.generation <= about.generation)
      model.run(delivery.id, [{ column: "suppress", reason: "observed" }]);
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
    redrive_of: id,
    linked_to: null,
  };
  const { next } = create(
    notification,
    { priority: old.delivery.priority, ttl_ms: null, suppress: null },
    model.context,
  );
  model.add({ notification, delivery: next });
  if (notification.thread_id !== null && model.closed.has(notification.thread_id))
    model.run(next.id, closeCommands(next));
}

const index = fc.nat({ max: 50 });
const threadIndex = fc.nat({ max: THREADS.length - 1 });
const userIndex = fc.nat({ max: USERS.length - 1 });
const axes = fc.record({
  address: fc.constantFrom(...ADDRESSES),
  target: fc.constantFrom(...TARGETS),
  handler: fc.constantFrom(...HANDLERS),
});
const subject = fc.constantFrom("h_1", "h_1#gen-1", "h_1#gen-2", "h_2#gen-1");
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
  })
  .map((plan) => step(`emit ${JSON.stringify(plan)}`, (model, real) => emit(plan, model, real)));

const steps: fc.Arbitrary<Step>[] = [
  emitting,
  emitting,
  emitting,
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
    .record({ one: index, column: fc.constantFrom("dispatch", "expire", "escalate", "suppress") } as const)
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
  fc
    .record({ thread: threadIndex, about: subject })
    .map(({ thread, about }) =>
      step(`observe ${thread} ${about}`, (model, real) => observe(thread, about, model, real)),
    ),
  threadIndex.map((thread) => step(`close ${thread}`, (model, real) => closeThread(thread, model, real))),
  index.map((one) => step(`redrive ${one}`, (model, real) => redrive(one, model, real))),
];

const PLAIN = {
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
      const store = await place.open({ clock, policy: POLICY });
      try {
        await fc.asyncModelRun(() => ({ model: new Model(visits), real: new Real(store, clock) }), commands);
        expect((await audit(store)).problems).toEqual([]);
      } finally {
        await store.close();
        await place.remove();
      }
    }),
    { numRuns: options.runs, seed: options.seed },
  );
  return visits;
}
