/** What is found by the coarse index, and what is counted once and then kept, against a count of the rows themselves. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";
import type { Axes } from "../../domain/axes.js";
import { type NotificationId, threadId, type UserId, userId } from "../../domain/ids.js";
import type { AckAction } from "../../domain/notification.js";
import { HOST } from "../../domain/principal.js";
import { ManualClock } from "../../platform/manual_clock.js";
import { audit } from "../audit.js";
import { acceptance } from "../contract.suite.js";
import { DATABASE_FILE } from "./database.js";
import type { SqliteStore } from "./store.js";
import { openWriter } from "./writer.suite.js";

const START_MS = Date.UTC(2026, 0, 3);
const USERS = [userId("ada"), userId("ben"), userId("cleo")] as const;
const ANOTHER = userId("dora");
const THREADS = new Map(USERS.map((user_id) => [user_id, threadId(`t-${user_id}`)]));
/** So many of somebody else are in the first block, and already read: what the properties make stands in two. */
const READ_BEFORE = 1_012;
const FILLING = 800;
const AXES: readonly Axes[] = [
  { address: "user", target: "user", handler: "system" },
  { address: "session", target: "user", handler: "system" },
  { address: "session", target: "agent", handler: "system" },
  { address: "user", target: "user", handler: "agent" },
];

type Step =
  | { do: "put"; user: number; axes: number; count: number; ttl_ms: number | null; batched: boolean; keyed: boolean }
  | { do: "ack"; which: number; count: number; action: AckAction }
  | { do: "wait"; ms: number }
  | { do: "fill" }
  | { do: "prune" }
  | { do: "reopen" }
  | { do: "look" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("put" as const),
      user: fc.nat(USERS.length - 1),
      axes: fc.nat(AXES.length - 1),
      count: fc.integer({ min: 1, max: 12 }),
      ttl_ms: fc.constantFrom(null, 1_000, 60_000),
      batched: fc.boolean(),
      keyed: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("ack" as const),
      which: fc.nat(),
      count: fc.integer({ min: 1, max: 20 }),
      action: fc.constantFrom<AckAction[]>("rendered", "clicked", "dismissed"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(500, 3_000, 700_000, 90_000_000) }),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ do: "fill" }) },
  { weight: 1, arbitrary: fc.constant<Step>({ do: "prune" }) },
  { weight: 2, arbitrary: fc.constant<Step>({ do: "reopen" }) },
  { weight: 2, arbitrary: fc.constant<Step>({ do: "look" }) },
);

class Rig {
  readonly clock = new ManualClock(START_MS);
  readonly #folder: string;
  readonly #outside: Database.Database;
  #store: SqliteStore;
  /** Begun, and not awaited: they share transactions. */
  readonly #begun: Promise<unknown>[] = [];
  #ids: NotificationId[] = [];

  private constructor(folder: string, store: SqliteStore) {
    this.#folder = folder;
    this.#store = store;
    this.#outside = new Database(join(folder, DATABASE_FILE), { readonly: true });
  }

  static async on(folder: string): Promise<Rig> {
    const rig = new Rig(folder, await openWriter(folder, new ManualClock(START_MS)));
    await rig.#reopen();
    return rig;
  }

  async run(one: Step): Promise<void> {
    if (one.do === "put") this.#begun.push(this.#put(one));
    else if (one.do === "ack") this.#begun.push(this.#ack(one));
    else {
      await Promise.all(this.#begun.splice(0));
      await this.#runAlone(one);
    }
  }

  async #runAlone(one: Exclude<Step, { do: "put" | "ack" }>): Promise<void> {
    switch (one.do) {
      case "wait":
        this.clock.advance(one.ms);
        while ((await this.#store.sweep(64)) > 0);
        return;
      case "fill":
        await this.#fill();
        return;
      case "prune":
        await this.#store.prune(60_000);
        return;
      case "reopen":
        return this.#reopen();
      case "look":
        return this.#look();
    }
  }

  async end(): Promise<void> {
    await this.run({ do: "look" });
    // Kept figures and figures that are counted anew are the same.
    await this.#reopen();
    await this.#look();
    expect((await audit(this.#store)).problems).toEqual([]);
    this.#outside.close();
    await this.#store.close();
  }

  async #reopen(): Promise<void> {
    await this.#store.close();
    this.#store = await openWriter(this.#folder, this.clock);
  }

  async #put({ user, axes, count, ttl_ms, batched, keyed }: Extract<Step, { do: "put" }>): Promise<void> {
    const user_id = USERS[user] as UserId;
    const chosen = AXES[axes] as Axes;
    const thread_id = chosen.address === "session" ? (THREADS.get(user_id) ?? null) : null;
    const dedupe_key = keyed ? `${axes}` : null;
    const batch = batched ? { window_ms: 2_000, max_size: 5 } : null;
    const made = await Promise.all(
      Array.from({ length: count }, () =>
        this.#store.accept(HOST, acceptance({ user_id, thread_id, dedupe_key }, { axes: chosen, ttl_ms, batch })),
      ),
    );
    this.#ids.push(...made.flatMap(({ matches }) => matches.map(({ stored }) => stored.delivery.id)));
  }

  /** Somebody else's: the others' next ones stand in another block. */
  async #fill(): Promise<void> {
    const some = Array.from({ length: FILLING }, () => acceptance({ user_id: ANOTHER }, {}));
    await Promise.all(some.map((one) => this.#store.accept(HOST, one)));
  }

  async #ack({ which, count, action }: Extract<Step, { do: "ack" }>): Promise<void> {
    if (this.#ids.length === 0) return;
    const from = which % this.#ids.length;
    const command = { column: "ack", revision: 1, action } as const;
    await Promise.all(
      this.#ids.slice(from, from + count).map((id) => this.#store.command(HOST, { id, command, operation: "ack" })),
    );
  }

  async #look(): Promise<void> {
    const shown = "channel IN ('inbox', 'floor')";
    for (const user_id of USERS) {
      const unacknowledged = this.#rows(`user_id = '${user_id}' AND ${shown} AND live = 1 AND state <> 'PENDING'`);
      const read = this.#rows(`user_id = '${user_id}' AND unread = 1`);
      const unread = [...unacknowledged, ...read].sort((a, b) => b - a);
      expect(await this.#store.counts(HOST, user_id)).toMatchObject({
        unacknowledged: unacknowledged.length,
        unread: unread.length,
      });
      expect(await this.#listed({ user_id, unread: true })).toEqual(unread);
      expect(await this.#listed({ user_id, unacknowledged: true })).toEqual(unacknowledged);
      expect(await this.#listed({ user_id, state: "PENDING" })).toEqual(
        this.#rows(`user_id = '${user_id}' AND state = 'PENDING'`),
      );
      await this.#lookAtStanding(user_id, `user_id = '${user_id}'`);
    }
    await this.#lookAtStanding(null, "1");
  }

  async #lookAtStanding(user_id: UserId | null, where: string): Promise<void> {
    const { depth, oldest, counts } = await this.#store.standing(HOST, user_id);
    const grouped = this.#outside
      .prepare(
        `SELECT state, channel, count(*) AS count FROM deliveries WHERE ${where} AND (live = 1 OR state = 'FAILED')
         GROUP BY state, channel ORDER BY state, channel`,
      )
      .all();
    const order = (one: { state: string; channel: string }) => `${one.state} ${one.channel}`;
    expect([...depth].sort((a, b) => (order(a) < order(b) ? -1 : 1))).toEqual(grouped);
    const first = this.#outside
      .prepare(
        `SELECT d.channel, min(n.created_at) AS created_at FROM deliveries d JOIN notifications n ON n.number = d.number
         WHERE ${where.replace("user_id", "d.user_id")} AND d.live = 1 GROUP BY d.channel ORDER BY d.channel`,
      )
      .all();
    expect([...oldest].sort((a, b) => (a.channel < b.channel ? -1 : 1))).toEqual(first);
    const shown = "channel IN ('inbox', 'floor') AND live = 1 AND state <> 'PENDING'";
    const unacknowledged = this.#rows(`${where} AND ${shown}`).length;
    const unread = unacknowledged + this.#rows(`${where} AND unread = 1`).length;
    const { cap } = counts;
    expect(counts).toEqual({ unacknowledged: Math.min(cap, unacknowledged), unread: Math.min(cap, unread), cap });
  }

  async #listed(filter: object): Promise<number[]> {
    const { stored } = await this.#store.list(HOST, { ...filter, limit: 500 });
    return stored.map(({ delivery: { id } }) => Number.parseInt(id.slice(-12), 16));
  }

  #rows(where: string): number[] {
    return this.#outside
      .prepare(`SELECT number FROM deliveries WHERE ${where} ORDER BY number DESC`)
      .pluck()
      .all() as number[];
  }
}

/** The folder that each run begins with: all of it read, one block all but full. */
async function template(): Promise<string> {
  const folder = await temporaryFolder();
  const store = await openWriter(folder, new ManualClock(START_MS));
  const made = await Promise.all(
    Array.from({ length: READ_BEFORE }, () => store.accept(HOST, acceptance({ user_id: ANOTHER }, {}))),
  );
  const command = { column: "ack", revision: 1, action: "clicked" } as const;
  const ids = made.flatMap(({ matches }) => matches.map(({ stored }) => stored.delivery.id));
  await Promise.all(ids.map((id) => store.command(HOST, { id, command, operation: "ack" })));
  await store.close();
  return folder;
}

it("every list and every count is that of the rows, whatever is made, settled, removed and opened again (I5)", async () => {
  const begin = await template();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 24 }), async (steps) => {
      const folder = await temporaryFolder();
      cpSync(begin, folder, { recursive: true });
      const rig = await Rig.on(folder);
      for (const one of steps) await rig.run(one);
      await rig.end();
    }),
    { numRuns: 30 },
  );
});

it("the oldest on a channel is also one that came to it from another, after it had been asked for", async () => {
  const clock = new ManualClock(START_MS);
  const store = await openWriter(await temporaryFolder(), clock);
  const put = (axes: Axes) => store.accept(HOST, acceptance({ user_id: USERS[0] }, { axes }));
  const oldest = async () => (await store.standing(HOST, null)).oldest;
  await put({ address: "user", target: "user", handler: "agent" });
  clock.advance(1_000);
  await put({ address: "user", target: "user", handler: "system" });
  expect(await oldest()).toEqual([
    { channel: "inbox", created_at: START_MS + 1_000 },
    { channel: "agent", created_at: START_MS },
  ]);
  clock.advance(700_000);
  expect(await store.sweep(10)).toBe(1);
  expect(await oldest()).toEqual([{ channel: "inbox", created_at: START_MS }]);
  await store.close();
});
