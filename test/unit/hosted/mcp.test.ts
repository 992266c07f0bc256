/** A real MCP server, the reference server of the protocol's authors, that dies, stops and comes back. */
import { describe, expect, test } from "vitest";
import { call, noneRuns, running, Talk } from "../../support/background.js";
import { eventually } from "../../support/folder.js";
import { becomes, everything, everythingAt, freePort, news, server, Wire } from "../../support/mcp.js";

const LONG = "everything_trigger-long-running-operation";
const WATCHED = { ping_secs: 0.2, ping_timeout_secs: 30, call_timeout_secs: 60, reconnect_max_secs: 1 };
/** Long enough for a server on a busy machine, which is slow, and not stopped. */
const STOPPED = { ...WATCHED, ping_timeout_secs: 2 };

const BROKEN =
  /^failed: the connection to the MCP server everything broke during the call: .+\. What the call had done by then is unknown/;

/** The answers to the calls so far, and whether they are errors. */
async function results(talk: Talk): Promise<string[]> {
  return (await talk.calls()).map(({ status, content }) => `${status}: ${content.output ?? ""}`);
}

/** Resolves when so many calls are at their server. */
async function underWay(talk: Talk, count = 1): Promise<void> {
  await eventually(
    async () => (await server(talk.tidings, "everything")).calls,
    (calls) => calls === count,
  );
}

describe("a server that is a child process", () => {
  test("is killed in the middle of a call: one error result, told once, back once, and its tools can be used again", async () => {
    const config = everything(WATCHED);
    const talk = await Talk.open({ mcp: { everything: config } });
    const { pid } = await becomes(talk.tidings, "everything", "connected");
    await talk.say(call("everything_echo", { message: "hello" }));
    expect(await results(talk)).toEqual(["completed: Echo: hello"]);

    const turn = talk.say(call(LONG, { duration: 60, steps: 1 }));
    await underWay(talk);
    process.kill(pid ?? 0, "SIGKILL");
    await turn;
    expect((await results(talk)).slice(1)).toEqual([
      expect.stringMatching(/^failed: the MCP server everything went away during the call: it was ended by SIGKILL/),
    ]);
    const back = await becomes(talk.tidings, "everything", "connected");
    expect(back.pid).not.toBe(pid);
    await talk.say(call("everything_echo", { message: "again" }));
    expect((await results(talk)).at(-1)).toBe("completed: Echo: again");
    expect(await news(talk.tidings)).toEqual({ "mcp.disconnected": 1, "mcp.reconnected": 1 });
    expect((await talk.told()).filter((text) => text.includes("MCP server everything"))).toEqual([
      expect.stringMatching(/^mcp_down: MCP server everything has disconnected - it was ended by SIGKILL/),
      expect.stringMatching(/^mcp_up: MCP server everything has reconnected/),
    ]);
    await talk.tidings.close();
    await noneRuns(config.args?.at(-1) ?? "");
  });

  test("is stopped: told once that it does not answer, calls time out, and it is well again when it goes on", async () => {
    const config = everything({ ...STOPPED, call_timeout_secs: 1, pings_unanswered_max: 1_000 });
    const talk = await Talk.open({ mcp: { everything: config } });
    const { pid } = await becomes(talk.tidings, "everything", "connected");
    const turn = talk.say(call("everything_echo", { message: "first" }), call(LONG, { duration: 60, steps: 1 }));
    await underWay(talk);
    process.kill(pid ?? 0, "SIGSTOP");
    await turn;
    await becomes(talk.tidings, "everything", "unresponsive");
    await talk.say(call("everything_echo", { message: "anybody?" }));
    expect((await results(talk)).slice(1)).toEqual([
      "failed: timed out after 1000 ms",
      "failed: timed out after 1000 ms",
    ]);
    expect(await news(talk.tidings)).toEqual({ "mcp.unresponsive": 1 });

    process.kill(pid ?? 0, "SIGCONT");
    const back = await becomes(talk.tidings, "everything", "connected");
    expect(back.pid).toBe(pid);
    await talk.say(call("everything_echo", { message: "again" }));
    expect((await results(talk)).at(-1)).toBe("completed: Echo: again");
    expect(await news(talk.tidings)).toEqual({ "mcp.unresponsive": 1, "mcp.reconnected": 1 });
    await talk.tidings.close();
    await noneRuns(config.args?.at(-1) ?? "");
  });

  test("is stopped for good: it is given up, ended and started anew, and told once each", async () => {
    const config = everything({ ...STOPPED, pings_unanswered_max: 2 });
    const talk = await Talk.open({ mcp: { everything: config } });
    const { pid } = await becomes(talk.tidings, "everything", "connected");
    await talk.say(call("everything_echo", { message: "first" }));
    process.kill(pid ?? 0, "SIGSTOP");
    await becomes(talk.tidings, "everything", "unresponsive");
    const back = await becomes(talk.tidings, "everything", "connected");
    expect(back.pid).not.toBe(pid);
    expect(await news(talk.tidings)).toEqual({ "mcp.unresponsive": 1, "mcp.reconnected": 1 });
    expect(running(config.args?.at(-1) ?? ""), "the one that was stopped is gone").toBe(1);
    await talk.say(call("everything_echo", { message: "again" }));
    expect((await results(talk)).at(-1)).toBe("completed: Echo: again");
  });
});

/** A talk with the server at an address, connected over a wire that can be cut. */
async function overWire(): Promise<{ wire: Wire; talk: Talk }> {
  const port = await freePort();
  await everythingAt(port);
  const wire = await Wire.to(port);
  const mcp = { everything: { url: `http://127.0.0.1:${wire.port}/mcp`, ...WATCHED } };
  const talk = await Talk.open({ mcp });
  await becomes(talk.tidings, "everything", "connected");
  return { wire, talk };
}

describe("a server at an address", () => {
  test("the connection is dropped in the middle of a call: one error result, told once, back once, and its tools work", async () => {
    const { wire, talk } = await overWire();
    await talk.say(call("everything_echo", { message: "hello" }));
    const turn = talk.say(call(LONG, { duration: 60, steps: 1 }));
    await underWay(talk);
    await wire.cut();
    await turn;
    await becomes(talk.tidings, "everything", "away");
    await talk.say(call("everything_echo", { message: "anybody?" }));
    await wire.mend();
    await becomes(talk.tidings, "everything", "connected");
    await talk.say(call("everything_echo", { message: "again" }));
    expect(await results(talk)).toEqual([
      "completed: Echo: hello",
      expect.stringMatching(BROKEN),
      expect.stringMatching(/^failed: the MCP server everything is away: .*The call was not made/),
      "completed: Echo: again",
    ]);
    expect(await news(talk.tidings)).toEqual({ "mcp.disconnected": 1, "mcp.reconnected": 1 });
  });

  test("connections are dropped and can be made again at once: a call is lost, the server is not", async () => {
    const { wire, talk } = await overWire();
    wire.drop();
    await talk.say(call("everything_echo", { message: "hello" }));
    const turn = talk.say(call(LONG, { duration: 60, steps: 1 }));
    await underWay(talk);
    wire.drop();
    await turn;
    await becomes(talk.tidings, "everything", "connected");
    await talk.say(call("everything_echo", { message: "again" }));
    expect(await results(talk)).toEqual([
      "completed: Echo: hello",
      expect.stringMatching(BROKEN),
      "completed: Echo: again",
    ]);
    expect(await news(talk.tidings)).toEqual({});
  });

  test("the connection of one call is dropped: that call is lost, and nobody else's", async () => {
    const { wire, talk } = await overWire();
    const { thread_id } = await talk.tidings.startThread({ thread_id: "other", user_id: "bob" });
    const other = new Talk(talk.tidings, thread_id);
    const lost = talk.say(call(LONG, { duration: 61, steps: 1 }));
    await underWay(talk);
    const kept = other.say(call(LONG, { duration: 3, steps: 1 }));
    await underWay(talk, 2);
    wire.dropAsking('"duration":61');
    await lost;
    expect(await results(talk)).toEqual([expect.stringMatching(BROKEN)]);
    await kept;
    expect(await results(other)).toEqual([expect.stringMatching(/^completed: Long running operation completed/)]);
    expect(await news(talk.tidings)).toEqual({});
  });

  test("the server is killed and another one takes its place, which knows nothing of the session", async () => {
    const port = await freePort();
    const first = await everythingAt(port);
    const mcp = { everything: { url: `http://127.0.0.1:${port}/mcp`, ...WATCHED } };
    const talk = await Talk.open({ mcp });
    await becomes(talk.tidings, "everything", "connected");
    await talk.say(call("everything_echo", { message: "hello" }));
    first.kill("SIGKILL");
    await becomes(talk.tidings, "everything", "away");
    await everythingAt(port);
    await becomes(talk.tidings, "everything", "connected");
    await talk.say(call("everything_echo", { message: "again" }));
    expect((await results(talk)).at(-1)).toBe("completed: Echo: again");
    expect(await news(talk.tidings)).toEqual({ "mcp.disconnected": 1, "mcp.reconnected": 1 });
  });

  test("is stopped: told once that it does not answer, calls time out, and it is well again when it goes on", async () => {
    const port = await freePort();
    const child = await everythingAt(port);
    const watched = { ...STOPPED, call_timeout_secs: 1, pings_unanswered_max: 1_000 };
    const talk = await Talk.open({ mcp: { everything: { url: `http://127.0.0.1:${port}/mcp`, ...watched } } });
    await becomes(talk.tidings, "everything", "connected");
    await talk.say(call("everything_echo", { message: "hello" }));
    child.kill("SIGSTOP");
    await becomes(talk.tidings, "everything", "unresponsive");
    await talk.say(call("everything_echo", { message: "anybody?" }));
    child.kill("SIGCONT");
    await becomes(talk.tidings, "everything", "connected");
    await talk.say(call("everything_echo", { message: "again" }));
    expect((await results(talk)).slice(1)).toEqual(["failed: timed out after 1000 ms", "completed: Echo: again"]);
    expect(await news(talk.tidings)).toEqual({ "mcp.unresponsive": 1, "mcp.reconnected": 1 });
  });
});
