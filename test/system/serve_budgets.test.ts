/** What `tidings serve` does about budgets of its file, and about an agent that repeats itself; asked over the wire. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ThreadItem } from "../../src/index.js";
import type { ThreadPage, ThreadView, TurnView } from "../../src/runtime/conversation.js";
import { eventually, openTidings, temporaryFolder } from "../support/folder.js";
import { Server } from "../support/server.js";

async function served(toml: string) {
  const data = await temporaryFolder();
  writeFileSync(join(data, "tidings.toml"), toml);
  const args = ["--provider", "rehearsal", "--workspace", await temporaryFolder()];
  const server = await Server.start({ data, args });
  const { thread_id } = await server.call<{ thread_id: string }>("thread/start");
  const items = async (): Promise<readonly ThreadItem[]> =>
    (await server.call<ThreadPage>("thread/read", { thread_id, observe: true, internal: true })).items;
  /** Says something, and waits until nothing runs any more. */
  const converse = async (input: string) => {
    await server.call<TurnView>("turn/start", { thread_id, input });
    await eventually(
      () => server.call<{ turns: TurnView[] }>("queue/list", { thread_id }),
      ({ turns }) => turns.length === 0,
    );
  };
  const told = async () =>
    (await items()).flatMap((item) =>
      item.type === "observation" && item.status === "sent" ? [item.content.text] : [],
    );
  const said = async (role: string) =>
    (await items()).filter((item) => item.type === "message" && item.role === role).length;
  const notices = async (kind: string) =>
    (
      await server.call<{ notifications: { kind: string; channel: string; content: string }[] }>("notification/list", {
        thread_id,
      })
    ).notifications.filter((one) => one.kind === kind);
  return { converse, told, said, notices };
}

const LOOK = 'call list_files {"depth":1}';

test("a budget of [agent.budgets.thread] warns the agent once, then stops its turn and tells the user, once", async () => {
  const { converse, told, said, notices } = await served("[agent.budgets.thread]\niterations = 5\n");
  await converse(LOOK);
  await converse('call list_files {"depth":2}');
  expect(await notices("budget.iteration.exceeded")).toEqual([]);
  // Four of five calls of the model are used. The fifth calls the tool, and there is none left to say what has come of it.
  await converse('call list_files {"depth":3}');
  const warnings = (await told()).join("\n").match(/iterations consumed \(4\/5\)/g);
  expect(warnings).toHaveLength(1);
  expect(await notices("budget.iteration.exceeded")).toMatchObject([
    { channel: "floor", content: expect.stringContaining("5") },
  ]);
  const answers = await said("assistant");
  await converse("Are you there?");
  expect(await said("assistant"), "no call is made any more").toBe(answers);
  expect(await notices("budget.iteration.exceeded")).toHaveLength(1);
});

test("an agent that repeats a call is told with the results of the third", async () => {
  const { converse, told } = await served("");
  await converse(LOOK);
  await converse(LOOK);
  expect((await told()).join("\n")).not.toContain("loop");
  await converse(LOOK);
  const loops = (await told()).filter((text) => text.includes("list_files") && text.includes("loop"));
  expect(loops).toHaveLength(1);
});

test("whoever starts a conversation may give it less than the operator does, never more; it is kept over a kill", async () => {
  const data = await temporaryFolder();
  writeFileSync(join(data, "tidings.toml"), "[agent.budgets.thread]\niterations = 3\n");
  const args = ["--provider", "rehearsal"];
  let server = await Server.start({ data, args });
  const { token } = await server.createToken({ user_id: "ada", scopes: ["agent", "read"] });
  const start = async (budgets?: object) =>
    server.call<ThreadView>("thread/start", budgets === undefined ? {} : { budgets }, token);
  const say = async (thread_id: string, input: string): Promise<string | null> => {
    const { turn_id } = await server.call<TurnView>("turn/start", { thread_id, input }, token);
    const { turns } = await eventually(
      () => server.call<ThreadPage>("thread/read", { thread_id }, token),
      (page) =>
        page.turns.some((turn) => turn.turn_id === turn_id && turn.state !== "active" && turn.state !== "queued"),
    );
    const turn = turns.find((one) => one.turn_id === turn_id);
    return `${turn?.state}${turn?.note == null ? "" : `: ${turn.note}`}`;
  };
  const less = await start({ iterations: 1, tokens: 100_000 });
  expect(less.budgets).toEqual({ tokens: 100_000, iterations: 1, time_ms: null });
  expect(await say(less.thread_id, "one")).toBe("completed");
  expect(await say(less.thread_id, "two")).toMatch(/^failed: the conversation had its 1 model calls/);
  const more = await start({ iterations: 100 });
  for (const word of ["one", "two", "three"]) expect(await say(more.thread_id, word)).toBe("completed");
  expect(await say(more.thread_id, "four")).toMatch(/^failed: the conversation had its 3 model calls/);
  expect((await start()).budgets).toBeNull();
  expect((await start({})).budgets).toBeNull();
  for (const budgets of [{ iterations: 0 }, { tokens: 1.5 }, { calls: 3 }, { time_ms: "1h" }])
    expect((await server.rpc("thread/start", { budgets }, token)).error).toMatchObject({ code: -32602 });

  // By its id it is the same one, and stays as it was started.
  const { thread_id } = less;
  const named = (budgets: object) => server.rpc<ThreadView>("thread/start", { thread_id, user_id: "ada", budgets });
  expect((await named({ iterations: 1, tokens: 100_000 })).result?.thread_id).toBe(thread_id);
  expect((await named({ iterations: 9 })).error?.data).toMatchObject({ reason: "idempotency_mismatch" });

  await server.kill();
  server = await Server.start({ data, args });
  const { threads } = await server.call<{ threads: ThreadView[] }>("thread/list", {}, token);
  expect(threads.find((one) => one.thread_id === thread_id)?.budgets).toEqual(less.budgets);
  expect(await say(thread_id, "three")).toMatch(/^failed: the conversation had its 1 model calls/);
  await server.stop();
  const tidings = await openTidings({ data });
  expect((await tidings.audit()).problems).toEqual([]);
});
