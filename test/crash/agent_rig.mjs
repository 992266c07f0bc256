/**
 * The kill loop over a hosted agent: a life is ended by SIGKILL at a named point of a turn, or before or after a commit; the
 * next one puts things in order and goes on. Then everything that was answered must have been told or taken to the
 * user, no lease be left, and no external tool have run twice.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Tidings } from "../../dist/index.js";
import { TURN_POINTS } from "../../dist/platform/crashpoint.js";

export { TURN_POINTS };

const LIFE = fileURLToPath(new URL("./agent_life.mjs", import.meta.url));
const LIFE_MS_MAX = 60_000;

/** Where each kind may end. A passive one is told; what an agent is to handle is told, or goes to the user. */
const ENDS = {
  context: ["DELIVERED"],
  narrate: ["DELIVERED", "ESCALATED"],
  decides: ["DELIVERED", "ESCALATED"],
  critical: ["DELIVERED"],
};

/** The point at which the model elsewhere has the request, and has not begun to answer. */
export const REQUEST_SENT = "request sent";

/** @param {readonly {point: string, passage: number}[]} kills each in a life of its own, one after the other */
export async function runAgentFolder(kills) {
  const folder = mkdtempSync(join(tmpdir(), "tidings-agent-crash-"));
  const effects = join(folder, "effects.txt");
  const data = join(folder, "data");
  const promised = new Map();
  const problems = [];
  const met = [];
  try {
    for (const [life, { point, passage }] of kills.entries()) {
      const task = { folder: data, effects, life, work: true };
      const end =
        point === REQUEST_SENT
          ? await liveUntilRequest(task, passage, promised, problems)
          : await live(task, `${point}:${passage}`, promised, problems);
      if (end.signal === "SIGKILL") met.push(point);
      else if (end.code !== 0)
        problems.push(`life ${life} (${point}:${passage}) ended with ${end.code}: ${end.errors}`);
    }
    const last = await live({ folder: data, effects, life: kills.length, work: false }, "", promised, problems);
    if (last.code !== 0) problems.push(`the last life ended with ${last.code ?? last.signal}: ${last.errors}`);
    problems.push(...(await examine(data, effects, promised)));
    return { problems, met, promised: promised.size };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A life whose model is elsewhere: it is killed when its request with this number has arrived there. */
async function liveUntilRequest(task, passage, promised, problems) {
  let kill = () => undefined;
  let requests = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      requests += 1;
      if (requests === passage) kill();
      else {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const line of SAID) response.write(`data: ${line}\n\n`);
        response.end();
      }
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base_url = `http://127.0.0.1:${server.address().port}/v1`;
  try {
    return await live({ ...task, base_url }, "", promised, problems, (child) => {
      kill = () => child.kill("SIGKILL");
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** A whole answer in the words of Chat Completions. */
const CHUNK = { id: "c", object: "chat.completion.chunk", created: 1, model: "far" };
const SAID = [
  JSON.stringify({
    ...CHUNK,
    choices: [{ index: 0, delta: { role: "assistant", content: "I see." }, finish_reason: null }],
  }),
  JSON.stringify({ ...CHUNK, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
  "[DONE]",
];

/** Runs one life to its end and takes down what it reports. */
function live(task, crashAt, promised, problems, begun = () => undefined) {
  return new Promise((resolve) => {
    const env = { ...process.env, ...(crashAt === "" ? {} : { TIDINGS_CRASH_AT: crashAt }) };
    const child = spawn(process.execPath, [LIFE, JSON.stringify(task)], {
      env,
      stdio: ["pipe", "inherit", "pipe", "pipe"],
    });
    begun(child);
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      errors += text;
    });
    const lines = createInterface({ input: child.stdio[3] });
    lines.on("line", (text) => {
      const line = JSON.parse(text);
      if (line.tell === "notification") promised.set(line.id, line.what);
      if (line.tell === "problem") problems.push(`life ${task.life}: ${line.line}`);
      if (line.tell === "rest" && !line.ok) problems.push(`life ${task.life}: ${JSON.stringify(line.problems)}`);
    });
    const timer = setTimeout(() => {
      problems.push(`life ${task.life} (${crashAt}) did not come to rest`);
      child.kill("SIGKILL");
    }, LIFE_MS_MAX);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, errors: errors.slice(0, 500) });
    });
  });
}

async function examine(data, effects, promised) {
  const problems = [];
  const tidings = await Tidings.open({ data });
  try {
    const { twice, told } = await carriersOf(tidings);
    problems.push(...twice);
    for (const [id, what] of promised) {
      const found = await tidings.read(id);
      if ("miss" in found) problems.push(`${what} ${id} is lost`);
      else if (found.state === "DELIVERED" && !told.has(id) && found.action === null)
        problems.push(`${what} ${id} is DELIVERED, and nobody was told`);
      else if (!ENDS[what].includes(found.state)) problems.push(`${what} ${id} is ${found.state} (${found.reason})`);
    }
    for (const { thread_id } of await tidings.threads({ limit: 1_000 })) {
      const turns = await tidings.thread(thread_id).turns();
      if (turns.length > 0) problems.push(`${turns.length} turns are left in ${thread_id}`);
    }
    const { ok, problems: found } = await tidings.audit();
    if (!ok) problems.push(JSON.stringify(found));
  } finally {
    await tidings.close();
  }
  const rung = existsSync(effects) ? readFileSync(effects, "utf8").trim().split("\n") : [];
  const twice = rung.filter((bell, index) => rung.indexOf(bell) !== index);
  for (const bell of twice) problems.push(`${bell} was rung twice`);
  return problems;
}

/** No item is in two carriers at once: one must be over before the next. And what was in those that were sent. */
async function carriersOf(tidings) {
  const twice = [];
  const told = new Set();
  const holder = new Map();
  const carried = new Map();
  const last = (await tidings.facts()).last_seq;
  for await (const entry of tidings.watch({ after: 0 })) {
    if (entry.type === "carrier") {
      if (entry.embedded.length > 0) carried.set(entry.carrier_id, entry.embedded);
      const ids = new Set(entry.embedded.map(({ id }) => id));
      if (ids.size !== entry.embedded.length) twice.push(`carrier ${entry.carrier_id} tells something twice`);
      for (const id of ids) {
        if (holder.has(id)) twice.push(`${id} is in ${holder.get(id)} and ${entry.carrier_id}`);
        holder.set(id, entry.carrier_id);
      }
      if (entry.state === "sent") for (const { id } of carried.get(entry.carrier_id) ?? []) told.add(id);
      // Void, and what was let go at the end of a turn that failed, may be told again.
      for (const { command, notification_id } of entry.changes)
        if (command === "release" && holder.get(notification_id) === entry.carrier_id) holder.delete(notification_id);
    }
    if (entry.seq >= last) break;
  }
  return { twice, told };
}
