/** What is told of handles, in the words of the built-in subscriber `tool_handle`. */
import type { EventInput } from "../../domain/event.js";
import { type HandleRecord, handleSubject } from "../../domain/handle.js";
import type { Severity } from "../../domain/severity.js";

const SOURCE = "tools";
const WORDS_CHARS_MAX = 1_000;

const NAMES = { waiting: "waiting", stopped: "stopped", failed: "failed" } as const;
const SEVERITIES: Record<keyof typeof NAMES, Severity> = { waiting: "warning", stopped: "info", failed: "error" };

/** Null while it runs: that is no news. The same record is the same event: it can be told again without harm. */
export function handleEvent(record: HandleRecord): EventInput | null {
  const { id, tool, state, generation, user_id, thread_id, detail } = record;
  if (state === "running") return null;
  const exit_code = detail.data?.["exit_code"];
  return {
    id: `handle:${generation}`,
    type: `tool.${NAMES[state]}`,
    source: SOURCE,
    severity: SEVERITIES[state],
    user_id,
    thread_id,
    subject: handleSubject(id, generation),
    payload: {
      tool_name: tool,
      handle: id,
      ...(detail.question === undefined ? {} : { question: short(detail.question) }),
      ...(detail.error === undefined
        ? {}
        : { error_message: short(detail.error.message), transient: detail.error.transient }),
      ...(typeof exit_code === "number" ? { exit_code } : {}),
    },
  };
}

function short(text: string): string {
  return text.slice(0, WORDS_CHARS_MAX).toWellFormed();
}
