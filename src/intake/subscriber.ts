import { z } from "zod";
import { ADDRESSES, type Axes, HANDLERS, TARGETS } from "../domain/axes.js";
import { InvalidInputError } from "../domain/errors.js";
import type { Event } from "../domain/event.js";
import { subscriberId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { parseInput, textSchema, wordSchema } from "../domain/parse.js";
import { INJECTION_POINTS, type InjectionPoint, PRIORITIES, type Priority } from "../domain/priority.js";
import { SEVERITIES, type Severity } from "../domain/severity.js";
import type { Row, Words } from "../store/contract.js";
import type { LoadedSubscriber } from "./subscribers/load.js";
import {
  expressionSchema,
  RESERVED_IDS,
  SUBSCRIBER_DEFAULTS,
  SUBSCRIBER_LIMITS,
  typePatternSchema,
} from "./subscribers/schema.js";
import { generally, lineWords, type TriedWords, tryWordsOf, wordsOf } from "./words.js";

/** Which events, how batched and merged, how worded, how urgent, where routed; whether a file says it or a program. */
export interface Subscriber extends Omit<LoadedSubscriber, "file" | "digest" | "template" | "batch_template"> {
  /** The file that it comes from; null if a program gave it. */
  readonly file: string | null;
  /** What a notification says of these rows; there is at least one. Never throws. */
  words(rows: readonly Row[], now: number): Words;
  /** The same, and where its template failed. */
  tryWords(rows: readonly Row[], now: number): TriedWords;
}

export function subscriberOf(loaded: LoadedSubscriber): Subscriber {
  return {
    ...loaded,
    words: (rows, now) => wordsOf(loaded, rows, now),
    tryWords: (rows, now) => tryWordsOf(loaded, rows, now),
  };
}

/** What a program gives to `Tidings.open({ subscribers })`. */
export interface SubscriberInput {
  id: string;
  /** For people; the id unless said otherwise. */
  name?: string;
  description?: string;
  version?: string;
  /** Exact types, or a prefix that ends in `.*`. */
  types: readonly string[];
  /** Only events from these; from any unless said otherwise. */
  sources?: readonly string[];
  /** Least severity; `info` unless said otherwise, so `debug` is delivered only where it is asked for. */
  severity_filter?: Severity;
  priority?: Priority;
  inject_at?: InjectionPoint;
  /** Default: session, agent, system: passive context for the thread's agent. */
  routing?: Partial<Axes> & { directive?: string; ttl_ms?: number };
  /** How long a batch is open after its first event; 0, which is no batching, unless said otherwise. */
  batch_window_ms?: number;
  /** Rows of a batch; a full one goes at once. Default 10. */
  max_batch_size?: number;
  /** Which event is the same one, like `type:payload.tool_name`; all that tells what happened, unless said otherwise. */
  dedupe_key?: string;
  /** How long the same one is counted instead of told again. Default 5,000 ms; 0 is no deduplication. */
  dedupe_window_ms?: number;
  /** Whether no switch and no user can turn it off. */
  core?: boolean;
  /** The words of one event, a line of a batch; general ones if there is none, it throws, or it says nothing. */
  content?: (event: Event) => string;
}

const subscriberSchema = z
  .strictObject({
    id: wordSchema(LIMITS.idChars),
    name: textSchema(SUBSCRIBER_LIMITS.nameChars).optional(),
    description: textSchema(SUBSCRIBER_LIMITS.descriptionChars).default("Given by the program"),
    version: wordSchema(SUBSCRIBER_LIMITS.versionChars).default("1"),
    types: z.array(typePatternSchema).min(1),
    sources: z.array(wordSchema(LIMITS.sourceChars)).min(1).optional(),
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
    batch_window_ms: z.int().min(0).max(SUBSCRIBER_LIMITS.windowMs).default(0),
    max_batch_size: z.int().min(1).max(SUBSCRIBER_LIMITS.sizeMax).default(SUBSCRIBER_DEFAULTS.size),
    dedupe_key: expressionSchema.optional(),
    dedupe_window_ms: z.int().min(0).max(LIMITS.dedupeWindowMs).default(SUBSCRIBER_DEFAULTS.dedupeWindowMs),
    core: z.boolean().default(false),
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
  const reserved = RESERVED_IDS.get(parsed.id);
  if (reserved !== undefined) throw new InvalidInputError("id", reserved);
  const { content } = parsed;
  const words = (rows: readonly Row[]) =>
    content === undefined ? generally(rows, null) : lineWords(parsed.id, content, rows);
  return {
    id: subscriberId(parsed.id),
    name: parsed.name ?? parsed.id,
    description: parsed.description,
    version: parsed.version,
    enabled: true,
    types: [...new Set(parsed.types)],
    sources: parsed.sources === undefined ? null : [...new Set(parsed.sources)],
    severity_filter: parsed.severity_filter,
    priority: parsed.priority,
    inject_at: parsed.inject_at,
    core: parsed.core,
    batch: { window_ms: parsed.batch_window_ms, max_size: parsed.max_batch_size },
    dedupe: { key: parsed.dedupe_key ?? null, window_ms: parsed.dedupe_window_ms },
    axes: { address, target, handler },
    directive: directive ?? null,
    ttl_ms: ttl_ms ?? null,
    wake: null,
    max_wait_ms: SUBSCRIBER_DEFAULTS.maxWaitMs,
    built_in: false,
    file: null,
    words,
    tryWords: (rows) => ({ ...words(rows), error: null }),
  };
}
