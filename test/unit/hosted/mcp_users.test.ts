/** What one user's call makes a server say is no other user's. */
import { expect, test } from "vitest";
import { call } from "../../support/background.js";
import { events, fromFile, hears, open, places, tool } from "../../support/mcp.js";

async function shared() {
  const { config } = await fromFile({ logs: 1 }, tool("log"), tool("read"), tool("touch"), tool("die"));
  const talk = await open({ files: { ...config, resources: ["file:///watched"] } });
  const { tidings } = talk;
  for (const user of ["ada", "bob"]) await tidings.startThread({ user_id: user, thread_id: `${user}'s` });
  const say = async (user: string, text: string) => {
    const { turn_id } = await tidings.as(user).thread(`${user}'s`).say(text);
    await tidings.turns.ended(turn_id);
  };
  return { tidings, say };
}

test("a line of a log goes to the thread that alone has a call under way, and to the operator once others use the server", async () => {
  const { tidings, say } = await shared();
  await say("ada", call("files_log", {}));
  await hears(tidings, "mcp.log");
  expect(await places(tidings)).toEqual(["mcp.log ada ada's"]);
  await say("bob", call("files_read", {}));
  await say("ada", call("files_log", {}));
  await hears(tidings, "mcp.log", 2);
  expect((await places(tidings)).slice(1)).toEqual(["mcp.log local null"]);
});

test("that a resource has changed which the operator has named is told to all that use its server, by its name alone", async () => {
  const { tidings, say } = await shared();
  await say("bob", call("files_read", {}));
  await say(
    "ada",
    [call("files_touch", { uri: "file:///ada" }), call("files_touch", { uri: "file:///watched" })].join("\n"),
  );
  await hears(tidings, "mcp.resource_updated", 2);
  expect(await places(tidings)).toEqual(["mcp.resource_updated bob bob's", "mcp.resource_updated ada ada's"]);
});

test.each([
  ["a user who is alone with the server hears what it said at its end", [], "it ended with code 0: no room for ada"],
  ["once others use it, that is the operator's", ["bob"], "it ended with code 0"],
])("%s", async (_what, others, reason) => {
  const { tidings, say } = await shared();
  for (const user of others) await say(user, call("files_read", {}));
  await say("ada", call("files_die", { words: "no room for ada" }));
  await hears(tidings, "mcp.disconnected");
  const told = await events(tidings, "mcp.disconnected");
  expect(told.map((payload) => payload["reason"])).toEqual([...others, "ada"].map(() => reason));
  const { items } = await tidings.as("ada").thread("ada's").read();
  const last = items.findLast((item) => item.type === "tool_call");
  expect(last?.content.output).toContain(`went away during the call: ${reason}. What`);
});
