/** The host of a command in the background is killed: the command is ended, and its agent is told after the next start. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import type { NotificationWithEvents, ThreadItem } from "../../src/index.js";
import { act, call, longSleep, noneRuns, running, spawn } from "../support/background.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { Host } from "../support/host.js";
import { odd, QUICK } from "../support/mcp.js";

const AGENT = { provider: "rehearsal", shell: { command_lines: true } };

async function started(data: string, under: readonly string[] = []): Promise<Host> {
  const host = await Host.start({ under });
  await host.open({ data, agent: AGENT });
  return host;
}

/** What the agent was told of handles, in words; waits for as many. */
async function told(host: Host, count: number): Promise<string[]> {
  const items = await eventually(
    async () =>
      (await host.command<ThreadItem[]>("items", "chat")).flatMap((item) =>
        item.type === "observation" && item.status === "sent" ? [item.content.text] : [],
      ),
    (found) => found.length >= count,
  );
  await eventually(
    () => host.call<{ notifications: { state: string }[] }>("list", { thread_id: "chat", channel: "context" }),
    ({ notifications }) => notifications.every(({ state }) => state !== "PENDING" && state !== "LOCKED"),
  );
  return items;
}

const answer = (items: readonly ThreadItem[]) => {
  const call = items.findLast((item) => item.type === "tool_call");
  return JSON.parse(call?.content.output ?? "null");
};

test("killed while the command runs: it is ended, told of once after the start, and can be asked for", async () => {
  const data = await temporaryFolder();
  const nap = longSleep();
  const first = await started(data);
  await first.command("say", "chat", spawn("build", { command: `trap "" TERM; echo before; ${nap}; ${nap}` }));
  await eventually(
    async () => running(nap),
    (count) => count >= 1,
  );
  first.kill("SIGKILL");
  await first.ended;
  await noneRuns(nap);

  const second = await started(data);
  const [words, ...more] = await told(second, 1);
  expect(more).toEqual([]);
  expect(words).toMatch(/^tool_failed: shell \(handle build\) has failed\nerror: its host was gone before it was done/);
  expect(words).toContain("call shell with action fetch and handle build to read the error");
  expect(answer(await second.command("say", "chat", act("fetch", "build")))).toMatchObject({
    state: "stopped",
    error: { transient: true },
  });
  expect(await second.call("audit")).toMatchObject({ problems: [] });
  await second.call("close");

  // Once: the next start has nothing to say.
  const third = await started(data);
  await third.command("say", "chat", "hello");
  expect(await told(third, 1)).toHaveLength(1);
});

test("killed between what came of it and the event: told after the start what came of it", async () => {
  const data = await temporaryFolder();
  const first = await started(data, ["env", "TIDINGS_CRASH_AT=handle.recorded"]);
  // Whoever waits for the turn may see the process die.
  await first.command("say", "chat", spawn("build", { command: "echo out; exit 3" })).catch(() => undefined);
  expect(await first.ended).toBe("SIGKILL");

  const second = await started(data);
  const [words, ...more] = await told(second, 1);
  expect(more).toEqual([]);
  expect(words).toContain("exit_code: 3");
  expect(answer(await second.command("say", "chat", act("fetch", "build")))).toMatchObject({
    exit_code: 3,
    output: "out\n",
  });
  const { notifications } = await second.call<{ notifications: NotificationWithEvents[] }>("list", {
    thread_id: "chat",
  });
  expect(notifications.filter(({ kind }) => kind === "tool.failed")).toMatchObject([{ state: "DELIVERED", count: 1 }]);
});

test("killed after the agent was told: it is not told again", async () => {
  const data = await temporaryFolder();
  const first = await started(data);
  await first.command("say", "chat", spawn("build", { command: "exit 3" }));
  expect(await told(first, 1)).toHaveLength(1);
  first.kill("SIGKILL");
  await first.ended;
  const second = await started(data);
  await second.command("say", "chat", "hello");
  expect(await told(second, 1)).toHaveLength(1);
  expect(await second.call("audit")).toMatchObject({ problems: [] });
});

test("closing ends the commands that it runs, before it answers", async () => {
  const data = await temporaryFolder();
  const nap = longSleep();
  const host = await started(data);
  await host.command("say", "chat", spawn("nap", { command: nap }));
  await host.call("close");
  expect(running(nap)).toBe(0);
});

/** The processes beside a host that end its commands if it is gone. */
function guards(host: Host): number[] {
  const lines = execFileSync("ps", ["-eo", "pid=,ppid=,stat=,args="], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [pid, ppid, stat = ""] = line.trim().split(/ +/);
    const isOne = Number(ppid) === host.process.pid && line.includes("read -r what group");
    return isOne && !stat.startsWith("Z") ? [Number(pid)] : [];
  });
}

test("the guard is killed: another one takes its place, and ends what runs when the host is killed", async () => {
  const data = await temporaryFolder();
  const nap = longSleep();
  const host = await started(data);
  await host.command("say", "chat", spawn("nap", { command: nap }));
  for (let round = 0; round < 3; round += 1) {
    const [guard, ...more] = guards(host);
    if (guard === undefined) throw new Error("there is no guard");
    expect(more).toEqual([]);
    process.kill(guard, "SIGKILL");
    await eventually(
      async () => guards(host),
      ([another]) => another !== undefined && another !== guard,
    );
  }
  expect(running(nap)).toBeGreaterThan(0);
  host.kill("SIGKILL");
  await host.ended;
  await noneRuns(nap);
});

test("no file descriptors are left: commands and MCP servers that cannot be started say so, and the host goes on", async () => {
  const data = await temporaryFolder();
  const nap = longSleep();
  const host = await Host.start({ under: ["bash", "-c", 'ulimit -n 300; exec "$@"', "limited"] });
  await host.open({ data, agent: { ...AGENT, shell: {}, mcp: { odd: odd({ exit: 1 }, QUICK) } } });
  const names: string[] = [];
  const reason = async () => (await host.call<{ reason: string | null }[]>("mcp.list"))[0]?.reason ?? "";
  const isFull = (words: string) => words.includes("file descriptors");
  await eventually(async () => {
    const more = Array.from({ length: names.length < 100 ? 20 : 1 }, (_, at) => `nap${names.length + at}`);
    names.push(...more);
    await host.command("say", "chat", more.map((name) => spawn(name, { argv: nap.split(" ") })).join("\n"));
    return reason();
  }, isFull);
  const look = await host.command<ThreadItem[]>("say", "chat", call("await", { all: names, timeout_secs: 0 }));
  const { completed, pending } = answer(look);
  expect(pending.length).toBeGreaterThan(0);
  expect(completed.length).toBeGreaterThan(0);
  for (const one of completed)
    expect(one).toMatchObject({
      state: "stopped",
      error: { message: "it could not be started: the host has no file descriptors left (EMFILE)", transient: true },
    });
  const ends = pending.map(({ handle }: { handle: string }) => act("abort", handle));
  await host.command("say", "chat", ends.join("\n"));
  await noneRuns(nap);
  await eventually(reason, (words) => !isFull(words));
  const next = spawn("next", { argv: ["echo", "on"] });
  const after = await host.command<ThreadItem[]>("say", "chat", `${next}\n${call("await", { all: ["next"] })}`);
  expect(answer(after)).toMatchObject({ completed: [{ handle: "next", exit_code: 0, output: "on\n" }] });
  await host.call("close");
});
