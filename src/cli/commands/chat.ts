import { RemoteTidings } from "../../client/remote.js";
import type { ThreadItem } from "../../runtime/thread_items.js";
import { AGENT_OPTIONS } from "../agent_options.js";
import { noWords } from "../arguments.js";
import { noAgent, withServer } from "../chat/host.js";
import { defineCommand } from "../command.js";

/** So much of an earlier conversation is shown again. */
const BEFORE_MAX = 20;

export const chat = defineCommand({
  usage: "[--thread ID] [options]",
  about: [
    "Through the data folder's server where one runs, or the one of --server. Otherwise it hosts the agent itself until you " +
      "leave, as `tidings serve` does, on a free port of this machine: commands in another terminal go through it, and what " +
      "they report reaches the agent while you speak with it.",
    "It shows answers as they are made, tool calls with the first line of their results, what the system shows in the " +
      "conversation [in brackets], and, dimmed, what the agent was told.",
    "Ctrl+C while the agent answers holds its words back and asks: reply (it is cut off, and goes on with your words), " +
      "continue (nothing is cut off; what it said meanwhile is shown), or stop; a second Ctrl+C stops it. A line typed " +
      "meanwhile is for the answer that is being made. At the prompt Ctrl+C leaves. /help lists /inbox, /explain, /threads, " +
      "/pause, /resume and /quit.",
    "Where input or output is no terminal, each line of the input is a message, and its turn is over before the next is sent; " +
      "the exit code is 1 if a turn failed. With --json, what happens is told as {method, params}, one a line, as a " +
      "WebSocket client is told.",
  ],
  options: {
    thread: { kind: "text", value: "ID", summary: "the conversation to go on with", preset: "a new one" },
    ...AGENT_OPTIONS,
  },
  examples: [
    "tidings chat",
    "tidings chat --provider anthropic --model claude-sonnet-4-5",
    "echo hello | tidings chat --json",
  ],
  async run({ values, words, settings, output }) {
    noWords(words);
    const stopped = new Promise<void>((resolve) => {
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve());
    });
    return withServer({ settings, output }, values, async (endpoint) => {
      const remote = new RemoteTidings(endpoint);
      const agent = await remote.agent();
      if (agent === null) throw noAgent(endpoint);
      const { thread } = values;
      const { thread_id } = await remote.startThread(thread === undefined ? {} : { thread_id: thread });
      const before = thread === undefined ? [] : await lastItems(remote, thread_id);
      const setting = { remote, agent, thread_id, before, output, dataFlag: settings.dataFlag, stopped };
      if (process.stdin.isTTY && output.terminal)
        return (await import("../chat/interactive.js")).converseAtTerminal(setting);
      return (await import("../chat/piped.js")).conversePiped(setting);
    });
  },
});

async function lastItems(remote: RemoteTidings, thread_id: string): Promise<ThreadItem[]> {
  let items: ThreadItem[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page = await remote.thread(thread_id).read({ after, observe: true });
    items = [...items, ...page.items].slice(-BEFORE_MAX);
    after = page.next;
  }
  return items;
}
