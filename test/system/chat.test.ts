/** `tidings chat` as its users have it: a process with a pipe, and one with a terminal. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ThreadPage } from "../../src/runtime/conversation.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { Server } from "../support/server.js";
import { ndjson, run, start } from "./cli.js";

const PROGRAM = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const REHEARSAL = ["--provider", "rehearsal"];

interface Said {
  method?: string;
  params?: Record<string, unknown>;
  chat?: { thread_id: string; agent: object };
  inbox?: unknown[];
  threads?: { thread_id: string }[];
}

/** A conversation by lines, from beginning to end. */
function chat(data: string, lines: readonly string[], ...args: string[]) {
  return run(["chat", "--data", data, ...args], { input: lines.map((line) => `${line}\n`).join("") });
}

async function events(data: string, lines: readonly string[], ...args: string[]): Promise<Said[]> {
  const { code, stdout, stderr } = await chat(data, lines, "--json", ...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return ndjson(stdout) as Said[];
}

/** A process whose output is kept, and waited for. */
class Speaker {
  readonly process: ChildProcess;
  readonly ended: Promise<number | null>;
  output = "";

  constructor(child: ChildProcess) {
    this.process = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
    child.stdin?.on("error", () => {});
    this.ended = new Promise((resolve) => child.on("close", resolve));
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await this.ended;
    });
  }

  type(text: string): void {
    this.process.stdin?.write(text);
  }

  /** Waits until this is said, after what was waited for before. */
  async hears(words: string | RegExp): Promise<string> {
    const wanted = typeof words === "string" ? new RegExp(words.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")) : words;
    const all = await eventually(
      async () => this.output,
      (said) => wanted.test(said),
      30_000,
    );
    const { index = 0, 0: found } = wanted.exec(all) as RegExpExecArray;
    this.output = all.slice(index + found.length);
    return all.slice(0, index + found.length);
  }
}

describe("with a pipe", () => {
  test("each line is a message, its turn is over before the next, and the folder is let go", async () => {
    const data = await temporaryFolder();
    const ended = await chat(data, ["good day", "", "call read_notifications {}", "//slash", "/help"], ...REHEARSAL);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.stdout.split("\n").slice(0, 6)).toEqual([
      'I read: "good day".',
      "There are no notifications.",
      "⚙ read_notifications {} → (nothing)",
      "read_notifications answered: (nothing)",
      'I read: "/slash".',
      "There are no notifications.",
    ]);
    for (const command of ["/inbox", "/explain [ID]", "/threads", "/pause", "/resume", "/quit"])
      expect(ended.stdout).toContain(command);
    expect(existsSync(join(data, "server.json"))).toBe(false);
    expect(await run(["audit", "--data", data])).toMatchObject({ code: 0 });
  });

  test("with --json, what happens is told as a WebSocket client is told, in the journal's order", async () => {
    const data = await temporaryFolder();
    const [first, ...rest] = await events(data, ["hello", "/inbox"], ...REHEARSAL);
    expect(first?.chat).toEqual({
      thread_id: expect.any(String),
      agent: { provider: "rehearsal", model: "rehearsal" },
    });
    expect(rest.at(-1)).toEqual({ inbox: [] });
    const methods = rest.flatMap(({ method }) => (method === undefined || method === "turn/progress" ? [] : [method]));
    expect(methods).toEqual(["turn/started", "item/created", "item/created", "turn/completed"]);
    const seqs = rest.flatMap(({ params }) => (typeof params?.["seq"] === "number" ? [params["seq"]] : []));
    expect(seqs).toEqual(seqs.toSorted((one, other) => one - other));
  });

  test("a conversation is gone on with; what waited is told to the agent, and shown", async () => {
    const data = await temporaryFolder();
    const [first] = await events(data, ["hello"], ...REHEARSAL);
    const thread_id = first?.chat?.thread_id ?? "";
    const tell = (...words: string[]) => run(["notify", ...words, "--thread", thread_id, "--data", data]);
    await tell("The build is red", "--severity", "error");
    const again = await chat(data, ["and now?", "/threads", "/explain"], "--thread", thread_id, ...REHEARSAL);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(again.stdout).toMatch(
      /^told the agent: The build is red\nI read: "and now\?"\nI was told: The build is red/,
    );
    expect(again.stdout).toMatch(new RegExp(`\n1 conversation\n {2}${thread_id} .*this one\n`));
    // Of the notification that was seen last.
    expect(again.stdout).toMatch(/direct\.notify is DELIVERED on the channel context[\s\S]*The build is red/);
    const named = await events(data, ["hello"], "--thread", "of my own", ...REHEARSAL);
    expect(named[0]?.chat?.thread_id).toBe("of my own");
  });

  test("a turn that fails is told, and is the exit code", async () => {
    const unreachable = ["--provider", "openai-compatible", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"];
    const ended = await chat(await temporaryFolder(), ["hello"], ...unreachable);
    expect(ended).toMatchObject({ code: 1, stderr: "" });
    expect(ended.stdout).toMatch(/^✖ the turn failed: .*cannot be reached/);
  });

  test("while it hosts the agent, other commands go through it, and what they report is seen", async () => {
    const data = await temporaryFolder();
    const speaker = new Speaker(start(["chat", "--data", data, ...REHEARSAL]));
    speaker.type("good day\n");
    await speaker.hears("no notifications.\n");
    const notify = (...words: string[]) => run(["notify", ...words, "--data", data]);
    expect(await notify("For your inbox", "--target", "user")).toMatchObject({ code: 0, stderr: "" });
    await speaker.hears("in your inbox: For your inbox\n");
    // For the agent, which is woken for it in the conversation that was active last.
    await notify("Lunch is ready", "--target", "user", "--handler", "agent");
    await speaker.hears(/told the agent: Lunch is ready\n[\s\S]*You should know: Lunch is ready/);
    await speaker.hears(/⚙ acknowledge_notifications .* → acknowledged: /);
    speaker.process.stdin?.end();
    expect(await speaker.ended).toBe(0);
    expect(existsSync(join(data, "server.json"))).toBe(false);
  });

  test("something critical is shown as what happened, and not in the words that are for the model", async () => {
    const data = await temporaryFolder();
    const speaker = new Speaker(start(["chat", "--data", data, ...REHEARSAL]));
    speaker.type("say slowly 200\n");
    const thread = await eventually(
      async () => (await run(["threads", "--json", "--data", data])).stdout,
      (text) => text.includes('"active_turn_id":"'),
      30_000,
    );
    const [{ thread_id = "" } = {}] = (JSON.parse(thread) as Said).threads ?? [];
    const critical = ["--priority", "critical", "--inject-at", "immediate", "--thread", thread_id];
    const notified = await run(["notify", "The database is on fire", ...critical, "--data", data]);
    expect(notified).toMatchObject({ code: 0, stderr: "" });
    const shown = await speaker.hears("I was told: The database is on fire.");
    expect(shown).toContain("something critical came; the agent goes on\ntold the agent: The database is on fire\n");
    expect(shown).not.toMatch(/The system opened|See the notifications/);
    speaker.process.stdin?.end();
    expect(await speaker.ended).toBe(0);
  });

  test("it ends in order with a signal, in the middle of an answer", async () => {
    const data = await temporaryFolder();
    const speaker = new Speaker(start(["chat", "--json", "--data", data, ...REHEARSAL]));
    speaker.type("say slowly 1000\n");
    await speaker.hears("turn/progress");
    speaker.process.kill("SIGTERM");
    expect(await speaker.ended).toBe(0);
    expect(await run(["audit", "--data", data])).toMatchObject({ code: 0 });
  });
});

describe("through a server that runs", () => {
  test("the agent is the server's, and stays; flags that it cannot heed are remarked upon", async () => {
    const server = await Server.start({ args: REHEARSAL });
    const ended = await chat(server.data, ["good day"], "--provider", "openai", "--model", "m");
    expect(ended).toMatchObject({ code: 0, stdout: 'I read: "good day".\nThere are no notifications.\n' });
    expect(ended.stderr).toMatch(/^tidings: --provider, --model have no effect: /);
    const { threads } = await server.call<{ threads: { thread_id: string }[] }>("thread/list");
    const [thread] = threads;
    const { items } = await server.call<ThreadPage>("thread/read", { thread_id: thread?.thread_id });
    expect(items).toHaveLength(2);
    expect(await server.stop()).toBe(0);
    expect(server.stderr).toBe("");
  });

  test("by a token of its own it is that user's; what the token may not do is refused", async () => {
    const server = await Server.start({ args: REHEARSAL });
    const { token } = await server.createToken({ user_id: "ada", scopes: ["read", "agent"] });
    const line = ["chat", "--server", server.url, "--token", token];
    expect(await run(line, { input: "hello\n" })).toMatchObject({ code: 0, stderr: "" });
    expect(await server.call("thread/list", { user_id: "ada" })).toMatchObject({ threads: [{ user_id: "ada" }] });
    const reads = await server.createToken({ user_id: "ada", scopes: ["read"] });
    const refused = await run(["chat", "--server", server.url, "--token", reads.token], { input: "hello\n" });
    expect(refused).toMatchObject({ code: 7, stdout: "" });
  });

  test("without an agent it says what to do, and so does a provider that is none", async () => {
    const server = await Server.start();
    const none = await chat(server.data, ["hello"]);
    expect(none).toMatchObject({ code: 4, stdout: "" });
    expect(none.stderr).toMatch(/hosts no agent to speak to; start it with --provider/);
    const own = await chat(await temporaryFolder(), ["hello"], "--provider", "none");
    expect(own).toMatchObject({ code: 2, stdout: "" });
  });

  test("a server that goes away ends the conversation, and says so", async () => {
    const server = await Server.start({ args: REHEARSAL });
    const speaker = new Speaker(start(["chat", "--data", server.data]));
    speaker.type("good day\n");
    await speaker.hears("no notifications.\n");
    await server.stop();
    expect(await speaker.ended).toBe(5);
    expect(speaker.output).toMatch(/tells no more: the server is going away/);
  });
});

/** A terminal of its own, where the machine has the program for it. */
const hasTerminals = spawnSync("script", ["--version"]).status === 0;
if (hasTerminals)
  describe("at a terminal", () => {
    function terminal(data: string): Speaker {
      const command = [process.execPath, PROGRAM, "chat", "--data", data, ...REHEARSAL].join(" ");
      const env = { ...process.env, TERM: "xterm", NO_COLOR: "1", COLUMNS: "200" };
      const child = spawn("script", ["--quiet", "--return", "--flush", "--command", command, "/dev/null"], { env });
      return new Speaker(child);
    }
    const CTRL_C = "\u0003";

    test("answers are streamed; Ctrl+C asks: continue, reply, stop; at the prompt it leaves", async () => {
      const data = await temporaryFolder();
      const speaker = terminal(data);
      await speaker.hears("you › ");
      speaker.type("say slowly 40\r");
      await speaker.hears(/agent › word-1 .*word-3 /);
      speaker.type(CTRL_C);
      await speaker.hears("reply, continue or stop? [r/c/s] ");
      speaker.type("c\r");
      // Nothing was cut off: it goes on to its end.
      await speaker.hears(/word-40 [\s\S]*you › /);

      speaker.type("say slowly 1000\r");
      await speaker.hears("word-3 ");
      speaker.type(CTRL_C);
      await speaker.hears("[r/c/s] ");
      speaker.type("r\r");
      await speaker.hears("you › ");
      speaker.type("rather this\r");
      await speaker.hears("it was cut off here");
      await speaker.hears("the user spoke; the agent goes on");
      await speaker.hears(/I read: "rather this"\.[\s\S]*you › /);

      speaker.type("say slowly 1000\r");
      await speaker.hears("word-3 ");
      speaker.type(CTRL_C);
      await speaker.hears("[r/c/s] ");
      speaker.type("s\r");
      await speaker.hears(/it was cut off here[\s\S]*the turn was stopped[\s\S]*you › /);

      speaker.type(CTRL_C);
      await speaker.hears(/To go on with it: {2}.*chat --thread /);
      expect(await speaker.ended).toBe(0);
      expect(existsSync(join(data, "server.json"))).toBe(false);
      expect(await run(["audit", "--data", data])).toMatchObject({ code: 0 });
    });

    test("pills are seen and acknowledged, what the agent was told is seen, and words meanwhile are for the answer", async () => {
      const data = await temporaryFolder();
      const speaker = terminal(data);
      await speaker.hears("you › ");
      const notify = (...words: string[]) => run(["notify", ...words, "--data", data, "--json"]);
      const [own, { threads = [] } = {}] = await events(data, ["/threads"]);
      const [thread = ""] = threads.map((one) => one.thread_id).filter((one) => one !== own?.chat?.thread_id);
      const { id } = JSON.parse((await notify("Disk at 91%", "--target", "user", "--thread", thread)).stdout);
      await speaker.hears(/\[● Disk at 91%\][\s\S]*you › /);
      await eventually(
        async () => (await run(["ledger", "--json", "--data", data])).stdout,
        (text) =>
          (ndjson(text) as { id: string; state: string }[]).some((row) => row.id === id && row.state === "DELIVERED"),
      );
      await notify("The build is red", "--thread", thread);
      speaker.type("say slowly 30\r");
      await speaker.hears("told the agent: The build is red");
      await speaker.hears("word-2 ");
      speaker.type("and this\r");
      await speaker.hears("you, meanwhile: and this");
      const until = await speaker.hears(/I read: "and this"\.[\s\S]*you › /);
      expect(until, "once is enough").not.toContain("you › and this");
      speaker.type("/nope\r");
      await speaker.hears("there is no /nope");
      speaker.type("/quit\r");
      expect(await speaker.ended).toBe(0);
    });
  });
