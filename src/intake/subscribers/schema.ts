import { z } from "zod";
import type { KeyPath } from "../../config/locate.js";
import { type KeyProblem, keyProblems } from "../../config/problems.js";
import { ADDRESSES, channelOf, HANDLERS, isSystemChannel, TARGETS } from "../../domain/axes.js";
import { isTypePattern } from "../../domain/event.js";
import { DIRECT_SUBSCRIBER, OVERFLOW_SUBSCRIBER } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import { didYouMean } from "../../domain/nearest.js";
import { textSchema, wordSchema } from "../../domain/parse.js";
import { INJECTION_POINTS, PRIORITIES } from "../../domain/priority.js";
import { SEVERITIES } from "../../domain/severity.js";
import { DedupeExpression } from "./dedupe.js";

/** Bounds of a subscriber's file. Part of the documented contract (docs/SUBSCRIBERS.md). */
export const SUBSCRIBER_LIMITS = {
  fileBytes: 65_536,
  templateBytes: 65_536,
  /** Files of one folder; those after them, by name, are not read. */
  filesMax: 20_000,
  nameChars: 200,
  descriptionChars: 2_000,
  versionChars: 50,
  templatePathChars: 500,
  typesMax: 200,
  sourcesMax: 200,
  windowMs: 10_000,
  sizeMax: 100,
  maxWaitMs: 3_600_000,
} as const;

/** What a file, or a program, need not say. */
export const SUBSCRIBER_DEFAULTS = { windowMs: 2_000, size: 10, dedupeWindowMs: 5_000, maxWaitMs: 2_000 } as const;

/** Ids of subscribers that are no file's. */
export const RESERVED_IDS: ReadonlyMap<string, string> = new Map([
  [DIRECT_SUBSCRIBER, "direct is the subscriber behind notify()"],
  [OVERFLOW_SUBSCRIBER, "overflow is the subscriber behind the summary of what was too much"],
]);

export const typePatternSchema = z
  .string()
  .refine(
    isTypePattern,
    "must be an event type like tool.call.failure (2 to 5 segments of letters, digits, _ and -), or a prefix like tool.*",
  );

function whole(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z.int(message).min(min, message).max(max, message);
}

export const expressionSchema = z.string().transform((text, context) => {
  const expression = DedupeExpression.parse(text);
  if (expression instanceof DedupeExpression) return expression;
  context.addIssue({ code: "custom", message: expression.reason });
  return z.NEVER;
});

const templateSchema = textSchema(SUBSCRIBER_LIMITS.templatePathChars);

const TABLES = {
  subscriber: z.strictObject({
    id: wordSchema(LIMITS.idChars).superRefine((id, context) => {
      const reserved = RESERVED_IDS.get(id);
      if (reserved !== undefined) context.addIssue({ code: "custom", message: reserved });
    }),
    name: textSchema(SUBSCRIBER_LIMITS.nameChars),
    description: textSchema(SUBSCRIBER_LIMITS.descriptionChars),
    version: wordSchema(SUBSCRIBER_LIMITS.versionChars),
    enabled: z.boolean().default(true),
  }),
  events: z.strictObject({
    types: z
      .array(typePatternSchema)
      .min(1, "must name at least one event type")
      .max(SUBSCRIBER_LIMITS.typesMax, `has more than ${SUBSCRIBER_LIMITS.typesMax} types`),
    severity_filter: z.enum(SEVERITIES).default("info"),
    sources: z
      .array(wordSchema(LIMITS.sourceChars))
      .min(1, "must name at least one source; leave it out to take any")
      .max(SUBSCRIBER_LIMITS.sourcesMax, `has more than ${SUBSCRIBER_LIMITS.sourcesMax} sources`)
      .optional(),
  }),
  batching: z.strictObject({
    window_ms: whole(0, SUBSCRIBER_LIMITS.windowMs).optional(),
    max_size: whole(1, SUBSCRIBER_LIMITS.sizeMax).default(SUBSCRIBER_DEFAULTS.size),
    dedupe_key: expressionSchema.optional(),
    dedupe_window_ms: whole(0, LIMITS.dedupeWindowMs).default(SUBSCRIBER_DEFAULTS.dedupeWindowMs),
  }),
  output: z.strictObject({
    priority: z.enum(PRIORITIES),
    inject_at: z.enum(INJECTION_POINTS),
    template: templateSchema,
    batch_template: templateSchema.optional(),
    core: z.boolean().default(false),
    wake: z.enum(["idle"]).optional(),
    max_wait_ms: whole(0, SUBSCRIBER_LIMITS.maxWaitMs).optional(),
  }),
  routing: z.strictObject({
    address: z.enum(ADDRESSES).default("session"),
    target: z.enum(TARGETS).default("agent"),
    handler: z.enum(HANDLERS).default("system"),
    directive: textSchema(LIMITS.directiveChars).optional(),
    ttl_ms: whole(1, LIMITS.ttlMsMax).optional(),
  }),
} as const;

const fileSchema = z
  .strictObject({
    subscriber: TABLES.subscriber,
    events: TABLES.events,
    batching: TABLES.batching.prefault({}),
    output: TABLES.output,
    routing: TABLES.routing.prefault({}),
  })
  .superRefine((file, context) => {
    const { subscriber, output, routing } = file;
    const refuse = (path: KeyPath, message: string) =>
      context.addIssue({ code: "custom", path: [...path], message, input: undefined });
    const channel = channelOf(routing);
    if (output.inject_at === "immediate" && output.priority !== "critical")
      refuse(["output", "inject_at"], "immediate needs priority critical");
    if (output.core && !subscriber.enabled)
      refuse(["subscriber", "enabled"], "a core subscriber cannot be switched off; set core = false first");
    if (routing.directive !== undefined && routing.handler !== "agent")
      refuse(["routing", "directive"], "is only for items that the agent handles (handler agent)");
    if (output.wake !== undefined && isSystemChannel(channel))
      refuse(["output", "wake"], "has no effect on what is shown to the user (target user, handler system)");
    if (output.max_wait_ms !== undefined && output.wake === undefined && channel !== "agent")
      refuse(["output", "max_wait_ms"], 'nothing wakes the agent here: set wake = "idle", or handler = "agent"');
  })
  .transform(({ batching, output, ...file }) => ({
    ...file,
    output: { ...output, max_wait_ms: output.max_wait_ms ?? SUBSCRIBER_DEFAULTS.maxWaitMs },
    batching: {
      ...batching,
      // What is shown to the user goes at once, unless its file asks for a window.
      window_ms: batching.window_ms ?? (isSystemChannel(channelOf(file.routing)) ? 0 : SUBSCRIBER_DEFAULTS.windowMs),
    },
  }));

/** A subscriber's file, checked, with every default filled in. */
export type SubscriberFile = z.output<typeof fileSchema>;

/** The file's content, or everything that is wrong with it. */
export function parseSubscriberFile(content: unknown): { file: SubscriberFile } | { problems: KeyProblem[] } {
  const result = fileSchema.safeParse(content);
  if (result.success) return { file: result.data };
  return { problems: keyProblems(result.error.issues, content, unknownKey) };
}

/** How the fields are called elsewhere, and which key of the file is meant. */
const ALIASES: Readonly<Record<string, string>> = {
  event_types: "[events] types",
  batch_window_ms: "[batching] window_ms",
  max_batch_size: "[batching] max_size",
};

function unknownKey(path: KeyPath, key: string): string {
  const known = path.length === 0 ? Object.keys(TABLES) : keysOf(String(path[0]));
  const near = didYouMean(key, known);
  if (near !== "") return `is not a known key${near}`;
  if (Object.hasOwn(ALIASES, key)) return `is not a known key; it is called ${ALIASES[key]} here`;
  const home = Object.keys(TABLES).find((table) => keysOf(table).includes(key));
  return home === undefined
    ? `is not a known key; known here: ${known.join(", ")}`
    : `is not a known key; it belongs into [${home}]`;
}

function keysOf(table: string): string[] {
  return Object.hasOwn(TABLES, table) ? Object.keys(TABLES[table as keyof typeof TABLES].shape) : [];
}
