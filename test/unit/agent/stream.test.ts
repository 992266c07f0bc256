/** The conversation stream in its serial form, literally; and what a call of the model costs on disk. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Agent, CHAT, latch, NEVER, openAgent, scripted, speaking, tool } from "../../support/agent.js";
import { temporaryFolder } from "../../support/folder.js";

describe("the stream", () => {
  test("of a conversation with news, tools, an answer that was cut off, and a turn of the system's", async () => {
    const model = scripted([
      { text: "I look.", calls: [{ name: "look", input: { at: "a" } }, { name: "fail" }] },
      { text: "Done." },
      { text: "Once upon", until: NEVER },
      { text: "The disk is full. Once upon a time." },
    ]);
    const look = tool("look", async () => {
      await opened.notify("Tool `git` (handle `h_1`) is waiting for input.", {
        kind: "tool.waiting",
        severity: "warning",
      });
      return "seen";
    });
    const fail = tool("fail", () => {
      throw new Error("out of order");
    });
    const opened: Agent = await openAgent({ agent: { model, tools: [look, fail] } });
    await opened.notify("Tool `cargo_check` (handle `h_3`) has stopped with result available.", {
      kind: "tool.stopped",
    });
    await opened.notify("MCP server `github` has disconnected.", { kind: "mcp.disconnected", severity: "error" });
    await opened.notify("Downloaded.", { kind: "download.done", target: "user", handler: "system" });
    await opened.converse("Look at it");
    const heard = speaking(opened.tidings);
    await opened.chat.say("Tell me a story");
    await heard;
    await opened.notify("The disk is full.", { kind: "disk.full", severity: "critical" });
    await opened.turnsOver(3);
    expect(await lines(opened)).toEqual([
      '{"type":"thread_started"}',
      '{"type":"system_notification_queued","kind":{"source":"tool","name":"stopped"},"message":"Tool `cargo_check` (handle `h_3`) has stopped with result available."}',
      '{"type":"system_notification_queued","kind":{"source":"mcp","name":"disconnected"},"level":"error","message":"MCP server `github` has disconnected."}',
      '{"type":"turn_started","turn_id":"turn 1","source":"user"}',
      '{"type":"chat_request","content":"Look at it","source":"user","notifications":[{"kind":{"source":"mcp","name":"disconnected"},"level":"error","message":"MCP server `github` has disconnected."},{"kind":{"source":"tool","name":"stopped"},"message":"Tool `cargo_check` (handle `h_3`) has stopped with result available."}]}',
      '{"type":"chat_response","content":"I look."}',
      '{"type":"tool_call_request","id":"call_1","name":"look","arguments":{"at":"a"}}',
      '{"type":"tool_call_request","id":"call_2","name":"fail","arguments":{}}',
      '{"type":"system_notification_queued","kind":{"source":"tool","name":"waiting"},"level":"warning","message":"Tool `git` (handle `h_1`) is waiting for input."}',
      '{"type":"tool_call_response","id":"call_1","result":{"Ok":"seen"},"notifications":[{"kind":{"source":"tool","name":"waiting"},"level":"warning","message":"Tool `git` (handle `h_1`) is waiting for input."}]}',
      '{"type":"tool_call_response","id":"call_2","result":{"Err":"out of order"}}',
      // The agent saw it itself: it is in no message.
      '{"type":"system_notification_queued","kind":{"source":"tool","name":"call.failure"},"level":"error","message":"tool_fail: fail failed - out of order"}',
      '{"type":"chat_response","content":"Done."}',
      '{"type":"turn_ended","turn_id":"turn 1","state":"completed"}',
      '{"type":"turn_started","turn_id":"turn 2","source":"user"}',
      '{"type":"chat_request","content":"Tell me a story","source":"user"}',
      '{"type":"system_notification_queued","kind":{"source":"disk","name":"full"},"level":"critical","message":"The disk is full."}',
      '{"type":"chat_response","content":"Once upon","truncated":true}',
      '{"type":"turn_ended","turn_id":"turn 2","state":"interrupted"}',
      '{"type":"turn_started","turn_id":"turn 3","source":"system"}',
      '{"type":"chat_request","content":"The system opened this turn because something critical has happened. See the notifications, and act on them first. Your answer was cut off by it: what the user had asked is still open; answer it in this turn, too, and go on where you were cut off.","source":"system","notifications":[{"kind":{"source":"disk","name":"full"},"level":"critical","message":"The disk is full."}]}',
      '{"type":"chat_response","content":"The disk is full. Once upon a time."}',
      '{"type":"turn_ended","turn_id":"turn 3","state":"completed"}',
    ]);
  });

  test("is the same after a restart, and is only read", async () => {
    const data = await temporaryFolder();
    const before = await openAgent({ data });
    await before.notify("news");
    await before.converse("Hello");
    const written = await before.chat.events();
    const { last_seq } = await before.tidings.facts();
    await before.tidings.close();
    const agent = await openAgent({ data });
    expect(await agent.chat.events()).toEqual(written);
    expect((await agent.tidings.facts()).last_seq).toBe(last_seq);
  });

  test("what was not told is not in the message that failed to bring it", async () => {
    const gate = latch();
    const model = scripted([{ before: gate.opened, fails: new Error("no such model") }, { text: "Hello." }]);
    const agent = await openAgent({ policy: { backoffMs: 0 }, agent: { model } });
    await agent.notify("news");
    gate.open();
    expect(await agent.converse("One")).toMatchObject({ state: "failed" });
    await agent.converse("Two");
    const requests = (await lines(agent)).filter((line) => line.includes("chat_request"));
    expect(requests).toEqual([
      '{"type":"chat_request","content":"One","source":"user"}',
      expect.stringMatching(
        /^\{"type":"chat_request","content":"Two","source":"user","notifications":\[.*"message":"news"\}/,
      ),
    ]);
  });

  test("what is switched off is in the stream, and in no message", async () => {
    const data = await temporaryFolder();
    await writeFile(join(data, "tidings.toml"), "[conversation.notifications.kinds.deploy]\nenable = false\n");
    const agent = await openAgent({ data });
    await agent.notify("deployed", { kind: "deploy.done" });
    await agent.notify("built", { kind: "build.done" });
    await agent.converse("Hello");
    const written = await lines(agent);
    expect(written.filter((line) => line.includes("system_notification_queued"))).toHaveLength(2);
    const [request = ""] = written.filter((line) => line.includes("chat_request"));
    expect(request).toContain('"message":"built"');
    expect(request).not.toContain("deployed");
  });

  test("of a turn that the user does not see says so", async () => {
    const agent = await openAgent({ agent: { model: scripted([{ text: "Well." }]) } });
    const id = await agent.decides("a new version", { kind: "app.updated" });
    await agent.becomes(id, "DELIVERED");
    await agent.turnsOver(1);
    expect(await lines(agent)).toEqual([
      '{"type":"thread_started"}',
      '{"type":"system_notification_queued","kind":{"source":"app","name":"updated"},"message":"a new version"}',
      '{"type":"turn_started","turn_id":"turn 1","source":"system","internal":true}',
      expect.stringMatching(/^\{"type":"chat_request","content":".*","source":"system","notifications":\[/),
      '{"type":"chat_response","content":"Well."}',
      '{"type":"turn_ended","turn_id":"turn 1","state":"completed"}',
    ]);
  });
});

describe("commits, counted in the log of the database", () => {
  test("three at most for a call of the model, whatever it tells and does", async () => {
    const quick = tool("quick", () => "done");
    const model = scripted([
      { text: "Hello." },
      { text: "Hello again." },
      { text: "Both.", calls: [{ name: "quick" }, { name: "quick" }, { name: "quick" }] },
      { calls: [{ name: "quick" }] },
      { text: "Done." },
    ]);
    const agent = await openAgent({ agent: { model, tools: [quick] } });
    const cost = async (content: string) => {
      const before = await commits(agent.data);
      const calls = model.requests.length;
      await agent.converse(content);
      return { commits: (await commits(agent.data)) - before, calls: model.requests.length - calls };
    };
    const plain = await cost("Nothing to tell");
    expect(plain.calls).toBe(1);
    expect(plain.commits).toBeLessThanOrEqual(3);
    expect(plain.commits).toBeGreaterThan(1);
    for (let number = 0; number < 15; number += 1) await agent.notify(`news ${number}`);
    await agent.notify("shown", { target: "user", handler: "system" });
    const telling = await cost("Much to tell");
    expect(telling.calls).toBe(1);
    expect(telling.commits).toBeLessThanOrEqual(3);
    for (let number = 0; number < 5; number += 1) await agent.notify(`more news ${number}`);
    const working = await cost("Work");
    expect(working.calls).toBe(3);
    expect(working.commits).toBeLessThanOrEqual(9);
  });

  test("of a turn that narrates and acknowledges: no more", async () => {
    const agent = await openAgent();
    await agent.chat.pause();
    const ids = await Promise.all(["one", "two", "three"].map((content) => agent.mustNarrate(content)));
    const queued = await agent.chat.say("Hello");
    const before = await commits(agent.data);
    await agent.chat.resume();
    await agent.tidings.turns.ended(queued.turn_id);
    // One of them is the resumption.
    expect((await commits(agent.data)) - before - 1).toBeLessThanOrEqual(3 * agent.counters.model_calls);
    expect(agent.counters.model_calls).toBe(2);
    for (const id of ids) expect(await agent.state(id)).toBe("DELIVERED");
  });
});

/** Each event as it is written, the ids of turns by their order. */
async function lines(agent: Agent): Promise<string[]> {
  const turns = (await agent.turns(CHAT)).map(({ turn_id }) => turn_id);
  return (await agent.chat.events()).map((event) =>
    turns.reduce<string>((line, id, index) => line.replace(id, `turn ${index + 1}`), JSON.stringify(event)),
  );
}

const HEADER_BYTES = 32;
const FRAME_BYTES = 24;

/** How many transactions stand in the write-ahead log: its frames that end one, of the log's present generation. */
async function commits(data: string): Promise<number> {
  const log = await readFile(join(data, "tidings.db-wal"));
  const page = log.readUInt32BE(8);
  const salt = log.subarray(16, 24);
  let count = 0;
  for (let at = HEADER_BYTES; at + FRAME_BYTES + page <= log.length; at += FRAME_BYTES + page) {
    if (!log.subarray(at + 8, at + 16).equals(salt)) break;
    if (log.readUInt32BE(at + 4) > 0) count += 1;
  }
  return count;
}
