// A tool that runs in the background: the agent starts it, goes on, and is told when it is done.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defineTool, HandleError, Tidings } from "tidings";
import { z } from "zod";

const build = defineTool({
  name: "build",
  description: "Builds a target.",
  input: z.object({ target: z.string() }),
  async spawn({ target }, handle) {
    handle.output(`compiling ${target}\n`); // read by `fetch` while it runs
    await sleep(200, undefined, { signal: handle.signal }); // `abort` ends it
    if (target === "broken") throw new HandleError("2 errors", { transient: false, data: { exit_code: 1 } });
    return `${target} is built`; // kept until it is read
  },
});

const data = await mkdtemp(join(tmpdir(), "tidings-example-"));
const tidings = await Tidings.open({ data, agent: { provider: "rehearsal", tools: [build] } });
const { thread_id } = await tidings.startThread();
const thread = tidings.thread(thread_id);

// The rehearsal model does what the user's lines say; another model finds its own words.
const turn = await thread.say('call build {"action":"spawn","handle":"b1","input":{"target":"broken"}}');
console.log(`the agent has answered: ${(await tidings.turns.ended(turn.turn_id)).state}`);

// Nobody says anything; the agent is woken when the build has ended, and knows how to go on.
for await (const entry of tidings.watch({ after: 0 }))
  if (entry.type === "carrier" && entry.embedded.some(({ kind }) => kind === "tool.failed")) {
    console.log(entry.embedded[0].content.split("\n").slice(0, 3).join("\n"));
    break;
  }

const next = await thread.say('call build {"action":"fetch","handle":"b1"}');
await tidings.turns.ended(next.turn_id);
const calls = (await thread.read()).items.filter((item) => item.type === "tool_call");
console.log(calls.at(-1).content.output);
await tidings.close();
await rm(data, { recursive: true });
