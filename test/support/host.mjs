/**
 * A process that has Tidings in it, for tests of what happens to processes. It takes one JSON command a line on
 * stdin and answers each on stdout: { id, value } or { id, error: { name, code, retryable, message } }.
 */
import { execFileSync } from "node:child_process";
import { createInterface } from "node:readline";
import Database from "better-sqlite3";
import { Tidings } from "../../dist/index.js";

const EMITS_MAX = 20_000;

let tidings;
let locked;
const failures = [];

function plain(error) {
  const { name, code, retryable, message } = error;
  return { name, code, retryable, message };
}

const COMMANDS = {
  async open(options) {
    failures.length = 0;
    tidings = await Tidings.open({ ...options, onFailure: (error) => failures.push(plain(error)) });
    return { pid: process.pid, writable: tidings.writable };
  },
  /** Any method, by its name: `emit`, `deliveries.claim`. */
  call(method, ...args) {
    const path = method.split(".");
    const name = path.pop();
    const of = path.reduce((owner, part) => owner[part], tidings);
    return of[name](...args);
  },
  /** A turn of a conversation from its message to its end; with the calls of tools in it. */
  async say(thread_id, content) {
    await tidings.startThread({ thread_id });
    const { turn_id } = await tidings.thread(thread_id).say(content);
    await tidings.turns.ended(turn_id);
    return COMMANDS.items(thread_id);
  },
  async items(thread_id) {
    return (await tidings.thread(thread_id).read({ observe: true, internal: true })).items;
  },
  /** Emits from several callers at once until nothing is taken in any more. */
  async emitUntilRefused(callers, event) {
    const answered = [];
    const refusals = [];
    const caller = async () => {
      while (answered.length < EMITS_MAX) answered.push((await tidings.emit(event)).id);
    };
    await Promise.all(Array.from({ length: callers }, () => caller().catch((error) => refusals.push(plain(error)))));
    return { answered, refusals, failures };
  },
  /** Holds the database's write lock, as another program would. */
  lock(file) {
    locked = new Database(file);
    locked.exec("BEGIN IMMEDIATE");
  },
  unlock() {
    locked.exec("ROLLBACK");
    locked.close();
  },
  run: (command, ...args) => execFileSync(command, args, { encoding: "utf8" }),
};

process.stdout.write(`${JSON.stringify({ id: 0, value: "ready" })}\n`);
const lines = createInterface({ input: process.stdin });
lines.on("line", async (line) => {
  const { id, command, args } = JSON.parse(line);
  let answer;
  try {
    answer = { id, value: (await COMMANDS[command](...args)) ?? null };
  } catch (error) {
    answer = { id, error: plain(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
lines.on("close", () => process.exit(0));
