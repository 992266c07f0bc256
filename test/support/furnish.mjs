/** A server with something to see in every view: what the tests and the screenshots look at. */
import { setTimeout } from "node:timers/promises";

/** So that there is something to cut off. */
const SOME_WORDS_MS = 1_500;

/**
 * Conversations, an inbox, told and untold, dead and alive. Answers what there is to look at, and where.
 * `call` asks a method of the server for its result.
 */
export async function furnish(call) {
  const { thread_id } = await call("thread/start");
  const say = async (input) => {
    const { turn_id } = await call("turn/start", { thread_id, input });
    await eventually(
      () => call("queue/list", { thread_id }),
      ({ turns }) => turns.every((turn) => turn.turn_id !== turn_id),
    );
  };
  await call("event/emit", {
    type: "mcp.disconnected",
    source: "mcp",
    severity: "warning",
    thread_id,
    payload: { server: "files", reason: "the process exited with code 1" },
  });
  await say("What can you do?");
  await explained(call, thread_id);
  await call("notification/notify", {
    thread_id,
    content: "The deployment of api to production is waiting for your approval.",
    severity: "warning",
    target: "user",
  });
  const told = await call("notification/notify", {
    thread_id,
    content: "The certificate for api.example.com expires tomorrow.",
    severity: "error",
    target: "user",
    handler: "agent",
  });
  await eventually(
    () => call("notification/read", { id: told.id }),
    ({ state }) => state === "DELIVERED" || state === "ESCALATED",
  );
  const notes = [
    ["info", "Build 412 on main passed: 2,848 tests are green."],
    ["warning", "80% of today's token budget is used up."],
    ["error", "Last night's backup failed: no space left on device."],
    ["critical", "The certificate for mail.example.com has expired."],
  ];
  for (const [severity, content] of notes)
    await call("notification/notify", { content, severity, target: "user", dedupe_key: content });
  const short = await call("notification/notify", {
    content: "The preview of pull request 87 is up for ten minutes.",
    target: "user",
    ttl_ms: 1,
  });
  await eventually(
    () => call("notification/read", { id: short.id }),
    ({ state }) => state === "FAILED",
  );
  const quiet = await call("thread/start");
  await call("turn/start", { thread_id: quiet.thread_id, input: "Has the nightly build finished?" });
  // Something waits: for an agent that rests, and for one that is nobody's turn yet.
  await call("thread/pause", { thread_id: quiet.thread_id });
  await call("notification/notify", {
    thread_id: quiet.thread_id,
    content: "The nightly build has been running for 40 minutes.",
  });
  const { notifications } = await call("notification/list", { thread_id, channel: "floor" });
  return [
    { name: "conversation", at: `/threads/${thread_id}` },
    { name: "inbox", at: "/inbox" },
    { name: "notification", at: `/inbox/${notifications[0].id}` },
    { name: "ledger", at: "/ledger" },
    { name: "story", at: `/ledger/${told.id}` },
    { name: "dead-letter", at: `/ledger/${short.id}` },
    { name: "subscribers", at: "/subscribers" },
    { name: "subscriber", at: "/subscribers/mcp_connection" },
    { name: "overview", at: "/overview" },
    { name: "try", at: "/try" },
  ];
}

/** A long answer that something critical cuts off, and the turn in which the agent goes on with it. */
async function explained(call, thread_id) {
  const { turn_id } = await call("turn/start", {
    thread_id,
    input: "Please explain in detail how notifications reach me here.",
  });
  await eventually(
    () => call("thread/read", { thread_id }),
    ({ items }) => items.some((item) => item.turn_id === turn_id),
  );
  await setTimeout(SOME_WORDS_MS);
  await call("notification/notify", {
    thread_id,
    content: "The disk of the build machine is full: builds cannot write anything.",
    severity: "critical",
    kind: "host.disk.full",
  });
  await eventually(
    () => call("queue/list", { thread_id }),
    ({ turns }) => turns.length === 0,
  );
}

async function eventually(ask, isSo) {
  for (const end = Date.now() + 30_000; ; await setTimeout(20)) {
    const found = await ask();
    if (isSo(found)) return found;
    if (Date.now() > end) throw new Error(`still ${JSON.stringify(found)}`);
  }
}
