/** What the loop tells of itself, in the words of the built-in subscribers. */
import type { EventInput } from "../domain/event.js";
import { canonicalJson } from "../domain/json.js";
import type { Severity } from "../domain/severity.js";
import { isoTime } from "../domain/time.js";
import type { Turn } from "../domain/turn.js";
import { dateOf } from "../domain/usage.js";
import { sha256 } from "../platform/secret.js";
import type { ModelError, RateLimit } from "../providers/model.js";
import type { Standing } from "./budgets.js";
import type { AskedCall } from "./call.js";
import type { Loop, LoopOptions } from "./loops.js";
import type { ToolOutcome } from "./tools.js";

export type Emit = (event: EventInput) => Promise<unknown>;

/** An event that is refused, or comes too late, is no reason to end a turn. */
export function report(emit: Emit, event: EventInput): void {
  const emitted = async () => emit(event);
  void emitted().catch(() => undefined);
}

const SOURCE = "agent";
const WORDS_CHARS_MAX = 1_000;
const NAME_CHARS_MAX = 100;

type Payload = NonNullable<EventInput["payload"]>;

/** A turn, or a conversation in which none runs. */
type Whose = Pick<Turn, "user_id" | "thread_id"> & Partial<Pick<Turn, "id">>;

function event({ user_id, thread_id, id }: Whose, type: string, severity: Severity, payload: Payload): EventInput {
  const turn: Payload = id === undefined ? {} : { turn_id: id };
  return { type, source: SOURCE, severity, user_id, thread_id, payload: { ...payload, ...turn } };
}

export function turnStarted(turn: Turn): EventInput {
  return event(turn, "agent.turn.start", "info", { source: turn.source, internal: turn.internal });
}

/** One that went wrong is news to the next. */
export function turnEnded(turn: Turn, status: string, note: string | null, isNews = true): EventInput {
  const reason: Payload = note === null ? {} : { reason: words(note) };
  return event(turn, "agent.turn.end", status === "failed" && isNews ? "warning" : "info", { status, ...reason });
}

/** Of a thread and of a day it is told once in each conversation that spends of it; and again when the limit is another. */
export function budgetWarning(turn: Whose, standing: Standing, day: number): EventInput {
  return budgetEvent(turn, standing, "warning", "warning", day);
}

/** Told once in each conversation that it stops: its user sees at each further turn why that has failed. */
export function budgetExceeded(turn: Turn, standing: Standing, day: number): EventInput {
  return budgetEvent(turn, standing, "exceeded", "critical", day);
}

function budgetEvent(turn: Whose, standing: Standing, what: string, severity: Severity, day: number): EventInput {
  const { budget_type, current, limit, scope } = standing;
  const percentage = Math.floor((current / limit) * 100);
  const figures = { budget_type, current, limit, percentage, remaining: Math.max(0, limit - current), scope };
  // It may be told on another day.
  const which: Payload = scope === "day" ? { day: dateOf(day) } : {};
  const whose = { turn: turn.id ?? "", thread: turn.thread_id, day: `${turn.thread_id} ${day}` }[scope];
  return {
    ...event(turn, `budget.${budget_type}.${what}`, severity, { ...figures, ...which }),
    id: onceId(what, whose, standing),
  };
}

/** One id is one event: the store refuses a second, also after a restart. */
function onceId(what: string, whose: string, { scope, budget_type, limit }: Standing): string {
  return `budget:${sha256(JSON.stringify([what, scope, budget_type, limit, whose]))}`;
}

export function loopDetected(turn: Turn, { pattern, repetitions }: Loop, { window_ms }: LoopOptions): EventInput {
  return event(turn, "agent.loop.detected", "warning", { pattern, repetitions, window_seconds: window_ms / 1_000 });
}

/** The provider refuses calls for a while. */
export function rateLimitHit(turn: Turn, provider: string, { retry_after_ms }: ModelError): EventInput {
  const wait: Payload = retry_after_ms === undefined ? {} : { retry_after_ms };
  const payload = { provider, message: "it refuses calls for a while", ...wait };
  return { ...event(turn, "rate_limit.hit", "warning", payload), dedupe_key: `rate_limit.hit:${cut(provider, 100)}` };
}

export function rateLimitLow(
  turn: Turn,
  provider: string,
  { what, remaining, limit, reset_at }: RateLimit,
): EventInput {
  const reset: Payload = reset_at === null ? {} : { reset_at: isoTime(reset_at) };
  const payload = { provider, what, remaining, limit, message: `${what} run low`, ...reset };
  return event(turn, "rate_limit.low", "warning", payload);
}

/** What a call is about, so that the agent is not told again what it has seen itself. */
export function callSubject(call: AskedCall): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a subject has none
  const id = call.id.toWellFormed().replace(/[\u0000-\u001f\u007f]/g, "_");
  return `call:${id.slice(0, 200)}`;
}

export function toolPending(turn: Turn, call: AskedCall): EventInput {
  return toolEvent(turn, "tool.call.pending", "info", call, { arguments_sha256: sha256(canonicalJson(call.input)) });
}

export function toolDone(turn: Turn, call: AskedCall, { how, output }: ToolOutcome, bound: number): EventInput {
  switch (how) {
    case "success":
      return toolEvent(turn, "tool.call.success", "info", call, {});
    case "timeout":
      return toolEvent(turn, "tool.call.timeout", "error", call, {
        error_type: "timeout",
        error_message: words(output),
        timeout_ms: bound,
      });
    case "failure":
    case "interrupted":
      return toolEvent(turn, "tool.call.failure", how === "failure" ? "error" : "info", call, {
        error_type: how === "failure" ? "failed" : how,
        error_message: words(output),
      });
  }
}

function toolEvent(turn: Turn, type: string, severity: Severity, call: AskedCall, payload: Payload): EventInput {
  const named = { tool_name: cut(call.name, NAME_CHARS_MAX), call_id: cut(call.id, NAME_CHARS_MAX) };
  return { ...event(turn, type, severity, { ...named, ...payload }), subject: callSubject(call) };
}

function words(text: string): string {
  return cut(text, WORDS_CHARS_MAX);
}

function cut(text: string, charsMax: number): string {
  return text.slice(0, charsMax).toWellFormed();
}
