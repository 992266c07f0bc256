/**
 * CloudEvents 1.0 over HTTP, by the specification: structured, batch and binary. Their attributes become an event of ours;
 * as they came they are in `payload.cloudevent`.
 */
import { InvalidInputError } from "../../domain/errors.js";
import { type EventInput, eventTypeSchema } from "../../domain/event.js";
import type { Json, JsonObject } from "../../domain/json.js";
import { LIMITS } from "../../domain/limits.js";
import { didYouMean } from "../../domain/nearest.js";
import { SEVERITIES, type Severity } from "../../domain/severity.js";
import { type JsonBounds, parseJson } from "../json.js";
import type { ServerLimits } from "../limits.js";
import { fitted, typeOf } from "./words.js";

/** Header names in lower case, each with all the values that came. */
export type Headers = Readonly<Record<string, readonly string[] | undefined>>;

export type AttributeBounds = Pick<ServerLimits, "attributesPerEvent">;

type Attribute = string | number | boolean;
type Attributes = ReadonlyMap<string, Attribute>;

/** What an event is about: JSON, or bytes as they are written in a payload. */
type Data = { readonly json: Json } | { readonly text: string } | { readonly base64: string };

const NAME = /^[a-z0-9]+$/;
/** Of an event in the JSON format: its data, which is no attribute. */
const MEMBERS: ReadonlySet<string> = new Set(["data", "data_base64"]);

/** One event in the JSON format. */
export function structuredEvent(value: unknown, bounds: AttributeBounds): EventInput {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new InvalidInputError(
      "",
      "must be a CloudEvent: a JSON object with `specversion`, `id`, `source` and `type`",
    );
  const event = value as Record<string, unknown>;
  const attributes = new Map<string, Attribute>();
  for (const [name, given] of Object.entries(event)) {
    // Null is as if it were not there.
    if (MEMBERS.has(name) || given === null) continue;
    checkName(name);
    attributes.set(name, checkedValue(name, given));
  }
  return eventOf(attributes, jsonData(event, attributes), bounds);
}

function jsonData(event: Readonly<Record<string, unknown>>, attributes: Attributes): Data | undefined {
  const data = own(event, "data");
  const base64 = own(event, "data_base64");
  if (base64 === undefined) {
    if (data === undefined) return undefined;
    const type = attributes.get("datacontenttype");
    if (typeof data !== "string" && typeof type === "string" && !isJson(type))
      throw new InvalidInputError("data", `must be text, since datacontenttype is ${type}`);
    return { json: data as Json };
  }
  if (data !== undefined) throw new InvalidInputError("data_base64", "must not be there beside data");
  if (typeof base64 !== "string" || !isBase64(base64)) throw new InvalidInputError("data_base64", "must be Base64");
  return { base64 };
}

function own(event: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(event, name) ? (event[name] ?? undefined) : undefined;
}

const PREFIX = "ce-";

/** Whether the headers say that the body is the data of an event. */
export function isBinary(headers: Headers): boolean {
  return Object.keys(headers).some((name) => name.startsWith(PREFIX));
}

/** One event whose attributes are headers, and whose data is the body. */
export function binaryEvent(headers: Headers, body: Buffer, bounds: JsonBounds & AttributeBounds): EventInput {
  const attributes = new Map<string, Attribute>();
  for (const [header, values] of Object.entries(headers)) {
    if (!header.startsWith(PREFIX) || values === undefined) continue;
    const name = header.slice(PREFIX.length);
    checkName(name);
    if (name === "datacontenttype") throw new InvalidInputError(name, "is the content-type header, and no other");
    const [value = "", ...more] = values;
    if (more.length > 0) throw new InvalidInputError(name, "came more than once");
    attributes.set(name, checkedText(name, headerText(name, value)));
  }
  const [type] = headers["content-type"] ?? [];
  if (type !== undefined) attributes.set("datacontenttype", checkedText("datacontenttype", type));
  return eventOf(attributes, body.length === 0 ? undefined : binaryData(type ?? "", body, bounds), bounds);
}

function binaryData(type: string, body: Buffer, bounds: JsonBounds): Data {
  if (isJson(type)) {
    try {
      return { json: parseJson(body, bounds) as Json };
    } catch (error) {
      throw error instanceof InvalidInputError ? new InvalidInputError("data", error.reason) : error;
    }
  }
  const text = isText(type) ? utf8Of(body) : undefined;
  return text === undefined ? { base64: body.toString("base64") } : { text };
}

/** Quotes are taken off, and then what is written as %XX is read, once. */
function headerText(name: string, value: string): string {
  const quoted = /^"(.*)"$/.exec(value)?.[1]?.replace(/\\(.)/g, "$1") ?? value;
  const bytes: number[] = [];
  for (let at = 0; at < quoted.length; at += 1) {
    if (quoted[at] !== "%") {
      bytes.push(quoted.charCodeAt(at));
      continue;
    }
    const hex = quoted.slice(at + 1, at + 3);
    if (!/^[0-9A-Fa-f]{2}$/.test(hex))
      throw new InvalidInputError(name, "has a % that is not followed by two hexadecimal digits; write it as %25");
    bytes.push(Number.parseInt(hex, 16));
    at += 2;
  }
  const text = utf8Of(Buffer.from(bytes));
  if (text === undefined) throw new InvalidInputError(name, "is not UTF-8");
  return text;
}

/** What is ours among the extension attributes: lower case and no separators, as the specification wants it. */
const OURS = ["tidingsseverity", "tidingsuser", "tidingsthread", "tidingsdedupekey"] as const;

function eventOf(attributes: Attributes, data: Data | undefined, { attributesPerEvent }: AttributeBounds): EventInput {
  if (attributes.size > attributesPerEvent)
    throw new InvalidInputError("", `has more than ${attributesPerEvent} attributes`);
  const text = (name: string) => textOf(attributes, name);
  if (required(attributes, "specversion") !== "1.0") throw new InvalidInputError("specversion", "must be 1.0");
  const id = required(attributes, "id");
  const source = required(attributes, "source");
  const type = required(attributes, "type");
  if (!isUriReference(source)) throw new InvalidInputError("source", "must be a URI reference, like /ci/builds");
  const schema = text("dataschema");
  if (schema !== undefined && !(isUriReference(schema) && /^[A-Za-z][A-Za-z0-9+.-]*:/.test(schema)))
    throw new InvalidInputError("dataschema", "must be an absolute URI");
  const contentType = text("datacontenttype");
  if (contentType !== undefined && !MEDIA_TYPE.test(contentType))
    throw new InvalidInputError("datacontenttype", "must be a media type, like application/json");
  const time = text("time");
  const subject = text("subject");
  const kept: Record<string, Json> = {};
  for (const [name, value] of attributes) {
    if (!name.startsWith("tidings")) kept[name] = value;
    else if (!(OURS as readonly string[]).includes(name))
      throw new InvalidInputError(name, `is no attribute of ours${didYouMean(name, OURS)}`);
  }
  return {
    id: fitted(id, LIMITS.idChars),
    source: fitted(source, LIMITS.sourceChars),
    type: eventTypeSchema.safeParse(type).success ? type : mappedType(type),
    payload: payloadOf(data, kept),
    ...(time === undefined ? {} : { timestamp: timeOf(time) }),
    ...(subject === undefined ? {} : { subject: fitted(subject, LIMITS.subjectChars) }),
    ...wordsOfOurs(text),
  };
}

function wordsOfOurs(text: (name: (typeof OURS)[number]) => string | undefined): Partial<EventInput> {
  const severity = text("tidingsseverity");
  if (severity !== undefined && !isSeverity(severity))
    throw new InvalidInputError("tidingsseverity", `must be one of ${SEVERITIES.join(", ")}`);
  const user_id = text("tidingsuser");
  const thread_id = text("tidingsthread");
  const dedupe_key = text("tidingsdedupekey");
  return {
    ...(severity === undefined ? {} : { severity }),
    ...(user_id === undefined ? {} : { user_id }),
    ...(thread_id === undefined ? {} : { thread_id }),
    ...(dedupe_key === undefined ? {} : { dedupe_key }),
  };
}

function isSeverity(text: string): text is Severity {
  return (SEVERITIES as readonly string[]).includes(text);
}

function mappedType(type: string): string {
  const mapped = typeOf(type, "cloudevents");
  if (mapped === null) throw new InvalidInputError("type", "has no letter or digit");
  return mapped;
}

/** Data that is an object is the payload itself; any other is under `data`, or `data_base64`. */
function payloadOf(data: Data | undefined, cloudevent: JsonObject): JsonObject {
  if (data === undefined) return { cloudevent };
  if ("base64" in data) return { data_base64: data.base64, cloudevent };
  const value = "text" in data ? data.text : data.json;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { data: value, cloudevent };
  return Object.hasOwn(value, "cloudevent") ? { data: value, cloudevent } : { ...(value as JsonObject), cloudevent };
}

function required(attributes: Attributes, name: string): string {
  const value = textOf(attributes, name);
  if (value === undefined) throw new InvalidInputError(name, "is required");
  return value;
}

function textOf(attributes: Attributes, name: string): string | undefined {
  const value = attributes.get(name);
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw new InvalidInputError(name, `must be text, not ${value}`);
  if (value === "") throw new InvalidInputError(name, "must not be empty");
  return value;
}

function checkName(name: string): void {
  if (!NAME.test(name) || name === "data")
    throw new InvalidInputError(name.slice(0, LIMITS.idChars), "is no attribute: names are of a to z and 0 to 9");
}

const INTEGER_MAX = 2_147_483_647;

function checkedValue(name: string, value: unknown): Attribute {
  if (typeof value === "string") return checkedText(name, value);
  if (typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= INTEGER_MAX) return value;
  throw new InvalidInputError(name, "must be text, true, false or a whole number of 32 bits");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing control characters is the purpose
const NO_TEXT = /[\u0000-\u001f\u007f-\u009f\ufdd0-\ufdef]|[\ufffe\uffff]/u;

function checkedText(name: string, text: string): string {
  if (!text.isWellFormed() || NO_TEXT.test(text))
    throw new InvalidInputError(name, "must be text without control characters");
  return text;
}

const URI_REFERENCE = /^(?:[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+$/;

function isUriReference(text: string): boolean {
  return URI_REFERENCE.test(text);
}

const TOKEN = "[A-Za-z0-9!#$&^_.+-]+";
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:\\s*;.*)?$`);

/** Without parameters, in lower case. */
export function mediaTypeOf(contentType: string): string {
  return (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

function isJson(contentType: string): boolean {
  const type = mediaTypeOf(contentType);
  return type.endsWith("/json") || type.endsWith("+json");
}

function isText(contentType: string): boolean {
  const type = mediaTypeOf(contentType);
  return type.startsWith("text/") || type.endsWith("/xml") || type.endsWith("+xml");
}

const RFC3339 = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:)(\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

function timeOf(text: string): string {
  const [, date, hours, seconds, fraction = "", zone = ""] = RFC3339.exec(text) ?? [];
  // A leap second is the last one of its minute here.
  const iso = `${date}T${hours}${seconds === "60" ? "59" : seconds}${fraction.slice(0, 4)}${zone.toUpperCase()}`;
  const time = new Date(iso);
  if (date === undefined || Number.isNaN(time.getTime()))
    throw new InvalidInputError("time", "must be a time of RFC 3339, like 2026-01-03T15:30:00Z");
  return time.toISOString();
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function isBase64(text: string): boolean {
  return BASE64.test(text);
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function utf8Of(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
