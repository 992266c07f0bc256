/** The calls of one answer: run side by side, answered in their order. */
import { z } from "zod";
import type { Item, ToolCallResponse } from "../domain/conversation.js";
import type { Turn } from "../domain/turn.js";
import { crashPoint } from "../platform/crashpoint.js";
import { isBuiltIn, runBuiltIn } from "./builtin_tools.js";
import type { AskedCall } from "./call.js";
import { type Answered, Refused } from "./handles/answers.js";
import { parsedAwait } from "./handles/await.js";
import { collision } from "./handles/handles.js";
import { parsedCall } from "./handles/stateful_tool.js";
import type { Holdings } from "./holdings.js";
import { promoteForTools } from "./promotion.js";
import type { Setting } from "./setting.js";
import { parsedInput, runTool, type ToolContext, type ToolOutcome } from "./tools.js";
import { NO_FILES } from "./workspace/thread_files.js";

export interface Batch {
  readonly setting: Setting;
  readonly turn: Turn;
  readonly holdings: Holdings;
  readonly calls: readonly AskedCall[];
  /** The turn is cut short. */
  readonly cut: AbortSignal;
  /** The user has said something meanwhile. */
  readonly spokenTo: AbortSignal;
  /** How long a call may take then to come to its end. */
  readonly grace_ms: () => number;
  readonly record: (items: readonly Item[]) => Promise<unknown>;
}

export interface Done {
  readonly call: AskedCall;
  readonly outcome: ToolOutcome;
  /** In milliseconds, how long it had. */
  readonly bound: number;
}

type Plan =
  | { readonly how: "refused"; readonly output: string }
  | { readonly how: "built_in" }
  | { readonly how: "tool"; readonly run: () => Promise<ToolOutcome>; readonly bound: number }
  /** Of a handle; `spawns`: the name that it takes. `about`: the one that it is done with. `outside`: others may notice. */
  | {
      readonly how: "handle";
      readonly spawns: string | null;
      readonly about: string | null;
      readonly outside: boolean;
      readonly run: () => Promise<ToolOutcome>;
      readonly bound: number;
    };

/** What an answer to `await` may take longer than it says. */
const AWAIT_MARGIN_MS = 5_000;

export async function runBatch(batch: Batch): Promise<readonly Done[]> {
  const letGo = batch.setting.files.hold(batch.turn.thread_id);
  try {
    return await runHeld(batch);
  } finally {
    await letGo();
  }
}

async function runHeld(batch: Batch): Promise<readonly Done[]> {
  const plans = batch.calls.map((call) => ({ call, plan: planOf(batch, call) }));
  const { setting, turn, holdings } = batch;
  const taken = takenName(batch, plans);
  if (taken !== null)
    return plans.map(({ call }) => ({ call, outcome: { how: "failure", output: collision(taken).message }, bound: 0 }));
  const external = plans.flatMap(({ call, plan }) =>
    (plan.how === "tool" || (plan.how === "handle" && plan.outside)) && setting.impactOf(call.name) === "external"
      ? [call.name]
      : [],
  );
  if (turn.internal && external.length > 0) await promoteForTools(setting.store, turn, holdings, external);
  // Built-in ones one after the other: what is told in a batch may be acknowledged in it.
  let before: Promise<unknown> = Promise.resolve();
  // What is started in a batch may be waited for in it, wherever that stands.
  const spawned: Promise<unknown>[] = [];
  let handled: Promise<unknown> = Promise.resolve();
  // By name: what is done with one that has stopped, before its name is given to another.
  const farewells = new Map<string, Promise<unknown>>();
  const begin = (plan: HandlePlan, rest: readonly { readonly plan: Plan }[]): Promise<ToolOutcome> => {
    const { spawns, about } = plan;
    if (spawns !== null) {
      const running = farewells.get(spawns)?.then(plan.run) ?? plan.run();
      spawned.push(running);
      return running;
    }
    const before = handled;
    const inTurn = () => before.then(() => Promise.all(spawned)).then(plan.run);
    const begun = (running: Promise<ToolOutcome>) => {
      handled = running;
      return running;
    };
    if (about !== null && rest.some((one) => one.plan.how === "handle" && one.plan.spawns === about)) {
      const earlier = farewells.get(about) ?? Promise.resolve();
      const isOfFormer = earlier.then(() => setting.handles.hasStopped(turn.thread_id, about));
      const done = isOfFormer.then((is) => (is ? plan.run() : null));
      farewells.set(about, done);
      return begun(done.then((outcome) => outcome ?? inTurn()));
    }
    return begun(inTurn());
  };
  return Promise.all(
    plans.map(async ({ call, plan }, index): Promise<Done> => {
      switch (plan.how) {
        case "refused":
          return { call, outcome: { how: "failure", output: plan.output }, bound: 0 };
        case "built_in": {
          const context = { ...setting, turn, call_id: call.id, holdings, record: batch.record };
          const running = before.then(() => runBuiltIn(call.name, call.input, context));
          before = running;
          return { call, outcome: await running, bound: 0 };
        }
        case "handle": {
          const running = begin(plan, plans.slice(index + 1));
          crashPoint("tool.started");
          const outcome = await running;
          crashPoint("tool.done");
          return { call, outcome, bound: plan.bound };
        }
        case "tool": {
          const running = plan.run();
          crashPoint("tool.started");
          const outcome = await running;
          crashPoint("tool.done");
          return { call, outcome, bound: plan.bound };
        }
      }
    }),
  );
}

/** A name that two calls want, or that one has which has not stopped. */
function takenName({ setting, turn }: Batch, plans: readonly { readonly plan: Plan }[]): string | null {
  const names = new Set<string>();
  for (const { plan } of plans) {
    if (plan.how !== "handle" || plan.spawns === null) continue;
    if (names.has(plan.spawns) || setting.handles.isLive(turn.thread_id, plan.spawns)) return plan.spawns;
    names.add(plan.spawns);
  }
  return null;
}

/** A call of a stateful tool, or one that waits for such. */
function handlePlan(batch: Batch, call: AskedCall): Plan | null {
  const { setting, turn, cut, grace_ms, spokenTo } = batch;
  const { tools, handles, limits, counters } = setting;
  const { thread_id, user_id } = turn;
  const place = { thread_id, user_id };
  const planned = (bound: number, which: Pick<HandlePlan, "spawns" | "about" | "outside">, act: Act): Plan => {
    const bounds = { timeout_ms: bound, cut, grace_ms };
    const context = { ...place, turn_id: turn.id, call_id: call.id, files: NO_FILES.ofCall(place) };
    return { how: "handle", ...which, bound, run: () => runAct(act, call.name, context, bounds) };
  };
  const refused = (wrong: string): Plan => {
    counters.malformed_calls += 1;
    return { how: "refused", output: new Refused("bad_arguments", wrong).message };
  };
  if (tools.isAwait(call.name)) {
    if (call.malformed !== undefined) return refused(call.malformed);
    const wish = parsedAwait(call.input);
    if ("wrong" in wish) return refused(wish.wrong);
    const bound = wish.timeout_ms + AWAIT_MARGIN_MS;
    const which = { spawns: null, about: null, outside: false };
    return planned(bound, which, (signal) => handles.await(place, wish, spokenTo, signal));
  }
  const tool = tools.getStateful(call.name);
  if (tool === undefined) return null;
  if (call.malformed !== undefined) return refused(call.malformed);
  const wanted = parsedCall(tool, call.input);
  if ("wrong" in wanted) return refused(wanted.wrong);
  const { action, handle } = wanted;
  const which = action === "spawn" ? { spawns: handle, about: null } : { spawns: null, about: handle };
  const act = () => handles.run(place, tool, wanted);
  return planned(limits.tool_timeout_ms, { ...which, outside: action !== "fetch" }, act);
}

type HandlePlan = Plan & { readonly how: "handle" };
type Act = (signal: AbortSignal) => Promise<Answered>;

async function runAct(
  act: Act,
  name: string,
  context: Omit<ToolContext, "signal">,
  bounds: Parameters<typeof runTool>[3],
): Promise<ToolOutcome> {
  let observed: readonly string[] = [];
  const run = async (_input: unknown, { signal }: ToolContext) => {
    const answered = await act(signal);
    observed = answered.observed;
    return JSON.stringify(answered.answer);
  };
  const outcome = await runTool({ name, description: "", input: z.unknown(), run }, null, context, bounds);
  // What was cut off has shown the agent nothing.
  return outcome.how === "success" ? { ...outcome, observed } : outcome;
}

function planOf(batch: Batch, call: AskedCall): Plan {
  const handle = handlePlan(batch, call);
  if (handle !== null) return handle;
  const { setting, turn, cut, grace_ms } = batch;
  const { tools, counters, limits } = setting;
  const { name, input, malformed } = call;
  const tool = tools.get(name);
  if (tool === undefined && !isBuiltIn(name)) {
    counters.unknown_tools += 1;
    return { how: "refused", output: tools.unknown(name) };
  }
  if (malformed !== undefined) {
    counters.malformed_calls += 1;
    return { how: "refused", output: `the arguments cannot be used: ${malformed}` };
  }
  if (tool === undefined) return { how: "built_in" };
  const parsed = parsedInput(tool, input);
  if ("wrong" in parsed) {
    counters.malformed_calls += 1;
    return { how: "refused", output: `the arguments cannot be used: ${parsed.wrong}` };
  }
  const files = setting.files.ofCall(turn);
  const context = { thread_id: turn.thread_id, user_id: turn.user_id, turn_id: turn.id, call_id: call.id, files };
  const bound = tool.timeout_ms ?? limits.tool_timeout_ms;
  const run = async () => files.done(await runTool(tool, parsed.value, context, { timeout_ms: bound, cut, grace_ms }));
  return { how: "tool", run, bound };
}

export function resultOf({ call, outcome }: Done): ToolCallResponse {
  const { id, name } = call;
  return { type: "tool_call_response", id, name, output: outcome.output, is_error: outcome.how !== "success" };
}
