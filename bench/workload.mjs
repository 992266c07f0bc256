/** What every contender is fed: the same event, by the same 64 callers. */
import { randomInt } from "node:crypto";

export const CALLERS = 64;

/** Two processes never send the same call: the same one again within seconds is counted, and not told anew. */
export const OF_THIS_PROCESS = randomInt(36 ** 4)
  .toString(36)
  .padStart(4, "0");

/** S4's example of a failed tool call; only the call's id changes, and never its length. */
export function payloadOf(index) {
  return {
    tool_name: "vault_search",
    error_type: "timeout",
    error_message: "Operation timed out after 5000ms",
    retry_count: 2,
    call_id: `tc_${OF_THIS_PROCESS}${index.toString(36).padStart(6, "0")}`,
  };
}

export function userOf(index, users) {
  return `user-${String(index % users).padStart(3, "0")}`;
}

/** An event that the built-in subscriber `cli_event` shows in the user's inbox. */
export function eventOf(index, users) {
  return {
    type: "cli.event",
    source: "vault",
    severity: "error",
    user_id: userOf(index, users),
    payload: payloadOf(index),
  };
}

/** A failure like no other, of a thread: the built-in subscriber `tool_failure` tells its agent ten at a time. */
export function failureOf(index) {
  const { tool_name, ...payload } = payloadOf(index);
  return {
    type: "tool.call.failure",
    source: "executor",
    severity: "error",
    user_id: userOf(0, 1),
    thread_id: "thread-1",
    payload: { tool_name: `${tool_name}_${index.toString(36).padStart(6, "0")}`, ...payload },
  };
}

/** Calls `one` with 0 to `total` - 1, from 64 callers that each await their own before the next. */
export async function callers(total, one) {
  let next = 0;
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while (next < total) {
        const index = next;
        next += 1;
        await one(index);
      }
    }),
  );
}

/** Operations a second. */
export async function rate(total, run) {
  const started = performance.now();
  await run();
  return (total * 1_000) / (performance.now() - started);
}

/** CPU microseconds for each of `total`, of all threads of this process and of the kernel for it; and how many a second. */
export async function work(total, run) {
  globalThis.gc();
  const cpu = process.cpuUsage();
  const started = performance.now();
  await run();
  const ms = performance.now() - started;
  const { user, system } = process.cpuUsage(cpu);
  return { micros: (user + system) / total, perSecond: (total * 1_000) / ms };
}
