/**
 * Turns against a model of their own: whatever is begun, sent, failed, succeeded, ended, paused, closed or left alone, in whatever order,
 * each thing that an agent was to be told is where the rules say, and `audit` finds nothing (I5, I8, I23).
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { isMiss } from "../domain/errors.js";
import { type NotificationId, type TurnId, threadId, userId } from "../domain/ids.js";
import { DEFAULT_POLICY, type DeliveryPolicy } from "../domain/policy.js";
import { HOST } from "../domain/principal.js";
import type { State } from "../domain/transitions.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { BegunTurn, Collected, Store, Stored } from "./contract.js";
import { acceptance, keptAndCounted, type StoreHarness } from "./contract.suite.js";
import { PlainEditor, plainCompose } from "./editor.suite.js";
import { addedUpAndCounted } from "./series.suite.js";

const START_MS = Date.parse("2026-01-03T15:30:00.000Z");
const ALICE = userId("alice");
const THREAD = threadId("one");
const LEASE_MS = 60_000;
const LIMIT = 4;
const POLICY: DeliveryPolicy = { ...DEFAULT_POLICY, backoffMs: 1_000, attemptsMax: 3 };

const AXES = {
  context: { address: "session", target: "agent", handler: "system" },
  decides: { address: "session", target: "agent", handler: "agent" },
  narrate: { address: "session", target: "user", handler: "agent" },
} as const;
type Kind = keyof typeof AXES;

interface Item {
  readonly id: NotificationId;
  readonly kind: Kind;
  readonly critical: boolean;
  readonly created_at: number;
  state: State;
  /** The carrier that it is in, while it is held. */
  carrier: string | null;
  epoch: number;
  attempts: number;
  not_before: number;
  quiet: boolean;
}

interface Carrier {
  readonly id: Collected["id"];
  sent: boolean;
  over: boolean;
}

/** What should be. */
class Model {
  readonly items: Item[] = [];
  turn: { id: TurnId; expires_at: number } | null = null;
  carriers: Carrier[] = [];
  pauses: { from: number; until: number | null }[] = [];
  closed = false;

  get paused(): boolean {
    return this.pauses.at(-1)?.until === null;
  }

  restedSince(since: number, now: number): number {
    const overlap = ({ from, until }: Model["pauses"][number]) => Math.max(0, (until ?? now) - Math.max(from, since));
    return this.pauses.reduce((sum, one) => sum + overlap(one), 0);
  }

  /** What a collect finds, the most urgent first. */
  waiting(now: number): Item[] {
    const ready = this.items.filter(
      ({ state, not_before, quiet }) => state === "PENDING" && (quiet || not_before <= now),
    );
    return [...ready.filter(({ critical }) => critical), ...ready.filter(({ critical }) => !critical)].slice(0, LIMIT);
  }

  held(carrier?: string): Item[] {
    return this.items.filter((item) => item.state === "LOCKED" && (carrier === undefined || item.carrier === carrier));
  }

  release(item: Item, now: number, quiet: boolean): void {
    item.attempts += 1;
    item.state = "PENDING";
    item.carrier = null;

    if (item.attempts >= POLICY.attemptsMax) {
      if (item.kind === "context") item.quiet = true;
      else item.state = "ESCALATED";
    }
    if (quiet) item.quiet = true;
    item.not_before = quiet ? now : now + Math.min(60_000, 1_000 * 4 ** (item.attempts - 1));
  }

  endTurn(how: "completed" | "failed" | "stopped", now: number): void {
    for (const carrier of this.carriers.filter(({ over }) => !over)) {
      for (const item of this.held(carrier.id)) this.#settle(item, how, carrier.sent, now);
      carrier.over = true;
    }
    this.turn = null;
    this.carriers = [];
  }

  #settle(item: Item, how: "completed" | "failed" | "stopped", sent: boolean, now: number): void {
    if (how === "completed" && sent) item.state = item.kind === "narrate" ? "ESCALATED" : "DELIVERED";
    else if (how === "stopped" && item.kind === "narrate") item.state = "ESCALATED";
    else this.release(item, now, how === "stopped");
  }

  /** The watchdog. */
  sweep(now: number): void {
    if (this.turn !== null && this.turn.expires_at <= now) {
      for (const item of this.held()) {
        if (item.kind === "context") this.release(item, now, false);
        else item.state = "ESCALATED";
      }
      this.turn = null;
      this.carriers = [];
    }
    for (const item of this.items)
      if (item.state === "PENDING" && item.kind !== "context") {
        const overdue = now - this.restedSince(item.created_at, now) - item.created_at >= POLICY.agentTtlMs;
        if (overdue) item.state = "ESCALATED";
      }
  }
}

class Run {
  readonly #store: Store;
  readonly #clock: ManualClock;
  readonly model = new Model();
  readonly seen: Set<string>;

  constructor(store: Store, clock: ManualClock, seen: Set<string>) {
    this.#store = store;
    this.#clock = clock;
    this.seen = seen;
  }

  get #now(): number {
    return this.#clock.wall();
  }

  #take(carrier: Collected | null): void {
    const { model } = this;
    const expected = model.waiting(this.#now).map(({ id }) => id);
    expect((carrier?.items ?? []).map(({ delivery }) => delivery.id)).toEqual(expected);
    if (carrier === null) return;
    model.carriers.push({ id: carrier.id, sent: false, over: false });
    for (const { delivery } of carrier.items) {
      const item = model.items.find(({ id }) => id === delivery.id) as Item;
      item.state = "LOCKED";
      item.carrier = carrier.id;
      item.epoch = delivery.lease_epoch;
    }
  }

  async put(kind: Kind, critical: boolean): Promise<void> {
    if (this.model.closed) return;
    const draft = { axes: AXES[kind], ...(critical ? { priority: "critical" as const } : {}) };
    const { matches } = await this.#store.accept(HOST, acceptance({ thread_id: THREAD }, draft));
    const { delivery } = (matches[0] as { stored: Stored }).stored;
    const fresh = { state: "PENDING", carrier: null, epoch: 0, attempts: 0, not_before: 0, quiet: false } as const;
    this.model.items.push({ id: delivery.id, kind, critical, created_at: this.#now, ...fresh });
  }

  async begin(succeed: boolean): Promise<void> {
    const { model } = this;
    const active = model.turn;
    const succeeds = succeed && active !== null ? { turn_id: active.id, items: [], note: null } : null;
    const request = {
      thread_id: THREAD,
      turn_id: null,
      source: "user",
      content: "hello",
      point: "turn_start",
      limit: LIMIT,
      compose: plainCompose,
      owner: "hosted",
      lease_ms: LEASE_MS,
      succeeds,
    } as const;
    const refused = model.closed
      ? "thread_closed"
      : model.paused
        ? "thread_paused"
        : active === null || succeeds !== null
          ? succeeds !== null && active !== null && active.expires_at <= this.#now
            ? "turn_not_active"
            : null
          : "turn_active";
    if (refused !== null) {
      this.seen.add(refused);
      await expect(this.#store.beginTurn(HOST, request)).rejects.toMatchObject({ reason: refused });
      return;
    }
    const begun = (await this.#store.beginTurn(HOST, request)) as BegunTurn;
    this.seen.add(succeeds === null ? "begun" : "succeeded");
    model.turn = { id: begun.turn.id, expires_at: this.#now + LEASE_MS };
    this.#take(begun.carrier);
  }

  get #isOver(): boolean {
    const { turn } = this.model;
    return turn === null || turn.expires_at <= this.#now;
  }

  async step(): Promise<void> {
    const { turn } = this.model;
    if (turn === null) return;
    const collect = { point: "user_message", limit: LIMIT, compose: plainCompose } as const;
    const answer = await this.#store.stepTurn(HOST, { turn_id: turn.id, items: [], collect });
    if (this.#isOver) {
      this.seen.add("late step");
      expect(answer).toMatchObject({ miss: "stale_lease" });
    } else {
      if (isMiss(answer)) throw new Error(answer.message);
      this.seen.add("stepped");
      this.#take(answer.carrier);
    }
  }

  async send(fails: boolean): Promise<void> {
    const carrier = this.model.carriers.find(({ sent, over }) => !sent && !over);
    if (carrier === undefined) return;
    const answer = fails
      ? await this.#store.failCarrier(HOST, carrier.id, null)
      : await this.#store.sendCarrier(HOST, carrier.id, null);
    if (this.#isOver) {
      this.seen.add("late send");
      expect(answer).toMatchObject({ miss: "stale_lease" });
      return;
    }
    expect(isMiss(answer)).toBe(false);
    this.seen.add(fails ? "failed to send" : "sent");
    if (fails) {
      for (const item of this.model.held(carrier.id)) this.model.release(item, this.#now, false);
      carrier.over = true;
    } else {
      for (const item of this.model.held(carrier.id)) if (item.kind === "context") item.state = "DELIVERED";
      carrier.sent = true;
    }
  }

  async settleOne(promote: boolean): Promise<void> {
    const item = this.model.held().find(({ kind }) => kind !== "context");
    if (item === undefined) return;
    const { id, epoch } = item;
    const command = promote
      ? ({ column: "escalate", reason: "promoted", epoch, note: "mail", content: "the agent sent mail" } as const)
      : ({ column: "settle", epoch } as const);
    const [answer] = await this.#store.commandMany(HOST, [{ id, command, operation: "settle" }]);
    if (this.#isOver) return expect(answer).toMatchObject({ miss: "stale_lease" });
    expect(isMiss(answer)).toBe(false);
    this.seen.add(promote ? "promoted" : "acknowledged");
    item.state = promote ? "ESCALATED" : "DELIVERED";
  }

  async end(state: "completed" | "failed" | "stopped"): Promise<void> {
    const { turn } = this.model;
    if (turn === null) return;
    const answer = await this.#store.endTurn(HOST, { turn_id: turn.id, state, items: [], note: null });
    if (this.#isOver) {
      this.seen.add("late end");
      expect(answer).toMatchObject({ miss: "stale_lease" });
      return;
    }
    expect(answer).toMatchObject({ state });
    this.seen.add(state);
    this.model.endTurn(state, this.#now);
  }

  async renew(): Promise<void> {
    const { turn } = this.model;
    if (turn === null || this.#isOver) return;
    await this.#store.renewTurn(HOST, turn.id, LEASE_MS);
    turn.expires_at = this.#now + LEASE_MS;
  }

  async pause(): Promise<void> {
    const { model } = this;
    if (model.closed) return;
    this.seen.add(model.paused ? "resumed" : "paused");
    if (model.paused) {
      await this.#store.resumeThread(HOST, THREAD);
      const last = model.pauses.at(-1);
      if (last !== undefined) last.until = this.#now;
    } else {
      await this.#store.pauseThread(HOST, THREAD);
      model.pauses.push({ from: this.#now, until: null });
    }
  }

  async pass(ms: number): Promise<void> {
    this.#clock.advance(ms);
    while ((await this.#store.sweep(64)) > 0);
    if (this.model.turn !== null && this.#isOver) this.seen.add("lease ran out");
    this.model.sweep(this.#now);
  }

  async close(): Promise<void> {
    const { model } = this;
    if (model.closed) return;
    await this.#store.closeThread(HOST, THREAD);
    this.seen.add("closed");
    model.closed = true;
    model.turn = null;
    model.carriers = [];
    for (const item of model.items)
      if (item.state === "PENDING" || item.state === "LOCKED")
        item.state = item.kind === "narrate" ? "ESCALATED" : "SUPPRESSED";
  }

  /** Everything is where it should be. */
  async check(): Promise<void> {
    const { model } = this;
    for (const { id, state, quiet, attempts } of model.items) {
      const stored = await this.#store.get(HOST, id);
      expect({ id, state: stored?.delivery.state }).toEqual({ id, state });
      if (state === "PENDING") expect(stored?.delivery).toMatchObject({ quiet, attempts });
    }
    const live = model.closed ? [] : (await this.#store.liveTurns(HOST, THREAD)).map(({ id }) => id);
    expect(live).toEqual(model.turn === null ? [] : [model.turn.id]);
    const wakes = model.items.filter(
      (item) => item.state === "PENDING" && !item.quiet && (item.kind !== "context" || item.critical),
    );
    const urgentFirst = [...wakes.filter(({ critical }) => critical), ...wakes.filter(({ critical }) => !critical)];
    expect((await this.#store.waiting(HOST, ALICE)).map(({ id }) => id)).toEqual(urgentFirst.map(({ id }) => id));
  }
}

type Act = (run: Run) => Promise<void>;
const named = (text: string, act: Act): Act => Object.assign(act, { [fc.toStringMethod]: () => text });

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom<Kind>("context", "decides", "narrate"), fc.boolean())
      .map(([kind, critical]) => named(`put ${kind} ${critical}`, (run) => run.put(kind, critical))),
  },
  { weight: 4, arbitrary: fc.boolean().map((succeed) => named(`begin ${succeed}`, (run) => run.begin(succeed))) },
  { weight: 2, arbitrary: fc.constant(named("step", (run) => run.step())) },
  { weight: 4, arbitrary: fc.boolean().map((fails) => named(fails ? "fail" : "send", (run) => run.send(fails))) },
  {
    weight: 2,
    arbitrary: fc
      .boolean()
      .map((promote) => named(promote ? "promote" : "acknowledge", (run) => run.settleOne(promote))),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom("completed" as const, "failed" as const, "stopped" as const)
      .map((how) => named(how, (run) => run.end(how))),
  },
  { weight: 1, arbitrary: fc.constant(named("renew", (run) => run.renew())) },
  { weight: 1, arbitrary: fc.constant(named("pause", (run) => run.pause())) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(500, 5_000, 20_000, 61_000, 290_000)
      .map((ms) => named(`pass ${ms}`, (run) => run.pass(ms))),
  },
);

export function turnModel(
  name: string,
  harness: () => Promise<StoreHarness>,
  options: { seed: number; runs: number },
): void {
  it(
    `${name}: turns are as their model says, in ${options.runs} histories (I5, I8, I23)`,
    async () => {
      const seen = new Set<string>();
      await fc.assert(
        fc.asyncProperty(
          fc.array(act, { minLength: 20, maxLength: 60, size: "max" }),
          fc.boolean(),
          async (acts, closes) => {
            const clock = new ManualClock(START_MS);
            const place = await harness();
            const store = await place.open({ clock, policy: POLICY, editor: new PlainEditor() });
            try {
              await store.figures();
              await store.startThread(HOST, ALICE, THREAD);
              const run = new Run(store, clock, seen);
              for (const one of acts) {
                await one(run);
                await run.check();
              }
              if (closes) {
                await run.close();
                await run.check();
                await run.begin(false);
              }
              expect((await audit(store)).problems).toEqual([]);
              const [kept, counted] = await keptAndCounted(store);
              expect(kept).toEqual(counted);
              const [added, happened] = await addedUpAndCounted(store, 7);
              expect(added).toEqual(happened);
            } finally {
              await store.close();
              await place.remove();
            }
          },
        ),
        { seed: options.seed, numRuns: options.runs },
      );
      // And all of it did happen.
      for (const what of [
        "begun",
        "succeeded",
        "stepped",
        "sent",
        "failed to send",
        "acknowledged",
        "promoted",
        "completed",
        "failed",
        "stopped",
        "paused",
        "resumed",
        "closed",
        "turn_active",
        "thread_paused",
        "thread_closed",
      ])
        expect([...seen], what).toContain(what);
    },
    24 * 60 * 60 * 1000,
  );
}
