/**
 * A life of the crash test: opens the folder, works under load until it is killed, and reports on fd 3 every intent
 * before it is asked for and every answer after it is given, one JSON line each. What was reported was promised.
 *
 * node worker.mjs '{"folder":…,"seed":…,"life":…,"callers":…,"also":"prune"|"backup"|null}'
 */
import { writeSync } from "node:fs";
import { join } from "node:path";
import { ConflictError, isMiss, Tidings } from "../../dist/index.js";
import { newChoice } from "./batches.mjs";
import { newEvent, newNotify, pool, told, USERS, wordsOf } from "./load.mjs";
import { randomFrom } from "./random.mjs";
import { POLICY, SUBSCRIBERS, TYPES } from "./setup.mjs";

const { folder, seed, life, callers, also } = JSON.parse(process.argv[2]);
const random = randomFrom(seed);
const REPORT_FD = 3;
const POINTS = ["turn_start", "user_message", "after_tool", "after_tool", "turn_end", "immediate"];

// Whoever started this life is gone: so is the reason for it.
process.stdin.on("end", () => process.exit(0)).resume();

function report(line) {
  let rest = Buffer.from(`${JSON.stringify(line)}\n`);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(REPORT_FD, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") process.exit(0);
    }
  }
}

const shown = pool(random);
const held = pool(random);
const known = pool(random);
const leases = pool(random);
const sent = pool(random);
const dead = pool(random);
const carriers = pool(random);
/** Users whose choice is being written: one at a time, so that the newest answer is the newest choice. */
const choosing = new Set();
const threads = new Map(USERS.map((user) => [user, { number: 0, started: false, closed: [] }]));
const nextToken = wordsOf(life);

report({ tell: "ready" });
const tidings = await Tidings.open({
  data: folder,
  policy: POLICY,
  subscribers: SUBSCRIBERS,
  onFailure: (error) => report({ tell: "problem", what: "onFailure", name: error.name, message: error.message }),
});
report({ tell: "open" });

/** The user's thread of the moment; now and then one that is closed already. */
function threadOf(user) {
  const { number, closed } = threads.get(user);
  if (closed.length > 0 && random.chance(0.05)) return random.pick(closed);
  return `${user}-${life}-${number}`;
}

const nextEvent = () => newEvent(random, { token: nextToken(), types: TYPES, threadOf });

function learn(view) {
  known.add({ id: view.id });
  if (view.channel === "inbox" || view.channel === "floor") shown.add({ id: view.id, revision: view.revision });
  if (view.state === "FAILED") dead.add({ id: view.id });
}

function intend(token, event) {
  report({ tell: "intent", token, ...(event.id === undefined ? {} : { event }) });
}

function answeredEmit(operation, token, answer) {
  report({
    tell: "answer",
    operation,
    token,
    event: answer.id,
    seq: answer.seq,
    outcome: answer.outcome,
    told: answer.matches.map((match) => told(match.notification)),
    matches: answer.matches.map(({ subscriber_id, outcome, notification }) => [
      subscriber_id,
      outcome,
      notification.id,
    ]),
  });
  for (const match of answer.matches) learn(match.notification);
}

function answered(operation, views, more = {}) {
  const hits = views.filter((view) => !isMiss(view));
  report({ tell: "answer", operation, told: hits.map(told), misses: views.length - hits.length, ...more });
  for (const view of hits) learn(view);
}

/** What became of the items of a carrier, or that it was lost before. */
function answeredCarrier(operation, answer) {
  const items = isMiss(answer) ? [] : answer.notifications;
  const told = items.map(({ id, state }) => [id, state, 0, 0, 0]);
  report({ tell: "answer", operation, told, misses: isMiss(answer) ? 1 : 0 });
}

const itemsOf = (...items) => items.filter((item) => item !== undefined);

const OPERATIONS = {
  async emit() {
    const { token, event } = nextEvent();
    intend(token, event);
    answeredEmit("emit", token, await tidings.emit(event));
    if (event.id !== undefined) sent.add({ token, event });
  },
  async emitMany() {
    const events = Array.from({ length: random.between(2, 20) }, nextEvent);
    for (const { token, event } of events) intend(token, event);
    const answers = await tidings.emitMany(events.map(({ event }) => event));
    for (const [index, answer] of answers.entries()) {
      if ("error" in answer) throw answer.error;
      answeredEmit("emitMany", events[index].token, answer);
    }
  },
  /** The producer does not know that it was answered, and sends again. */
  async resend() {
    const before = sent.look();
    if (before === undefined) return OPERATIONS.emit();
    intend(before.token, before.event);
    answeredEmit("resend", before.token, await tidings.emit(before.event));
  },
  async notify() {
    const token = nextToken();
    const input = newNotify(random, { token, threadOf });
    report({ tell: "intent", token });
    const { id, seq, state, channel } = await tidings.notify(input);
    // A notify answers no revision or epoch: 0 promises nothing of them.
    report({ tell: "answer", operation: "notify", token, seq, told: [[id, state, 0, 0, 0]] });
    known.add({ id });
    if (channel === "inbox" || channel === "floor") shown.add({ id, revision: 1 });
  },
  async claim() {
    const user_id = random.pick(USERS);
    const thread_id = random.chance(0.6) && threads.get(user_id).started ? threadOf(user_id) : undefined;
    const claim = await tidings.deliveries.claim({
      user_id,
      thread_id,
      limit: random.between(1, 12),
      lease_ms: random.between(150, 800),
    });
    answered("claim", claim.notifications);
    if (claim.lease !== null) leases.add({ id: claim.lease.id });
    for (const view of claim.notifications) held.add({ id: view.id, epoch: view.lease_epoch });
  },
  /** An agent takes what its thread has for it; another one may hold the thread. */
  async collect() {
    const user_id = random.pick(USERS);
    if (!threads.get(user_id).started) return OPERATIONS.startThread();
    const auto_settle = random.chance(0.2);
    const carrier = await tidings.thread(threadOf(user_id)).collect(random.pick(POINTS), {
      owner: random.pick(["one agent", "one agent", "another"]),
      lease_ms: random.between(150, 800),
      limit: random.between(1, 12),
      auto_settle,
    });
    const held = carrier?.notifications ?? [];
    // What is told and needs no answer is settled by the collect itself.
    const stateOf = ({ must_narrate }) => (auto_settle && !must_narrate ? "DELIVERED" : "LOCKED");
    const told = held.map((view) => [view.id, stateOf(view), view.revision, 0, view.count]);
    report({ tell: "answer", operation: "collect", told, misses: carrier === null ? 1 : 0 });
    if (carrier !== null) carriers.add(carrier);
  },
  async settleCarrier() {
    const carrier = carriers.take();
    if (carrier === undefined) return OPERATIONS.collect();
    const ids = carrier.notifications.filter(({ must_narrate }) => must_narrate).map(({ id }) => id);
    answeredCarrier("settleCarrier", await carrier.settle({ acknowledged_ids: random.chance(0.7) ? ids : [] }));
  },
  async failCarrier() {
    const carrier = carriers.take();
    if (carrier === undefined) return OPERATIONS.collect();
    answeredCarrier("failCarrier", await carrier.fail("the provider was away"));
  },
  async renewCarrier() {
    const carrier = carriers.look();
    if (carrier === undefined) return OPERATIONS.collect();
    const answer = await carrier.renew(random.between(150, 800));
    report({ tell: "answer", operation: "renewCarrier", told: [], misses: isMiss(answer) ? 1 : 0 });
  },
  /** A user switches some subscribers off, and the others on. */
  async settings() {
    const user_id = random.pick(USERS);
    if (choosing.has(user_id)) return OPERATIONS.emit();
    choosing.add(user_id);
    const choice = newChoice(random);
    report({ tell: "choosing", user_id, choice });
    await tidings.updateSettings({ user_id, disabled_subscribers: choice });
    report({ tell: "answer", operation: "settings", user_id, choice, told: [] });
    choosing.delete(user_id);
  },
  async renew() {
    const lease = leases.look();
    if (lease === undefined) return OPERATIONS.claim();
    const answer = await tidings.deliveries.renew(lease.id);
    report({ tell: "answer", operation: "renew", told: [], misses: isMiss(answer) ? 1 : 0 });
  },
  async settle() {
    answered("settle", await tidings.deliveries.settle(itemsOf(held.take(), held.take(), held.take())));
  },
  async release() {
    answered("release", await tidings.deliveries.release(itemsOf(held.take())));
  },
  async promote() {
    answered("promote", await tidings.deliveries.promote(itemsOf(held.take()), "an external tool"));
  },
  async ack() {
    const item = shown.look();
    if (item === undefined) return OPERATIONS.emit();
    const action = random.pick(["rendered", "clicked", "dismissed"]);
    answered("ack", [await tidings.ack({ ...item, action })]);
  },
  async observe() {
    const user_id = random.pick(USERS);
    if (!threads.get(user_id).started) return OPERATIONS.startThread();
    const thread = threadOf(user_id);
    const subject = `h_${random.between(1, 5)}#gen-${random.between(1, 3)}`;
    answered("observe", await tidings.observe({ thread_id: thread, subject }), { thread, subject });
  },
  async startThread() {
    const user_id = random.pick(USERS);
    const own = threads.get(user_id);
    const { number } = own;
    const { thread_id } = await tidings.startThread({ user_id, thread_id: `${user_id}-${life}-${number}` });
    report({ tell: "answer", operation: "startThread", thread: thread_id, told: [] });
    if (own.number === number) own.started = true;
  },
  async closeThread() {
    const user_id = random.pick(USERS);
    const own = threads.get(user_id);
    if (!own.started) return OPERATIONS.startThread();
    const thread = `${user_id}-${life}-${own.number}`;
    own.number += 1;
    own.started = false;
    await tidings.closeThread(thread);
    own.closed.push(thread);
    report({ tell: "answer", operation: "closeThread", thread, told: [] });
  },
  /** Reading is a promise too: what was shown settled stays settled. */
  async read() {
    const item = known.look();
    if (item === undefined) return OPERATIONS.emit();
    answered("read", [await tidings.read(item.id)]);
  },
  async redrive() {
    const item = dead.take();
    if (item === undefined) {
      const { notifications } = await tidings.list({ state: "FAILED", limit: 50 });
      answered("list", notifications);
      return;
    }
    const answer = await tidings.redrive(item.id);
    answered("redrive", [answer], isMiss(answer) ? {} : { redriven: item.id });
  },
};

const WEIGHTS = {
  emit: 36,
  emitMany: 4,
  resend: 4,
  notify: 12,
  claim: 8,
  collect: 8,
  settleCarrier: 5,
  failCarrier: 2,
  renewCarrier: 1,
  settings: 1.5,
  renew: 2,
  settle: 8,
  release: 3,
  promote: 3,
  ack: 12,
  observe: 2,
  startThread: 2,
  closeThread: 1.5,
  read: 4,
  redrive: 3,
};

const EXPECTED = new Set(["thread_closed", "thread_held"]);

async function caller() {
  for (;;) {
    const operation = random.weighted(WEIGHTS);
    try {
      await OPERATIONS[operation]();
    } catch (error) {
      if (error instanceof ConflictError && EXPECTED.has(error.reason)) continue;
      report({ tell: "problem", what: operation, name: error.name, message: error.message });
    }
  }
}

async function pruning() {
  for (;;) {
    report({ tell: "pruning" });
    await tidings.prune({ older_than_ms: random.between(0, 300) });
    report({ tell: "answer", operation: "prune", told: [] });
  }
}

async function backingUp() {
  for (let number = 1; ; number += 1) {
    const file = join(folder, "copies", `${life}-${number}.db`);
    report({ tell: "backing_up", file });
    await tidings.backup(file);
    report({ tell: "answer", operation: "backup", file, told: [] });
  }
}

const failed = (error) => report({ tell: "problem", what: also, name: error.name, message: error.message });
if (also === "prune") pruning().catch(failed);
if (also === "backup") backingUp().catch(failed);
for (let number = 0; number < callers; number += 1) caller();
