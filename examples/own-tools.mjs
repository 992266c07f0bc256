// One's own tools: one that answers at once, and one that goes on and asks something on the way.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineTool, Tidings } from "tidings";
import { z } from "zod";

const weather = defineTool({
  name: "weather",
  description: "Says how the weather is.",
  input: z.object({ city: z.string() }),
  impact: "internal", // nobody but the agent notices
  run: ({ city }) => `It is sunny in ${city}.`,
});

const deploy = defineTool({
  name: "deploy",
  description: "Deploys a version.",
  input: z.object({ version: z.string() }),
  turn_end: "keep", // it goes on when the turn ends; or "await", or "abort"
  async spawn({ version }, handle) {
    const answer = await handle.ask(`Deploy ${version} to production?`);
    return answer === "yes" ? `${version} is live` : "nothing was done";
  },
});

const data = await mkdtemp(join(tmpdir(), "tidings-example-"));
const tidings = await Tidings.open({ data, agent: { provider: "rehearsal", tools: [weather] } });
// Tools may also come, and go, while the agent is there.
const remove = tidings.tools.register(deploy);
const { thread_id } = await tidings.startThread();
const thread = tidings.thread(thread_id);

/** A turn, and what the tools in it answered. */
async function say(...lines) {
  const before = (await thread.read()).items.length;
  const { turn_id } = await thread.say(lines.join("\n"));
  await tidings.turns.ended(turn_id);
  const { items } = await thread.read();
  for (const item of items.slice(before)) if (item.type === "tool_call") console.log(item.content.output);
}

await say('call weather {"city":"Bergen"}');
// Started and waited for in one answer of the model: it waits for an answer itself.
await say(
  'call deploy {"action":"spawn","handle":"d1","input":{"version":"1.2"}}',
  'call await {"all":["d1"],"timeout_secs":30}',
);
await say('call deploy {"action":"apply","handle":"d1","text":"yes"}', 'call await {"all":["d1"]}');
await remove();
await tidings.close();
await rm(data, { recursive: true });
