import { z } from "zod";
import { InvalidInputError } from "./errors.js";
import { type EventId, LOCAL_USER, type ThreadId, threadId, type UserId, userId } from "./ids.js";
import { canonicalJson, type JsonObject, jsonText, takeJson } from "./json.js";
import { LIMITS } from "./limits.js";
import { isMaybeWord, isPlainOf, isWord, parseInput, timestampSchema, wordSchema } from "./parse.js";
import { SEVERITIES, type Severity } from "./severity.js";

/** A fact reported by a producer, as it is kept in the journal. */
export interface Event {
  readonly id: EventId;
  /** The producer's own id: the same `(user, source, producer_id)` is the same event. */
  readonly producer_id: string | null;
  readonly type: string;
  readonly source: string;
  readonly severity: Severity;
  /** UTC, ISO 8601; the producer's word, else the moment of acceptance. */
  readonly timestamp: string;
  readonly payload: JsonObject;
  readonly dedupe_key: string | null;
  readonly user_id: UserId;
  readonly thread_id: ThreadId | null;
  readonly subject: string | null;
}

/** What a producer sends. `id` is the producer's own. */
export interface EventInput {
  type: string;
  source: string;
  severity?: Severity | undefined;
  payload?: JsonObject | undefined;
  user_id?: string | undefined;
  thread_id?: string | undefined;
  dedupe_key?: string | undefined;
  subject?: string | undefined;
  id?: string | undefined;
  timestamp?: string | undefined;
}

/** What the host reports of itself has ids of its own: nobody else can take one before it. */
const OWN_ID = "tidings:";

export function ownId(id: string): string {
  return `${OWN_ID}${id}`;
}

/** Throws if it is not for others to use. */
export function checkForeignId({ producer_id }: Pick<Event, "producer_id">): void {
  if (producer_id?.startsWith(OWN_ID) === true)
    throw new InvalidInputError("id", `begins with ${OWN_ID}, which is for what the host reports itself`);
}

/** An event that passed the border; the store mints its id and, where none was given, its timestamp. */
export type NewEvent = Omit<Event, "id" | "timestamp"> & { readonly timestamp: string | null };

const SEGMENT = "[A-Za-z0-9_-]+";
const TYPE_PATTERN = new RegExp(
  `^${SEGMENT}(\\.${SEGMENT}){${LIMITS.typeSegmentsMin - 1},${LIMITS.typeSegmentsMax - 1}}$`,
);

export const eventTypeSchema = z
  .string()
  .max(LIMITS.typeChars)
  .regex(TYPE_PATTERN, "must be 2 to 5 segments of letters, digits, _ and -, joined by dots, like tool.call.failure");

/** A whole type, or a prefix of some, like `tool.*`: what it stands for has at least one segment more. */
export function isTypePattern(pattern: string): boolean {
  const type = pattern.endsWith(".*") ? `${pattern.slice(0, -2)}.any` : pattern;
  return eventTypeSchema.safeParse(type).success;
}

const ALIAS = "handle.";

/** The names by which it is taken: what is called `handle.stopped` is `tool.stopped` as well. */
export function namesOfType(type: string): readonly string[] {
  return type.startsWith(ALIAS) ? [type, `tool.${type.slice(ALIAS.length)}`] : [type];
}

export function matchesType(pattern: string, type: string): boolean {
  const names = namesOfType(type);
  return pattern.endsWith(".*")
    ? names.some((name) => name.startsWith(pattern.slice(0, -1)))
    : names.some((name) => name === pattern);
}

export const eventSchema = z.strictObject({
  type: eventTypeSchema,
  source: wordSchema(LIMITS.sourceChars),
  severity: z.enum(SEVERITIES).optional(),
  payload: z.unknown().optional(),
  user_id: wordSchema(LIMITS.idChars).optional(),
  thread_id: wordSchema(LIMITS.idChars).optional(),
  dedupe_key: wordSchema(LIMITS.dedupeKeyChars).optional(),
  subject: wordSchema(LIMITS.subjectChars).optional(),
  id: wordSchema(LIMITS.idChars).optional(),
  timestamp: timestampSchema.optional(),
});

type ParsedEvent = z.output<typeof eventSchema>;

/** Without `timestamp`, which is written anew. */
const USUAL_KEYS: ReadonlySet<string> = new Set(Object.keys(eventSchema.shape).filter((key) => key !== "timestamp"));

/** What the schema gives for an event of the usual form, without asking it; undefined for any other, and for what is wrong. */
function usualEvent(input: unknown): ParsedEvent | undefined {
  if (!isPlainOf(input, USUAL_KEYS)) return undefined;
  const { type, source, severity, payload, user_id, thread_id, dedupe_key, subject, id } = input;
  if (typeof type !== "string" || type.length > LIMITS.typeChars || !TYPE_PATTERN.test(type)) return undefined;
  if (severity !== undefined && !SEVERITIES.includes(severity as Severity)) return undefined;
  if (!isWord(source, LIMITS.sourceChars) || !isMaybeWord(user_id, LIMITS.idChars)) return undefined;
  if (!isMaybeWord(thread_id, LIMITS.idChars) || !isMaybeWord(dedupe_key, LIMITS.dedupeKeyChars)) return undefined;
  if (!isMaybeWord(subject, LIMITS.subjectChars) || !isMaybeWord(id, LIMITS.idChars)) return undefined;
  return {
    type,
    source,
    severity: severity as Severity | undefined,
    payload,
    user_id,
    thread_id,
    dedupe_key,
    subject,
    id,
    timestamp: undefined,
  };
}

/** Parses what came in at the border, or throws `InvalidInputError` with the field and the reason. */
export function parseEvent(input: unknown): NewEvent {
  const parsed = usualEvent(input) ?? parseInput(eventSchema, input);
  const payload = takePayload(parsed.payload ?? {}, "payload");
  return {
    producer_id: parsed.id ?? null,
    type: parsed.type,
    source: parsed.source,
    severity: parsed.severity ?? "info",
    timestamp: parsed.timestamp ?? null,
    payload,
    dedupe_key: parsed.dedupe_key ?? null,
    user_id: parsed.user_id === undefined ? LOCAL_USER : userId(parsed.user_id),
    thread_id: parsed.thread_id === undefined ? null : threadId(parsed.thread_id),
    subject: parsed.subject ?? null,
  };
}

/** Checked, copied, and not too large. */
export function takePayload(value: unknown, field: string): JsonObject {
  const payload = takeJson(value, field);
  const text = jsonText(payload);
  // A character is three bytes at most.
  if (text.length * 3 <= LIMITS.payloadBytes) return payload;
  const bytes = Buffer.byteLength(text);
  if (bytes > LIMITS.payloadBytes)
    throw new InvalidInputError(field, `is ${bytes} bytes as JSON; the limit is ${LIMITS.payloadBytes}`);
  return payload;
}

/** What must be equal for two events with one producer id to be the same event. */
export function eventIdentity(event: NewEvent): string {
  const { type, severity, timestamp, payload, dedupe_key, thread_id, subject } = event;
  return canonicalJson({ type, severity, timestamp, payload, dedupe_key, thread_id, subject });
}
