/** Section n: what telling an agent costs, in a small journal and in a large one. */

import Database from "better-sqlite3";
import { z } from "zod";
import { parseEvent } from "../../dist/domain/event.js";
import { parseNotify } from "../../dist/domain/notification.js";
import { DEFAULT_POLICY } from "../../dist/domain/policy.js";
import { HOST } from "../../dist/domain/principal.js";
import { ALL_GRANTS } from "../../dist/domain/token.js";
import { Tidings } from "../../dist/index.js";
import { Catalogue } from "../../dist/intake/catalogue.js";
import { Intake } from "../../dist/intake/intake.js";
import { systemClock } from "../../dist/platform/clock.js";
import { openModel } from "../../dist/providers/open.js";
import { HostedAgent } from "../../dist/runtime/agent.js";
import { openSqliteStore } from "../../dist/store/sqlite/store.js";
import { eventOf } from "../workload.mjs";

const SLICE = 6_400;
const THREAD = "thread-1";
const USER = "user-000";

/** A journal of `entries`, of which `said` are of one conversation. */
export async function buildConversation({ data, entries, said }, tell) {
  const tidings = await Tidings.open({ data, agent: { provider: "rehearsal" } });
  await tidings.startThread({ user_id: USER, thread_id: THREAD });
  const thread = tidings.as(USER).thread(THREAD);
  for (let from = 0; from < entries - said; from += SLICE) {
    const count = Math.min(SLICE, entries - said - from);
    await tidings.emitMany(Array.from({ length: count }, (_, index) => eventOf(from + index, 100)));
    tell({ progress: `${from + count} of ${entries} entries` });
  }
  // A turn is three entries: it began, what was said, and its end; its events have entries of their own.
  for (let counted = 0; counted < said; counted += 3) {
    const turn = await thread.say("hello");
    await tidings.turns.ended(turn.turn_id);
  }
  const { last_seq } = await tidings.facts();
  await tidings.close();
  return { entries: last_seq };
}

/** Milliseconds that the statement COMMIT has taken since it was last asked. */
function flushTimes() {
  let ms = 0;
  const { prepare } = Database.prototype;
  Database.prototype.prepare = function timed(sql) {
    const statement = prepare.call(this, sql);
    if (sql !== "COMMIT") return statement;
    const run = statement.run.bind(statement);
    statement.run = () => {
      const started = performance.now();
      const answer = run();
      ms += performance.now() - started;
      return answer;
    };
    return statement;
  };
  return () => {
    const taken = ms;
    ms = 0;
    return taken;
  };
}

/** One `collect` that finds one notification: all of it but the flush. */
export async function collectCost({ data, collects }) {
  const flushed = flushTimes();
  const tidings = await Tidings.open({ data });
  const view = tidings.as(USER);
  const thread = view.thread(THREAD);
  const thread_id = THREAD;
  const costs = [];
  try {
    for (let index = 0; index < collects; index += 1) {
      await view.notify({ thread_id, content: `news ${index} of the build in the other room` });
      flushed();
      const started = performance.now();
      const carrier = await thread.collect("turn_start");
      costs.push(performance.now() - started - flushed());
      if (carrier.notifications.length !== 1) throw new Error(`collected ${carrier.notifications.length}`);
      await carrier.settle();
    }
  } finally {
    await tidings.close();
  }
  // The first ones read the file and warm up the code.
  return { ms: costs.slice(Math.floor(collects / 5)).sort((one, other) => one - other) };
}

const LOOK = {
  name: "look",
  description: "Looks out of the window.",
  input: z.object({}),
  impact: "internal",
  run: () => "rain",
};

/** Commits and CPU for each call of the rehearsal model: turns of two calls, a tool between them, something told with each. */
export async function modelCalls({ folder, turns }) {
  const catalogue = await Catalogue.open({ subscribers: [], folder: null, config_file: null, watch: false });
  const intake = new Intake(catalogue);
  const options = { folder, editor: catalogue, policy: DEFAULT_POLICY, clock: systemClock, mode: "write", waitMs: 0 };
  const store = await openSqliteStore(options);
  const emit = (event) => store.accept(HOST, intake.forEvent(parseEvent(event), ALL_GRANTS));
  const model = await openModel({ provider: "rehearsal", model: "" });
  const agent = await HostedAgent.start(store, emit, { model, tools: [LOOK] }, DEFAULT_POLICY);
  const thread = await store.startThread(HOST, USER, THREAD);
  const tell = (content) =>
    store.accept(HOST, intake.forNotify(parseNotify({ content, user_id: USER, thread_id: thread.id }), ALL_GRANTS));
  let commits = 0;
  let told = 0;
  store.onCommit(() => {
    commits += 1;
  });
  const cpu = process.cpuUsage();
  for (let index = 0; index < turns; index += 1) {
    await tell(`news ${index}`);
    told += 1;
    const turn = await agent.startTurn(HOST, { thread_id: thread.id, content: "call look {}" });
    await agent.ended(turn.id);
  }
  const { user, system } = process.cpuUsage(cpu);
  const { model_calls } = agent.counters;
  await agent.close();
  await store.close();
  await catalogue.close();
  // The commits of what was told are not the agent's.
  return { calls: model_calls, commits: (commits - told) / model_calls, ms: (user + system) / 1_000 / model_calls };
}
