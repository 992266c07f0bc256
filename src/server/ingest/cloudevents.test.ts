import { describe, expect, it } from "vitest";
import { InvalidInputError } from "../../domain/errors.js";
import { parseEvent } from "../../domain/event.js";
import { LIMITS } from "../../domain/limits.js";
import { SERVER_LIMITS } from "../limits.js";
import { binaryEvent, structuredEvent } from "./cloudevents.js";
import { readEvents } from "./forms.js";
import { typeOf } from "./words.js";

/** The example of the specification, in the JSON format. */
const EXAMPLE = {
  specversion: "1.0",
  type: "com.github.pull_request.opened",
  source: "https://github.com/cloudevents/spec/pull",
  subject: "123",
  id: "A234-1234-1234",
  time: "2018-04-05T17:31:00Z",
  comexampleextension1: "value",
  comexampleothervalue: 5,
  datacontenttype: "text/xml",
  data: '<much wow="xml"/>',
};

const NEEDED = { specversion: "1.0", id: "1", source: "/ci", type: "ci.build.done" };

const structured = (event: unknown) => structuredEvent(event, SERVER_LIMITS);

function refusal(run: () => unknown): { field: string; reason: string } {
  try {
    run();
  } catch (error) {
    if (error instanceof InvalidInputError) return { field: error.field, reason: error.reason };
    throw error;
  }
  throw new Error("it was not refused");
}

const field = (event: unknown) => refusal(() => structured(event)).field;

describe("an event in the JSON format", () => {
  it("is the specification's example, with all of its attributes", () => {
    const { data, ...attributes } = EXAMPLE;
    expect(structured(EXAMPLE)).toEqual({
      id: "A234-1234-1234",
      type: "com.github.pull_request.opened",
      source: "https://github.com/cloudevents/spec/pull",
      subject: "123",
      timestamp: "2018-04-05T17:31:00.000Z",
      payload: { data, cloudevent: attributes },
    });
  });

  it("has data that is an object as its payload, and any other under `data`", () => {
    const payload = (event: object) => structured({ ...NEEDED, ...event }).payload;
    expect(payload({ data: { message: "red" } })).toEqual({ message: "red", cloudevent: NEEDED });
    expect(payload({ data: [1] })).toEqual({ data: [1], cloudevent: NEEDED });
    expect(payload({ data: false })).toEqual({ data: false, cloudevent: NEEDED });
    expect(payload({ data: { cloudevent: 1 } })).toEqual({ data: { cloudevent: 1 }, cloudevent: NEEDED });
    expect(payload({ data_base64: "AQID" })).toEqual({ data_base64: "AQID", cloudevent: NEEDED });
    expect(payload({})).toEqual({ cloudevent: NEEDED });
    expect(payload({ data: null, traceparent: null })).toEqual({ cloudevent: NEEDED });
  });

  it("has what only we know in attributes of ours", () => {
    const ours = { tidingsseverity: "error", tidingsuser: "ada", tidingsthread: "t", tidingsdedupekey: "k" };
    const { severity, user_id, thread_id, dedupe_key, payload } = structured({ ...NEEDED, ...ours });
    expect({ severity, user_id, thread_id, dedupe_key, payload }).toEqual({
      ...{ severity: "error", user_id: "ada", thread_id: "t", dedupe_key: "k" },
      payload: { cloudevent: NEEDED },
    });
    expect(refusal(() => structured({ ...NEEDED, tidingsseverty: "error" }))).toEqual({
      field: "tidingsseverty",
      reason: "is no attribute of ours; did you mean tidingsseverity?",
    });
    expect(field({ ...NEEDED, tidingsseverity: "loud" })).toBe("tidingsseverity");
  });

  it.each(Object.keys(NEEDED))("needs %s, as text that is not empty", (name) => {
    expect(field({ ...NEEDED, [name]: undefined })).toBe(name);
    expect(field({ ...NEEDED, [name]: null })).toBe(name);
    expect(field({ ...NEEDED, [name]: "" })).toBe(name);
    expect(field({ ...NEEDED, [name]: 1 })).toBe(name);
  });

  it.each([
    ["specversion", { specversion: "0.3" }],
    ["source", { source: "a b" }],
    ["source", { source: "100%" }],
    ["time", { time: "yesterday" }],
    ["time", { time: "2018-04-05" }],
    ["time", { time: "2018-13-05T17:31:00Z" }],
    ["subject", { subject: "" }],
    ["dataschema", { dataschema: "/relative" }],
    ["datacontenttype", { datacontenttype: "json" }],
    ["data", { datacontenttype: "text/plain", data: { a: 1 } }],
    ["data_base64", { data_base64: "?" }],
    ["data_base64", { data_base64: "AQID", data: 1 }],
    ["myAttribute", { myAttribute: "x" }],
    ["my_attribute", { my_attribute: "x" }],
    ["nested", { nested: { a: 1 } }],
    ["number", { number: 1.5 }],
    ["number", { number: 2_147_483_648 }],
    ["id", { id: "a\u0007b" }],
    ["id", { id: "\ud800" }],
  ])("is refused for its %s: %j", (name, more) => {
    expect(field({ ...NEEDED, ...more })).toBe(name);
  });

  it.each([null, 1, "text", []])("is refused if it is %j", (value) => {
    expect(field(value)).toBe("");
  });

  it("may have a time with a zone, many digits, small letters or a leap second", () => {
    const time = (text: string) => structured({ ...NEEDED, time: text }).timestamp;
    expect(time("2018-04-05T17:31:00.123456789+02:00")).toBe("2018-04-05T15:31:00.123Z");
    expect(time("2018-04-05t17:31:00z")).toBe("2018-04-05T17:31:00.000Z");
    expect(time("2016-12-31T23:59:60Z")).toBe("2016-12-31T23:59:59.000Z");
  });

  it("stays itself where its words are longer than ours may be, and two that differ stay apart", () => {
    const long = (end: string) =>
      structured({ ...NEEDED, id: "i".repeat(300) + end, source: `/${"s".repeat(300)}${end}` });
    expect(() => parseEvent({ ...long("a"), payload: {} })).not.toThrow();
    expect(long("a")).toEqual(long("a"));
    expect(long("a").id).not.toBe(long("b").id);
    expect(long("a").source).not.toBe(long("b").source);
  });
});

describe("a type of others", () => {
  it.each([
    ["com.github.push", "com.github.push"],
    ["ping", "cloudevents.ping"],
    ["google.cloud.storage.object.v1.finalized", "google.cloud.storage.object.v1-finalized"],
    ["org:created/now", "cloudevents.org-created-now"],
    ["a..b.", "a.b"],
    ["größe.x", "gr-e.x"],
    [`a.${"b".repeat(300)}`, expect.stringMatching(/^a\.b+-[\w-]{22}$/)],
  ])("%s is one of ours", (type, ours) => {
    const mapped = typeOf(type, "cloudevents");
    expect(mapped).toEqual(ours);
    expect(mapped?.length).toBeLessThanOrEqual(LIMITS.typeChars);
    expect(() => parseEvent({ type: mapped, source: "x" })).not.toThrow();
  });

  it("is none without a letter or digit", () => {
    expect(typeOf("...", "x")).toBeNull();
    expect(field({ ...NEEDED, type: "…" })).toBe("type");
  });
});

describe("an event in headers and a body", () => {
  const headers = (more: Record<string, string> = {}, type: string | null = "application/json") => ({
    ...Object.fromEntries(Object.entries({ ...NEEDED, ...more }).map(([name, value]) => [`ce-${name}`, [value]])),
    ...(type === null ? {} : { "content-type": [type] }),
    host: ["localhost"],
  });

  it("has JSON, text or bytes as its data, as the content type says", () => {
    const payload = (type: string | null, body: Buffer | string) =>
      binaryEvent(headers({}, type), Buffer.from(body as string), SERVER_LIMITS).payload;
    const kept = (datacontenttype: string) => ({ ...NEEDED, datacontenttype });
    expect(payload("application/json", '{"a":1}')).toEqual({ a: 1, cloudevent: kept("application/json") });
    expect(payload("application/vnd.x+json; charset=utf-8", "[1]")).toMatchObject({ data: [1] });
    expect(payload("text/plain", "grüße")).toEqual({ data: "grüße", cloudevent: kept("text/plain") });
    expect(payload("application/octet-stream", Buffer.from([1, 2, 255]))).toMatchObject({ data_base64: "AQL/" });
    expect(payload("text/plain", Buffer.from([255]))).toMatchObject({ data_base64: "/w==" });
    expect(payload(null, "x")).toEqual({ data_base64: "eA==", cloudevent: NEEDED });
    expect(payload("application/json", "")).toEqual({ cloudevent: kept("application/json") });
  });

  it("has attributes that are decoded once", () => {
    const read = (value: string) =>
      binaryEvent(headers({ subject: value }, null), Buffer.alloc(0), SERVER_LIMITS).subject;
    expect(read("Euro%20%E2%82%AC%20%F0%9F%98%80")).toBe("Euro € 😀");
    expect(read("%2525")).toBe("%25");
    expect(read('"a \\"quoted\\" one"')).toBe('a "quoted" one');
    expect(read("50%25")).toBe("50%");
  });

  it.each([
    ["subject", { subject: "100%" }],
    ["subject", { subject: "%ff" }],
    ["subject", { subject: "%00" }],
    ["datacontenttype", { datacontenttype: "text/plain" }],
    ["data", { data: "x" }],
    ["my-attribute", { "my-attribute": "x" }],
    ["specversion", { specversion: "2.0" }],
    ["tidingsseverity", { tidingsseverity: "loud" }],
  ])("is refused for its %s: %j", (name, more) => {
    expect(refusal(() => binaryEvent(headers(more), Buffer.alloc(0), SERVER_LIMITS)).field).toBe(name);
  });

  it("is refused for an attribute that came twice, one that is missing, and data that is no JSON", () => {
    expect(
      refusal(() => binaryEvent({ ...headers(), "ce-id": ["1", "2"] }, Buffer.alloc(0), SERVER_LIMITS)).field,
    ).toBe("id");
    expect(
      refusal(() => binaryEvent({ ...headers(), "ce-source": undefined }, Buffer.alloc(0), SERVER_LIMITS)).field,
    ).toBe("source");
    expect(refusal(() => binaryEvent(headers(), Buffer.from("{"), SERVER_LIMITS)).field).toBe("data");
  });
});

describe("the form of what was sent", () => {
  const read = (type: string, value: unknown) =>
    readEvents({ "content-type": [type] }, Buffer.from(JSON.stringify(value)), {
      ...SERVER_LIMITS,
      eventsPerRequest: 3,
    });

  it("is said by the content type", () => {
    expect(read("application/cloudevents+json; charset=UTF-8", NEEDED)).toMatchObject({ one: { id: "1" } });
    expect(read("Application/CloudEvents+JSON", NEEDED)).toMatchObject({ one: { id: "1" } });
    expect(read("application/json", { type: "a.b", source: "x" })).toEqual({ one: { type: "a.b", source: "x" } });
    expect(read("application/cloudevents-batch+json", [])).toEqual({ many: [] });
    expect(read("application/cloudevents-batch+json", [NEEDED, { ...NEEDED, id: "" }])).toMatchObject({
      many: [{ input: { id: "1" } }, { error: { field: "id" } }],
    });
  });

  it("is refused where it is none that is known, or too many", () => {
    expect(refusal(() => read("application/cloudevents+avro", 1)).field).toBe("content-type");
    expect(refusal(() => read("application/cloudevents-batch+json", NEEDED)).reason).toMatch(/array/);
    expect(refusal(() => read("application/cloudevents-batch+json", [1, 2, 3, 4])).reason).toMatch(/4 events/);
    expect(refusal(() => read("application/json", [])).reason).toMatch(/0 events/);
  });
});
