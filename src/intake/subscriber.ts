import { z } from "zod";
import { ADDRESSES, type Axes, HANDLERS, TARGETS } from "../domain/axes.js";
import { InvalidInputError } from "../domain/errors.js";
import { isTypePattern, type NewEvent } from "../domain/event.js";
import { type SubscriberId, subscriberId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { parseInput, textSchema, wordSchema } from "../domain/parse.js";
import { INJECTION_POINTS, type InjectionPoint, PRIORITIES, type Priority } from "../domain/priority.js";
import { SEVERITIES, type Severity } from "../domain/severity.js";

/** Which events, how worded, how urgent, where routed. */
export interface Subscriber {
  readonly id: SubscriberId;
  /** Exact types, or a prefix that ends in `.*`. */
  readonly types: readonly string[];
  readonly severity_filter: Severity;
  readonly priority: Priority;
  readonly inject_at: InjectionPoint;
  readonly axes: Axes;
  readonly directive: string | null;
  readonly ttl_ms: number | null;
  readonly dedupe_window_ms: number;
  readonly content: (event: NewEvent) => string;
}

/** What a program gives to `Tidings.open({ subscribers })`. */
export interface SubscriberInput {
  id: string;
  types: readonly string[];
  /** Least severity; `info` unless said otherwise, so `debug` is delivered only where it is asked for. */
  severity_filter?: Severity;
  priority?: Priority;
  inject_at?: InjectionPoint;
  /** Default: session, agent, system: passive context for the thread's agent. */
  routing?: Partial<Axes> & { directive?: string; ttl_ms?: number };
  dedupe_window_ms?: number;
  /** The words; a general sentence about the event if there is none or it throws. */
  content?: (event: NewEvent) => string;
}

const patternSchema = z
  .string()
  .refine(isTypePattern, "must be an event type like tool.call.failure, or a prefix like tool.*");

const subscriberSchema = z
  .strictObject({
    id: wordSchema(LIMITS.idChars),
    types: z.array(patternSchema).min(1),
    severity_filter: z.enum(SEVERITIES).default("info"),
    priority: z.enum(PRIORITIES).default("normal"),
    inject_at: z.enum(INJECTION_POINTS).default("next"),
    routing: z
      .strictObject({
        address: z.enum(ADDRESSES).default("session"),
        target: z.enum(TARGETS).default("agent"),
        handler: z.enum(HANDLERS).default("system"),
        directive: textSchema(LIMITS.directiveChars).optional(),
        ttl_ms: z.int().min(1).max(LIMITS.ttlMsMax).optional(),
      })
      .prefault({}),
    dedupe_window_ms: z.int().min(0).max(LIMITS.dedupeWindowMs).default(5_000),
    content: z
      .custom<SubscriberInput["content"]>((value) => typeof value === "function", "must be a function")
      .optional(),
  })
  .refine((input) => input.inject_at !== "immediate" || input.priority === "critical", {
    path: ["inject_at"],
    message: "immediate needs priority critical",
  });

export function parseSubscriber(input: SubscriberInput): Subscriber {
  const parsed = parseInput(subscriberSchema, input);
  const { address, target, handler, directive, ttl_ms } = parsed.routing;
  if (parsed.id === "direct") throw new InvalidInputError("id", "direct is the subscriber behind notify()");
  return {
    id: subscriberId(parsed.id),
    types: parsed.types,
    severity_filter: parsed.severity_filter,
    priority: parsed.priority,
    inject_at: parsed.inject_at,
    axes: { address, target, handler },
    directive: directive ?? null,
    ttl_ms: ttl_ms ?? null,
    dedupe_window_ms: parsed.dedupe_window_ms,
    content: parsed.content ?? generalWords,
  };
}

const WORDS_CHARS_MAX = 2_000;

/** What happened and to what, from any event. */
export function generalWords(event: NewEvent): string {
  const { payload } = event;
  const about = [payload["tool_name"], payload["server"], payload["budget_type"], event.subject].find(isWord);
  const said = [payload["message"], payload["error_message"], payload["pattern"], payload["reason"]].find(isWord);
  const detail = said ?? (Object.keys(payload).length === 0 ? undefined : JSON.stringify(payload));
  const head = `${event.type}${about === undefined ? "" : ` ${about}`} (from ${event.source})`;
  return (detail === undefined ? head : `${head}: ${detail}`).slice(0, WORDS_CHARS_MAX);
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && value.length > 0;
}
