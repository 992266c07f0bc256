/** Calls that are good, nearly good, and anything else: made of the schemas of `/openrpc.json`. */
import fc from "fast-check";
import type { JsonSchema } from "./json_schema.js";

/** Stands for something that the server has: which one is decided when it is sent. */
class Known {
  readonly of: string;
  readonly nth: number;

  constructor(of: string, nth: number) {
    this.of = of;
    this.nth = nth;
  }

  toJSON(): string {
    return `<${this.of} ${this.nth}>`;
  }
}

/** What a field of this name is one of. */
const SAME: Readonly<Record<string, string>> = {
  expected_turn_id: "turn_id",
  acknowledged_ids: "notification_id",
  disabled_subscribers: "subscriber_id",
};

/** Ids and cursors that the server has told, by the names under which calls take them. */
export class Pool {
  readonly #without: ReadonlySet<string>;
  readonly #values = new Map<string, string[]>([
    ["user_id", ["ada", "ada", "local"]],
    ["owner", ["somebody"]],
    ["dedupe_key", ["same"]],
    ["server", ["files"]],
    ["tool", ["read"]],
  ]);

  /** `without`: what must not be named, or the test would undo itself. */
  constructor(without: readonly string[] = []) {
    this.#without = new Set(without);
  }

  /** Whatever in an answer has the name of something that calls take. `of`: what the answer is, like `notification`. */
  learn(answer: unknown, of: string): void {
    if (Array.isArray(answer)) for (const one of answer) this.learn(one, of);
    else if (typeof answer === "object" && answer !== null)
      for (const [key, value] of Object.entries(answer)) {
        if (typeof value !== "string") this.learn(value, key.replace(/s$/, ""));
        else if (key === "id") this.#keep(`${of}_id`, value);
        else if (key === "next") this.#keep("after", value);
        else if (key.endsWith("_id")) this.#keep(key, value);
      }
  }

  #keep(name: string, value: string): void {
    const values = this.#values.get(name) ?? [];
    this.#values.set(name, values);
    if (values.includes(value) || this.#without.has(value)) return;
    values.push(value);
    if (values.length > 50) values.splice(10, 1);
  }

  /** With what stands for something known in its place. */
  fill(value: unknown): unknown {
    if (value instanceof Known) {
      const values = this.#values.get(value.of) ?? [];
      return values[value.nth % Math.max(1, values.length)] ?? "nothing";
    }
    if (Array.isArray(value)) return value.map((one) => this.fill(one));
    if (typeof value !== "object" || value === null) return value;
    const filled = {};
    for (const [key, one] of Object.entries(value)) put(filled, key, this.fill(one));
    return filled;
  }
}

/** By definition, not by assignment: a key may be `__proto__`. */
function put(holder: object, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}

const WORDS = [
  ...[
    "",
    " ",
    "\n",
    "\u0000",
    "\ud800",
    "a\udc00b",
    "\u202eevil",
    "e\u0301",
    "𝕏",
    "👩‍👩‍👧",
    "\ufeffx",
    "%00",
    "../../etc/passwd",
  ],
  ...["__proto__", "constructor", "toString", "null", "undefined", "NaN", "local", "cli.a.b", "mcp.log", "rehearse"],
  ...[
    "01a1e260-c4aa-784f-9711-000000000001",
    "01a1e260-c4aa-784f-9711-ffffffffffff",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
  ],
  ...[
    "2026-01-03T15:30:00Z",
    "9999-12-31T23:59:59.999999999-23:59",
    "0000-01-01T00:00:00+23:59",
    "'; DROP TABLE journal; --",
  ],
  ...[
    "999999999999999",
    "1e400",
    "{{ 7*7 }}",
    "{% for x in y %}",
    "</tidings>",
    "x".repeat(201),
    "x".repeat(16_385),
    "é".repeat(40_000),
  ],
  ...["hello", "slowly 2", "call read_notifications {}", 'call tell_user {"text": "x"}', "call no_such_tool {}"],
];

/** A text of any kind. */
export const text: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...WORDS),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.string({ unit: "grapheme", maxLength: 30 }),
);

const number = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.maxSafeInteger(),
  fc.constantFrom(0, -0, 1, -1, 0.5, 1e21, 1e308, 2 ** 31, 2 ** 53, -(2 ** 53)),
);

/** Anything that JSON can say. */
export const anything: fc.Arbitrary<unknown> = fc.oneof(
  text,
  number,
  fc.constantFrom(null, true, false, [], {}, [[]], [null]),
  fc.jsonValue({ maxDepth: 3 }),
  fc
    .integer({ min: 1, max: 80 })
    .map((depth) => JSON.parse(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`) as unknown),
  fc.integer({ min: 0, max: 2_000 }).map((length) => Array<number>(length).fill(0)),
  fc
    .integer({ min: 0, max: 1_500 })
    .map((keys) => Object.fromEntries(Array.from({ length: keys }, (_, n) => [`k${n}`, n]))),
);

/** A value of this form, with things that the server has where the name says so. */
function ofForm(schema: JsonSchema, name: string, group: string): fc.Arbitrary<unknown> {
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => ofForm(one, name, group)));
  if ("const" in schema) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case "string":
      return ofText(schema, name, group);
    case "boolean":
      return fc.boolean();
    case "integer":
    case "number":
      return ofNumber(schema, name);
    case "array":
      return fc.array(ofForm(schema.items ?? {}, name, group), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case "object":
      return ofObject(schema, group);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function ofText(
  { minLength = 0, maxLength = 50, pattern, format }: JsonSchema,
  name: string,
  group: string,
): fc.Arbitrary<unknown> {
  const known = fc
    .noBias(fc.nat(60))
    .map((nth) => new Known(name === "id" ? `${group}_id` : (SAME[name] ?? name), nth));
  if (format === "date-time") return fc.constantFrom("2026-01-03T15:30:00Z", "2030-01-01T00:00:00.5+02:00");
  if (name === "type") return fc.constantFrom("cli.build.finished", "mcp.log", "tool.call.failure", "custom.thing");
  if (pattern !== undefined) return fc.oneof(known, fc.constantFrom("cli.a.b", "1", "0000"));
  const free = fc.string({
    unit: "grapheme-ascii",
    minLength: Math.max(1, minLength),
    maxLength: Math.min(maxLength, 40),
  });
  const long = fc.constant("x".repeat(Math.min(maxLength, 20_000)));
  const said = fc.constantFrom("hello", "slowly 2", "call read_notifications {}", 'call tell_user {"text": "x"}');
  if (/(^|_)(id|ids|key|after|owner|server|tool|subscribers)$/.test(name))
    return fc.oneof({ weight: 5, arbitrary: known }, { weight: 1, arbitrary: free });
  return fc.oneof({ weight: 4, arbitrary: said }, { weight: 3, arbitrary: free }, { weight: 1, arbitrary: long });
}

/** Whoever waits, or rests, does so for a moment: what is tried is the call, not the clock. */
function ofNumber({ minimum = 0, maximum = 2 ** 40 }: JsonSchema, name: string): fc.Arbitrary<number> {
  if (name === "wait_ms") return fc.integer({ min: 0, max: 20 });
  if (name === "timeout_seconds") return fc.constant(1);
  return fc.oneof(fc.integer({ min: minimum, max: Math.min(maximum, minimum + 5) }), fc.constantFrom(minimum, maximum));
}

function ofObject(
  { properties = {}, required = [] }: JsonSchema,
  group: string,
): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(properties).map(([name, schema]) => [name, ofForm(schema, name, group)] as const);
  if (fields.length === 0)
    return fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 });
  return fc.record(Object.fromEntries(fields), { requiredKeys: [...required] as never[] }) as fc.Arbitrary<
    Record<string, unknown>
  >;
}

const change = fc.record({
  kind: fc.constantFrom("drop", "retype", "add", "huge", "nest", "twice", "number"),
  at: fc.nat(),
  with: anything,
  key: text,
});
type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never;

/** Where something could be otherwise. */
function placesIn(
  value: unknown,
  places: [Record<string, unknown>, string][] = [],
): [Record<string, unknown>, string][] {
  if (typeof value !== "object" || value === null || value instanceof Known) return places;
  for (const key of Object.keys(value)) {
    places.push([value as Record<string, unknown>, key]);
    placesIn((value as Record<string, unknown>)[key], places);
  }
  return places;
}

const WAIT_MS_MAX = 60_000;

function changed(params: Record<string, unknown>, changes: readonly Change[]): Record<string, unknown> {
  const copy = copied(params) as Record<string, unknown>;
  for (const { kind, at, with: other, key } of changes) {
    const places = placesIn(copy);
    const [holder, name] = places[at % Math.max(1, places.length)] ?? [copy, key];
    if (kind === "drop") delete holder[name];
    else if (kind === "add") put(copy, key, copied(other));
    else put(holder, name, differing(kind, holder[name], copied(other)));
  }
  const { wait_ms } = copy;
  // A good one, and long: the same call, without the waiting.
  if (typeof wait_ms === "number" && wait_ms > 20 && wait_ms <= WAIT_MS_MAX) copy["wait_ms"] = 20;
  return copy;
}

function differing(kind: Change["kind"], value: unknown, other: unknown): unknown {
  switch (kind) {
    case "huge":
      return typeof value === "number" ? value * 1e15 : "x".repeat(30_000);
    case "nest":
      return { nested: [value] };
    case "twice":
      return [value, value];
    case "number":
      return typeof value === "number" ? value + 0.5 : Number.MIN_SAFE_INTEGER;
    default:
      return other;
  }
}

function copied(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copied);
  if (typeof value !== "object" || value === null || value instanceof Known) return value;
  const copy = {};
  for (const [key, one] of Object.entries(value)) put(copy, key, copied(one));
  return copy;
}

/** Parameters of a method: good ones, good ones with a few things changed, and anything. */
export function paramsOf(method: string, form: JsonSchema): fc.Arbitrary<unknown> {
  const good = ofObject(form, method.split("/", 1)[0] ?? "");
  return fc.oneof(
    { weight: 4, arbitrary: good },
    {
      weight: 5,
      arbitrary: fc
        .tuple(good, fc.array(change, { minLength: 1, maxLength: 3 }))
        .map(([params, changes]) => changed(params, changes)),
    },
    { weight: 1, arbitrary: anything },
  );
}

const HARMLESS = ["inbox/counts", "runtime/status", "notification/list", "thread/list", "settings/get", "holon/status"];

const mostly = (usual: fc.Arbitrary<unknown>, seldom: fc.Arbitrary<unknown>, weight = 6): fc.Arbitrary<unknown> =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: seldom });

/** A message as a broken or hostile client would send it: what is in it does nothing. */
const call: fc.Arbitrary<unknown> = fc
  .record({
    jsonrpc: mostly(fc.constantFrom("2.0", undefined), anything),
    id: mostly(fc.oneof(fc.integer(), fc.string({ maxLength: 8 }), fc.constantFrom(null, undefined)), anything),
    method: mostly(fc.constantFrom(...HARMLESS), fc.oneof(fc.constant(undefined), anything, text), 2),
    params: mostly(fc.constantFrom({}, { user_id: "ada" }, undefined), anything),
    error: mostly(fc.constant(undefined), anything),
    result: mostly(fc.constant(undefined), anything),
  })
  // What is undefined is not there.
  .map((fields) => JSON.parse(JSON.stringify(fields)) as unknown);

const message: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 5, arbitrary: call },
  { weight: 2, arbitrary: fc.array(call, { maxLength: 6 }) },
  { weight: 1, arbitrary: fc.array(fc.oneof(call, anything), { minLength: 95, maxLength: 105 }) },
  { weight: 1, arbitrary: anything },
);

/** The same as bytes; some of them cut, or with bytes changed, or no text at all. */
export const messageBytes: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.oneof(
      { weight: 6, arbitrary: message.map((one) => Buffer.from(JSON.stringify(one) ?? "")) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
      { weight: 1, arbitrary: text.map((one) => Buffer.from(one)) },
    ),
    fc.oneof(
      { weight: 6, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 3 }) },
    ),
    fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat() }),
  )
  .map(([bytes, flips, cut]) => {
    const copy = Buffer.from(bytes);
    for (const [at, byte] of flips) if (copy.length > 0) copy[at % copy.length] = byte;
    return cut === null ? copy : copy.subarray(0, cut % (copy.length + 1));
  });
