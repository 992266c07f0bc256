/** What every contender is fed: the same event, by the same 64 callers. */
export const CALLERS = 64;

/** S4's example of a failed tool call; only the call's id changes, and never its length. */
export function payloadOf(index) {
  return {
    tool_name: "vault_search",
    error_type: "timeout",
    error_message: "Operation timed out after 5000ms",
    retry_count: 2,
    call_id: `tc_${index.toString(36).padStart(6, "0")}`,
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
