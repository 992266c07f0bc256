/**
 * The servers that sections f to i speak to: `tidings serve`, and what does the same on the wire and nothing behind it.
 * Each lives as long as its process, and answers where it is.
 */
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { userOf } from "../workload.mjs";
import { openMemoryDoor } from "./memory_door.mjs";

const MEMORY_DOOR = new URL("./memory_door.mjs", import.meta.url).href;
const CLI = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
/** More than any load here, so that none is turned away. */
const EVENTS_PER_SECOND = 500_000;
const HOST = "127.0.0.1";

/** `tidings serve`, a process of its own, with a token of the user that all events here are about. */
export async function tidingsServe({ data, profile, door }, tell) {
  const nodeOptions = profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
  if (door !== undefined) {
    nodeOptions.push("--expose-gc", "--import", MEMORY_DOOR);
    process.env.BENCH_MEMORY_DOOR = door;
  }
  const serve = [
    "serve",
    "--data",
    data,
    "--port",
    "0",
    "--provider",
    "none",
    "--json",
    "--events-per-second",
    String(EVENTS_PER_SECOND),
  ];
  const { pid, line, readyMs } = await started([...nodeOptions, CLI, ...serve], tell);
  const { ready } = JSON.parse(line);
  if (ready === undefined) throw new Error(`the server did not start: ${line}`);
  const { url, token } = ready;
  const call = { jsonrpc: "2.0", id: 1, method: "token/create" };
  const params = { scopes: ["ingest", "read"], user_id: userOf(0, 1) };
  const response = await fetch(`${url}/rpc`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ ...call, params }),
  });
  const { result } = await response.json();
  return { url, token: result.token, adminToken: token, pid, readyMs };
}

/** A Node process that only says that it runs: what no program's start can be shorter than. */
export async function bareNode(_options, tell) {
  const { readyMs } = await started(["-e", 'console.log("ready"); setInterval(() => {}, 1_000)'], tell);
  return { readyMs };
}

/** Fastify, which parses the same body, answers 202 and does nothing else. */
export async function bareFastify() {
  const { default: fastify } = await import("fastify");
  const server = fastify({ logger: false });
  server.post("/v1/events", (_request, reply) => reply.code(202).send());
  const url = await server.listen({ host: HOST, port: 0 });
  return { url, token: "none", pid: process.pid };
}

/**
 * `ws`, which sends each posted body to every client: as it is, or filled up with spaces to `frameBytes`. Then it
 * answers 202.
 */
export async function bareWebSocket({ frameBytes = 0, door }) {
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const text = Buffer.alloc(Math.max(frameBytes, body.length), " ");
      body.copy(text);
      for (const client of sockets.clients) client.send(text, { binary: false });
      response.writeHead(202, { "content-length": 0 }).end();
    });
  });
  const sockets = new WebSocketServer({ server, path: "/ws", perMessageDeflate: false });
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  if (door !== undefined) await openMemoryDoor(door);
  return { url: `http://${HOST}:${server.address().port}`, token: "none", pid: process.pid };
}

/** Starts a Node process that ends with this one; answers its first line and how long that took. */
function started(argv, tell) {
  const begun = performance.now();
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"] });
  tell({ pid: child.pid });
  process.once("SIGTERM", () => child.kill("SIGTERM"));
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", (line) =>
      resolve({ pid: child.pid, line, readyMs: performance.now() - begun }),
    );
    child.once("error", reject);
    child.once("exit", (code) => process.exit(code ?? 0));
  });
}
