/** Whatever comes, in whatever order: requests keep their rules and their beginnings, and everything ends where it should. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { ConflictError, type NotifyInput, TidingsError } from "../../../src/index.js";
import { type Message, ModelError, type ModelEvent, type ModelRequest } from "../../../src/providers/index.js";
import { type Agent, blockOf, openAgent, tool } from "../../support/agent.js";
import { eventually, temporaryFolder } from "../../support/folder.js";

const BEHAVIOURS = [
  "speaks",
  "acknowledges",
  "works",
  "works twice",
  "fails",
  "breaks off",
  "refuses",
  "lingers",
] as const;
type Behaviour = (typeof BEHAVIOURS)[number];

/** By which the conversation is known: while it is paused, what is addressed to the user may wake a new one. */
const FIRST = "This is the chat";

type Action =
  | { readonly do: "notify"; readonly input: Omit<NotifyInput, "content" | "thread_id"> }
  | { readonly do: "say" | "steer" | "deliver" | "stop" | "reply" | "pause" | "resume" | "restart" | "wait" | "rest" };

const notified = fc.record({
  target: fc.constantFrom("user", "agent"),
  handler: fc.constantFrom("system", "agent"),
  address: fc.constantFrom("user", "session"),
  priority: fc.constantFrom("high", "normal", "normal", "low", "critical"),
  inject_at: fc.constantFrom("next", "next", "turn_start", "after_tool", "turn_end"),
} as const);

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: notified.map((input): Action => ({ do: "notify", input })) },
  {
    weight: 7,
    arbitrary: fc
      .constantFrom(
        "say",
        "say",
        "wait",
        "wait",
        "steer",
        "deliver",
        "stop",
        "reply",
        "pause",
        "resume",
        "resume",
        "restart",
        "rest",
      )
      .map((what): Action => ({ do: what as Exclude<Action["do"], "notify"> })),
  },
);

/** A model that behaves as it is told, call by call, and then well; it remembers which requests it began to answer. */
class Moody {
  readonly provider = "test";
  readonly model = "moody";
  readonly requests: { readonly messages: readonly Message[]; began: boolean; failed: boolean }[] = [];
  readonly #behaviours: Behaviour[];
  #calls = 0;

  constructor(behaviours: readonly Behaviour[]) {
    this.#behaviours = ["speaks", ...behaviours];
  }

  form() {
    return "system" as const;
  }

  behaves(): void {
    this.#behaviours.length = 0;
  }

  async *stream({ messages, signal }: ModelRequest): AsyncGenerator<ModelEvent> {
    const request = { messages: structuredClone(messages), began: false, failed: false };
    this.requests.push(request);
    const behaviour = this.#behaviours.shift() ?? "acknowledges";
    request.failed = behaviour === "refuses" || behaviour === "fails";
    if (behaviour === "refuses") throw new ModelError("bad_request", "no");
    if (behaviour === "fails") throw new ModelError("transient", "not now");
    yield { type: "started" };
    // Whoever has aborted it meanwhile does not come back here.
    request.began = true;
    yield { type: "text", delta: "Well, " };
    if (behaviour === "lingers") for (let word = 0; word < 20 && !signal.aborted; word += 1) await soon();
    if (signal.aborted) throw new ModelError("aborted", "aborted");
    if (behaviour === "breaks off") throw new ModelError("transient", "broken off");
    const newest = messages.at(-1);
    const ids = [...blockOf(newest).matchAll(/^- `([\w-]+)`/gm)].map(([, id = ""]) => id);
    const names = behaviour === "works" ? ["work"] : behaviour === "works twice" ? ["work", "work"] : [];
    const calls = names.map((name) => ({ name, input: {} }));
    if (behaviour === "acknowledges" && ids.length > 0)
      calls.push({ name: "acknowledge_notifications", input: { acknowledged_ids: ids } });
    for (const call of calls) yield { type: "call", call: { id: `call_${++this.#calls}`, ...call } };
    yield { type: "end", reason: calls.length > 0 ? "calls" : "end", usage: { input: 1, output: 1 } };
  }
}

test("requests, states and effects", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { minLength: 5, maxLength: 40 }),
      fc.array(fc.constantFrom(...BEHAVIOURS), { maxLength: 30 }),
      async (actions, behaviours) => {
        const data = await temporaryFolder();
        const model = new Moody(behaviours);
        const runs = new Map<string, number>();
        const work = tool("work", async (_, { call_id }) => {
          runs.set(call_id, (runs.get(call_id) ?? 0) + 1);
          await soon();
          return "worked";
        });
        const open = () =>
          openAgent({
            data,
            policy: { backoffMs: 1, criticalPerMinute: 1_000 },
            agent: { model, tools: [work], limits: { retry_base_ms: 1 } },
          });
        let agent = await open();
        await agent.converse(FIRST);
        const ids: string[] = [];
        for (const one of actions) {
          if (one.do === "restart") {
            await agent.tidings.close();
            agent = await open();
          } else await act(agent, one, ids).catch(unlessRefused);
          checkRequests(model);
        }
        const calls = model.requests.length;
        expect(calls).toBeLessThanOrEqual(20 + 8 * actions.length);
        model.behaves();
        await agent.chat.resume();
        await settle(agent, ids);
        checkRequests(model);
        for (const [call, count] of runs) expect(count, call).toBe(1);
        expect(await agent.problems()).toEqual([]);
        await agent.tidings.close();
      },
    ),
    { numRuns: 25, endOnFailure: true },
  );
}, 240_000);

async function act(agent: Agent, one: Action, ids: string[]): Promise<unknown> {
  const { chat, tidings } = agent;
  const active = async () => (await chat.turns()).find(({ state }) => state === "active")?.turn_id;
  switch (one.do) {
    case "notify":
      return ids.push(await agent.notify(`news ${ids.length}`, one.input));
    case "say":
      return chat.say("Hello");
    case "steer":
      return chat.steer("Mind this");
    case "deliver":
      return chat.deliver("And this");
    case "pause":
      return chat.pause();
    case "resume":
      return chat.resume();
    case "stop":
    case "reply": {
      const turn = await active();
      if (turn === undefined) return;
      return tidings.turns.interrupt(turn, one.do === "reply" ? { content: "No" } : {});
    }
    case "wait": {
      const turn = await active();
      return turn === undefined ? soon() : tidings.turns.ended(turn);
    }
    case "rest":
      return agent.lullaby();
    case "restart":
      return;
  }
}

function unlessRefused(error: unknown): void {
  if (error instanceof ConflictError || (error instanceof TidingsError && error.code === "closed")) return;
  throw error;
}

/** Messages bring what waits, until nothing does; then each is with the user, or done with. */
async function settle(agent: Agent, ids: readonly string[]): Promise<void> {
  await eventually(
    async () => {
      await agent.converse("And now?");
      const states = await Promise.all(ids.map((id) => agent.state(id)));
      const live = await agent.chat.turns();
      return states.filter((state) => state === "PENDING" || state === "LOCKED").length + live.length;
    },
    (left) => left === 0,
  );
  for (const id of ids) {
    const { state, target, handler, channel } = await agent.read(id);
    if (handler === "agent") expect(["DELIVERED", "ESCALATED"]).toContain(state);
    else if (target === "agent") expect(["DELIVERED", "SUPPRESSED"]).toContain(state);
    else expect([state, channel === "inbox" || channel === "floor"]).toEqual(["DISPATCHED", true]);
  }
}

/**
 * Each keeps the rules; one that was begun to be answered is the beginning of all that come after it; what came to nobody
 * because its request failed is not said again in the same words.
 */
function checkRequests(model: Moody): void {
  let beginning: readonly Message[] = [];
  const arrived = new Set<string>();
  const failed = new Set<string>();
  for (const [at, { messages, began }] of model.requests.entries()) {
    const [first] = messages;
    if (first?.role === "user" && first.text === FIRST) {
      expect(messages.slice(0, beginning.length), `request ${at + 1}`).toEqual(beginning);
      if (began) beginning = messages;
    }
    const blocks = messages.map(blockOf).filter((block) => block !== "");
    expect(blocks.filter((block) => failed.has(block))).toEqual([]);
    for (const block of blocks) if (began) arrived.add(block);
    if (model.requests[at]?.failed) for (const block of blocks) if (!arrived.has(block)) failed.add(block);
    expect(messages.at(-1)?.role).not.toBe("assistant");
    for (const [index, message] of messages.entries()) {
      const next = messages[index + 1];
      if (message.role === "assistant" && message.calls.length > 0)
        expect(next).toMatchObject({ role: "tools", results: message.calls.map(({ id }) => ({ id })) });
      if (message.role === "tools") expect(messages[index - 1]?.role).toBe("assistant");
    }
  }
}

function soon(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
