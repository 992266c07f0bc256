/** What the model reads of handles: JSON, so that nothing that a tool says can pass for something else. */
import type { HandleRecord } from "../../domain/handle.js";
import type { JsonObject } from "../../domain/json.js";
import type { LiveHandle } from "./live_handle.js";

/** An answer for the model, and what it has seen by it. */
export interface Answered {
  readonly answer: JsonObject;
  readonly observed: readonly string[];
}

/** Why a call of a tool cannot be done; nothing was. */
export class Refused extends Error {
  constructor(error: string, message: string, more: JsonObject = {}) {
    super(JSON.stringify({ error, message, ...more }));
  }
}

/** `output`: as much of it as is to be shown. */
export function liveAnswer(handle: LiveHandle, output: string): JsonObject {
  const { state, question } = handle.now;
  return {
    handle: handle.id,
    tool: handle.tool.name,
    state,
    ...(question === null ? {} : { question }),
    ...(output === "" ? {} : { output }),
  };
}

export function recordAnswer({ id, tool, state, detail }: HandleRecord): JsonObject {
  const { question, result, error, output, data } = detail;
  return {
    ...(data ?? {}),
    handle: id,
    tool,
    state: state === "failed" ? "stopped" : state,
    ...(question === undefined ? {} : { question }),
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error: { ...error } }),
    ...(output === undefined ? {} : { output }),
  };
}

const ERROR_CHARS = 100;

/** The same with less to say; `fetch` says the rest. */
export function shortened(answer: JsonObject, charsMax: number): JsonObject {
  const copy: Record<string, JsonObject[string]> = { ...answer };
  const { error } = answer;
  if (typeof error === "object" && error !== null && "message" in error)
    copy["error"] = { ...error, message: String(error.message).slice(0, ERROR_CHARS).toWellFormed() };
  for (const field of ["result", "output"]) {
    const text = copy[field];
    if (typeof text !== "string" || text.length <= charsMax) continue;
    copy[field] = charsMax === 0 ? "" : text.slice(-charsMax).toWellFormed();
    copy["shortened"] = "fetch reads it whole";
  }
  return copy;
}
