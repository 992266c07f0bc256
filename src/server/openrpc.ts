/** The description of every method and notification, made of the schemas that the server itself checks with. */
import { z } from "zod";
import { SCOPES } from "../domain/token.js";
import { METHODS } from "./methods.js";
import { NOTIFICATION_NAMES, NOTIFICATIONS } from "./notifications.js";
import { NOT_BLANK, OR_TEXT } from "./talk.js";
import { RPC } from "./wire.js";

type Schema = Readonly<Record<string, unknown>>;

/** Cached: it is the same for as long as the program runs. */
const described = new Map<string, object>();

export function openRpc(version: string): object {
  const known = described.get(version) ?? describe(version);
  described.set(version, known);
  return known;
}

function describe(version: string): object {
  return {
    openrpc: "1.3.2",
    info: { title: "Tidings", version: version === "" ? "0" : version },
    methods: METHODS.map(({ name, summary, params, result, scope }) => ({
      name,
      summary,
      tags: [{ name: scope }],
      paramStructure: "by-name",
      params: paramsOf(params),
      result: { name: "result", schema: resultOf(result) },
      errors: Object.entries(RPC).map(([message, code]) => ({ code, message })),
    })),
    "x-scopes": SCOPES,
    "x-aliases": { "holon/*": "runtime/*" },
    "x-notifications": NOTIFICATION_NAMES.map((name) => ({
      name,
      summary: NOTIFICATIONS[name].summary,
      params: paramsOf(NOTIFICATIONS[name].params),
    })),
  };
}

/** As it is sent, before defaults are filled in. */
function paramsOf(schema: z.ZodType): object[] {
  const { properties = {} }: Schema = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    target: "draft-7",
  });
  const { shape } = schema as z.ZodObject;
  return Object.entries(properties as Record<string, Schema>).map(([name, described]) => ({
    name,
    schema: orText(described),
    ...(mayBeAbsent(shape[name] as z.ZodType) ? {} : { required: true }),
  }));
}

/** As it is answered. */
function resultOf(schema: z.ZodType): Schema {
  const { $schema: _, ...described }: Schema = z.toJSONSchema(schema, { unrepresentable: "any", target: "draft-7" });
  return described;
}

/** Asked of the schema itself: what is made of a value before it is looked at hides whether there must be one. */
function mayBeAbsent(schema: z.ZodType): boolean {
  return schema.safeParse(undefined).success;
}

function orText({ [OR_TEXT]: maxLength, ...schema }: Schema): Schema {
  if (maxLength === undefined) return schema;
  return { anyOf: [{ type: "string", minLength: 1, maxLength, pattern: NOT_BLANK }, schema] };
}
