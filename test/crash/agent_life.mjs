/**
 * A life of the agent's crash test: opens the folder with the rehearsal model, has it told things and call tools until the
 * process is killed or everything has come to rest. What was answered is reported on fd 3 before anything else is
 * asked for; what a tool has done in the world is a line in a file.
 *
 * node agent_life.mjs '{"folder":…,"effects":…,"life":…,"work":true|false,"base_url":…|undefined}'
 */
import { appendFileSync, writeSync } from "node:fs";
import { z } from "zod";
import { Tidings } from "../../dist/index.js";

const { folder, effects, life, work, base_url } = JSON.parse(process.argv[2]);
process.stdin.on("end", () => process.exit(0)).resume();

const report = (line) => writeSync(3, `${JSON.stringify(line)}\n`);

const ring = {
  name: "ring",
  description: "Rings a bell that everybody hears.",
  input: z.object({ bell: z.string() }),
  impact: "external",
  run({ bell }) {
    appendFileSync(effects, `${bell}\n`, { flush: true });
    return `rang ${bell}`;
  },
};
const look = {
  name: "look",
  description: "Looks out of the window.",
  input: z.object({ at: z.string() }),
  impact: "internal",
  run: ({ at }) => `saw ${at}`,
};

const tidings = await Tidings.open({
  data: folder,
  policy: { backoffMs: 50 },
  agent: {
    // With an address: a model elsewhere, which is sent a request and answers when it likes.
    ...(base_url === undefined ? { provider: "rehearsal" } : { provider: "openai-compatible", model: "far", base_url }),
    tools: [ring, look],
    limits: { retry_base_ms: 10 },
  },
  onProblem: (line) => report({ tell: "problem", line }),
  onFailure: (error) => report({ tell: "problem", line: error.message }),
});

const MUST_NARRATE = { target: "user", handler: "agent" };
const DECIDES = { target: "agent", handler: "agent" };

async function told(what, input) {
  const { id } = await tidings.notify(input);
  report({ tell: "notification", id, what });
}

if (work) {
  const { thread_id } = await tidings.startThread({ thread_id: `visible ${life}` });
  const thread = tidings.thread(thread_id);
  await told("context", { thread_id, content: "the build is slow" });
  await told("narrate", { thread_id, content: "lunch is ready", ...MUST_NARRATE });
  const turn = await thread.say(`call ring {"bell":"said ${life}"}\ncall look {"at":"sky ${life}"}`);
  report({ tell: "turn", id: turn.turn_id });
  await told("context", { thread_id, content: "the build is done", priority: "high" });
  await tidings.turns.ended(turn.turn_id);
  // Of the system's own accord: told, acknowledged.
  await told("narrate", { thread_id, content: "the kettle boils", ...MUST_NARRATE });
  // Internal, until a tool that everybody hears is called: its instruction says so.
  const { thread_id: inner } = await tidings.startThread({ thread_id: `internal ${life}` });
  await told("decides", {
    thread_id: inner,
    content: "somebody is at the door",
    directive: `call ring {"bell":"door ${life}"}`,
    ...DECIDES,
  });
  await told("decides", {
    thread_id: inner,
    content: "it rains",
    directive: `call look {"at":"rain ${life}"}`,
    ...DECIDES,
  });
  await told("critical", { thread_id, content: "fire", priority: "critical", severity: "critical" });
}

/** Nothing is held, nothing that wakes an agent waits, and no turn runs. */
async function atRest() {
  for (const state of ["PENDING", "LOCKED"]) {
    for (const channel of ["agent", "context"]) {
      const { notifications } = await tidings.list({ channel, state });
      const waits = notifications.filter(({ kind }) => kind === "direct.notify");
      if (waits.length > 0 && (channel === "agent" || state === "LOCKED")) return false;
    }
  }
  for (const { thread_id } of await tidings.threads())
    if ((await tidings.thread(thread_id).turns()).length > 0) return false;
  return true;
}

await rest();
// Passive ones ride with the next message.
if (!work) {
  for (const { thread_id } of await tidings.threads()) {
    const turn = await tidings.thread(thread_id).say("what else?");
    await tidings.turns.ended(turn.turn_id);
  }
}
await rest();
const { ok, problems } = await tidings.audit();
report({ tell: "rest", ok, problems });
await tidings.close();
process.exit(0);

/** Looks now, and after every entry of the journal: nothing comes to rest without one. */
async function rest() {
  const entries = tidings.watch();
  if (await atRest()) return;
  for await (const _ of entries) if (await atRest()) return;
}
