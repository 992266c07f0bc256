import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { isMiss, type JsonObject, Tidings, TidingsError, type TidingsView } from "../../src/index.js";
import { ManualClock } from "../../src/platform/manual_clock.js";

const USERS = ["alice", "bob", "carol"] as const;
type User = (typeof USERS)[number];

const START_MS = Date.UTC(2026, 0, 3);
const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** Every word that a user stores bears the user's mark; whoever is shown another's mark has found a leak. */
const mark = (user: User) => `mark-of-${user}`;

interface World {
  views: Record<User, TidingsView>;
  /** Ids of everybody's notifications, events, threads and leases: what an attacker could have guessed. */
  readonly notifications: { id: string; owner: User }[];
  readonly events: string[];
  readonly threads: { id: string; owner: User }[];
  readonly leases: string[];
  readonly carriers: string[];
}

const at = <Value>(list: readonly Value[], index: number): Value | undefined => list[index % Math.max(1, list.length)];

/** One call by one user, on ids that may be anybody's. Answers whatever the user is shown, errors too. */
type Call = (world: World, user: User, pick: number) => Promise<unknown>;

const CALLS: Record<string, Call> = {
  emit: async (world, user, pick) => {
    const thread_id = at(world.threads, pick)?.id;
    const payload: JsonObject = { message: mark(user) };
    const answer = await world.views[user].emit({
      type: pick % 2 === 0 ? "cli.event" : "tool.call.failure",
      source: mark(user),
      severity: "error",
      payload,
      ...(pick % 3 === 0 && thread_id !== undefined ? { thread_id } : {}),
      ...(pick % 5 === 0 ? { id: "same-for-all", dedupe_key: "same-for-all" } : {}),
    });
    world.events.push(answer.id);
    for (const match of answer.matches) world.notifications.push({ id: match.notification.id, owner: user });
    return answer;
  },
  emitForAnother: (world, user, pick) =>
    world.views[user].emit({ type: "cli.event", source: mark(user), user_id: at(USERS, pick) as User }),
  notify: async (world, user, pick) => {
    const answer = await world.views[user].notify({
      content: mark(user),
      target: pick % 2 === 0 ? "user" : "agent",
      handler: pick % 3 === 0 ? "system" : "agent",
      ttl_ms: pick % 4 === 0 ? 1 : 60_000,
      dedupe_key: "same-for-all",
    });
    world.notifications.push({ id: answer.id, owner: user });
    return answer;
  },
  startThread: async (world, user, pick) => {
    const wanted = at(world.threads, pick)?.id;
    const thread = await world.views[user].startThread(
      wanted !== undefined && pick % 2 === 0 ? { thread_id: wanted } : {},
    );
    world.threads.push({ id: thread.thread_id, owner: user });
    return thread;
  },
  closeThread: (world, user, pick) => world.views[user].closeThread(at(world.threads, pick)?.id ?? "none"),
  observe: (world, user, pick) =>
    world.views[user].observe({ thread_id: at(world.threads, pick)?.id ?? "none", subject: "h_1" }),
  list: (world, user, pick) => world.views[user].list(pick % 2 === 0 ? {} : { user_id: at(USERS, pick) as User }),
  listThread: (world, user, pick) => world.views[user].list({ thread_id: at(world.threads, pick)?.id ?? "none" }),
  unread: (world, user) => world.views[user].list({ unread: true }),
  counts: async (world, user, pick) => {
    const asked = at(USERS, pick) as User;
    const counts = await world.views[user].counts(asked);
    if (asked !== user) expect(counts).toMatchObject({ unacknowledged: 0, unread: 0 });
    return counts;
  },
  read: (world, user, pick) => world.views[user].read(at(world.notifications, pick)?.id ?? "none"),
  ack: (world, user, pick) =>
    world.views[user].ack({ id: at(world.notifications, pick)?.id ?? "none", revision: 1, action: "clicked" }),
  explain: (world, user, pick) => world.views[user].explain(at(world.notifications, pick)?.id ?? "none"),
  explainEvent: (world, user, pick) => world.views[user].explain(at(world.events, pick) ?? "none"),
  redrive: (world, user, pick) => world.views[user].redrive(at(world.notifications, pick)?.id ?? "none"),
  claim: async (world, user, pick) => {
    const thread_id = at(world.threads, pick)?.id;
    const ids = world.notifications.slice(0, 20).map((one) => one.id);
    const answer = await world.views[user].deliveries.claim({
      ...(pick % 2 === 0 && thread_id !== undefined ? { thread_id } : {}),
      ...(pick % 3 === 0 ? { ids } : {}),
      owner: mark(user),
    });
    if (answer.lease !== null) world.leases.push(answer.lease.id);
    return answer;
  },
  claimForAnother: (world, user, pick) => world.views[user].deliveries.claim({ user_id: at(USERS, pick) as User }),
  renew: (world, user, pick) => world.views[user].deliveries.renew(at(world.leases, pick) ?? "none"),
  settle: (world, user, pick) =>
    world.views[user].deliveries.settle([{ id: at(world.notifications, pick)?.id ?? "none", epoch: 1 + (pick % 2) }]),
  release: (world, user, pick) =>
    world.views[user].deliveries.release([{ id: at(world.notifications, pick)?.id ?? "none", epoch: 1 + (pick % 2) }]),
  promote: (world, user, pick) =>
    world.views[user].deliveries.promote([{ id: at(world.notifications, pick)?.id ?? "none", epoch: 1 }], mark(user)),
  collect: async (world, user, pick) => {
    const own = world.threads.filter(({ owner }) => owner === user);
    const thread = world.views[user].thread(at(pick % 4 === 0 ? world.threads : own, pick)?.id ?? "none");
    const carrier = await thread.collect("turn_start", { owner: mark(user), auto_settle: pick % 3 === 0 });
    if (carrier !== null) world.carriers.push(carrier.id);
    return carrier;
  },
  renewCarrier: (world, user, pick) => world.views[user].carriers.renew(at(world.carriers, pick) ?? "none"),
  settleCarrier: (world, user, pick) =>
    world.views[user].carriers.settle(at(world.carriers, pick) ?? "none", {
      acknowledged_ids: world.notifications.slice(0, 20).map(({ id }) => id),
    }),
  failCarrier: (world, user, pick) => world.views[user].carriers.fail(at(world.carriers, pick) ?? "none", mark(user)),
  watch: async (world, user) => {
    const seen: unknown[] = [];
    const last = await world.views[user].emit({ type: "cli.event", source: mark(user) });
    for await (const entry of world.views[user].watch({ after: 0 })) {
      seen.push(entry);
      if (entry.seq === last.seq) break;
    }
    return seen;
  },
};

const call = fc.record({
  name: fc.constantFrom(...Object.keys(CALLS), "notify", "emit", "startThread", "wait"),
  user: fc.constantFrom(...USERS),
  pick: fc.nat({ max: 200 }),
});

it("shows no user anything of another's, in answers, errors or counts (I18)", async () => {
  const answered = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 20, maxLength: 80, size: "max" }), async (calls) => {
      const data = await mkdtemp(join(tmpdir(), "tidings-isolation-"));
      const clock = new ManualClock(START_MS);
      let tidings = await Tidings.open({ data, clock });
      const world: World = {
        views: viewsOf(tidings),
        notifications: [],
        events: [],
        threads: [],
        leases: [],
        carriers: [],
      };
      try {
        for (const user of USERS) await furnish(world, user);
        for (const { name, user, pick } of calls) {
          if (name === "wait") {
            // A week passes: what nobody took escalates, what nobody acknowledged becomes a dead letter.
            clock.advance(WEEK_MS);
            await tidings.close();
            tidings = await Tidings.open({ data, clock });
            world.views = viewsOf(tidings);
            continue;
          }
          const before = await othersThan(tidings, user);
          const shown = await attempt(() => (CALLS[name] as Call)(world, user, pick));
          if (shown.ok) answered.set(name, (answered.get(name) ?? 0) + 1);
          const text = JSON.stringify(shown);
          for (const other of USERS) if (other !== user) expect(text).not.toContain(mark(other));
          expect(await othersThan(tidings, user)).toBe(before);
        }
        expect((await tidings.audit()).problems).toEqual([]);
      } finally {
        await tidings.close();
        await rm(data, { recursive: true, force: true });
      }
    }),
    { numRuns: 40, seed: 20_260_103 },
  );
  const never = ["emitForAnother", "claimForAnother"];
  for (const name of Object.keys(CALLS))
    if (!never.includes(name)) expect(answered.get(name) ?? 0, name).toBeGreaterThan(0);
});

/** Everybody holds a carrier at first. */
async function furnish(world: World, user: User): Promise<void> {
  const view = world.views[user];
  const { thread_id } = await view.startThread();
  const { id } = await view.notify({ content: mark(user), thread_id });
  const carrier = await view.thread(thread_id).collect("turn_start", { owner: mark(user) });
  if (carrier === null) throw new Error("nothing was collected");
  world.threads.push({ id: thread_id, owner: user });
  world.notifications.push({ id, owner: user });
  world.carriers.push(carrier.id);
}

function viewsOf(tidings: Tidings): World["views"] {
  return Object.fromEntries(USERS.map((user) => [user, tidings.as(user)])) as World["views"];
}

/** What everybody else has: no call of `user` may change it. */
async function othersThan(tidings: Tidings, user: User): Promise<string> {
  const { notifications } = await tidings.list({ limit: 1_000 });
  return JSON.stringify(notifications.filter((one) => one.user_id !== user));
}

async function attempt(run: () => Promise<unknown>): Promise<{ ok: boolean; value: unknown }> {
  try {
    const value = await run();
    return { ok: !isMiss(value), value };
  } catch (error) {
    if (!(error instanceof TidingsError)) throw error;
    return { ok: false, value: { ...error, message: error.message } };
  }
}
