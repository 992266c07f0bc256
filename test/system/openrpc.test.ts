/** `/openrpc.json`: what it says of every method is what the server takes and refuses. */
import { expect, test } from "vitest";
import { LIMITS } from "../../src/domain/limits.js";
import { METHODS } from "../../src/server/methods.js";
import { NOTIFICATION_NAMES } from "../../src/server/notifications.js";
import { around, isOfForm, type JsonSchema, plainest } from "../support/json_schema.js";
import { type RpcReply, Server } from "../support/server.js";

const INVALID = -32602;
const BATCH = 50;

interface Described {
  readonly openrpc: string;
  readonly methods: readonly {
    readonly name: string;
    readonly paramStructure: string;
    readonly params: readonly { readonly name: string; readonly required?: true; readonly schema: JsonSchema }[];
    readonly result: object;
  }[];
  readonly "x-notifications": readonly { readonly name: string; readonly params: readonly object[] }[];
}

/** What the schema cannot say, by method and field: the server may refuse what it lets pass. */
const BEYOND: readonly [method: RegExp, field: RegExp, why: string][] = [
  [/^event\/emit$/, /^payload|^type$/, "a payload is JSON within bounds, and known types have payloads of their own"],
  [/^notification\/notify$/, /^(data|inject_at|directive|kind)/, "fields that hold only together"],
  [/^notification\/list$/, /^(after|unread|unacknowledged)$/, "a cursor is looked at, and some need a user_id"],
  [/^notification\/changed$/, /^after$/, "a cursor is looked at"],
  [/^turn\/steer$/, /^(thread_id|expected_turn_id)$/, "one of the ids is needed, and they must agree"],
  [/^subscriber\/preview$/, /^(subscriber_id|event)/, "one that is there, and of what to look at only one thing"],
  [/^stats\/series$/, /^(from|to|step_ms)$/, "a span has an end after its begin, and so many points at most"],
  [/^settings\/update$/, /^disabled_subscribers/, "only subscribers that are there, and not core ones"],
];

const saying = (...texts: readonly string[]) => [
  { type: "message", role: "user", content: texts.map((text) => ({ type: "input_text", text })) },
];
const LONGEST = LIMITS.contentChars;
/** How long all of them may be together is beyond a schema. */
const SAID: readonly unknown[] = [
  ...[saying(""), saying(" "), saying("", "word"), saying("word"), [...saying(""), ...saying("word")], saying()],
  ...[saying("x".repeat(LONGEST)), saying("x".repeat(LONGEST + 1))],
];

test("every method and notification is described, and the server takes what the description says and nothing else", async () => {
  const server = await Server.start();
  const { status, json, headers } = await server.get<Described>("/openrpc.json", null);
  expect(status).toBe(200);
  expect(headers.get("content-type")).toContain("application/json");
  expect(json.openrpc).toMatch(/^1\./);
  expect(json.methods.map(({ name }) => name)).toEqual(METHODS.map(({ name }) => name));
  expect(json["x-notifications"].map(({ name }) => name)).toEqual(NOTIFICATION_NAMES);

  const calls: { method: string; params: Record<string, unknown>; good: boolean }[] = [];
  for (const { name, params } of json.methods) {
    const form: JsonSchema = {
      type: "object",
      properties: Object.fromEntries(params.map((one) => [one.name, one.schema])),
      required: params.flatMap((one) => (one.required === true ? [one.name] : [])),
      additionalProperties: false,
    };
    const plain = plainest(form) as Record<string, unknown>;
    const tries: Record<string, unknown>[] = [plain, { ...plain, no_such_field: 1 }];
    for (const { name: field, schema } of params) {
      const { [field]: _, ...without } = plain;
      tries.push(without);
      const values = [plainest(schema), ...around(schema), ...(field === "input" ? SAID : [])];
      for (const value of values) tries.push({ ...plain, [field]: value });
    }
    for (const one of tries) calls.push({ method: name, params: one, good: isOfForm(one, form) });
  }
  expect(calls.filter(({ good }) => good).length).toBeGreaterThan(100);
  expect(calls.filter(({ good }) => !good).length).toBeGreaterThan(500);

  for (let at = 0; at < calls.length; at += BATCH) {
    const some = calls.slice(at, at + BATCH);
    const body = some.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params }));
    const { json: replies } = await server.post<RpcReply<unknown>[]>("/rpc", body);
    for (const [n, { method, params, good }] of some.entries()) {
      const { error } = replies.find(({ id }) => id === n) ?? {};
      const what = `${method} ${JSON.stringify(params).slice(0, 300)} ${JSON.stringify(error)}`;
      const field = error?.data?.field ?? "";
      const beyond = BEYOND.some(([name, fields]) => name.test(method) && fields.test(field));
      if (!good) expect(error?.code, what).toBe(INVALID);
      else if (!beyond) expect(error?.code, what).not.toBe(INVALID);
    }
  }
});
