/** The tools that every hosted agent has. Their declarations are part of every request, so that they never change. */
import { z } from "zod";
import type { Item } from "../domain/conversation.js";
import { isMiss } from "../domain/errors.js";
import type { JsonObject } from "../domain/json.js";
import { LIMITS } from "../domain/limits.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { crashPoint } from "../platform/crashpoint.js";
import type { ToolDeclaration } from "../providers/model.js";
import type { Store } from "../store/contract.js";
import type { Counters } from "./counters.js";
import type { HeldItem, Holdings } from "./holdings.js";
import { promoteWithWords } from "./promotion.js";
import { readMany, readOne } from "./read_notifications.js";
import type { ToolOutcome } from "./tools.js";

export const ACKNOWLEDGE = "acknowledge_notifications";
export const READ = "read_notifications";
export const TELL_USER = "tell_user";

export const BUILTIN_TOOLS: readonly ToolDeclaration[] = [
  {
    name: ACKNOWLEDGE,
    description:
      "Acknowledges notifications by their ids. What is listed under **Tell the user** is acknowledged after you have told the user of it.",
    input_schema: {
      type: "object",
      properties: {
        acknowledged_ids: {
          type: "array",
          items: { type: "string" },
          description: "Ids as they stand in the block of notifications.",
        },
      },
      required: ["acknowledged_ids"],
      additionalProperties: false,
    },
  },
  {
    name: READ,
    description:
      "Reads notifications: one by its id, or what waits for you (pending), what is in the user's inbox (inbox), what the system has shown in this conversation (floor). Newest first; a page ends with how to get the next one.",
    input_schema: {
      type: "object",
      properties: {
        pending: { type: "boolean", description: "What waits for you. The default." },
        inbox: { type: "boolean", description: "The user's inbox, read only." },
        floor: { type: "boolean", description: "What the user was shown in this conversation, read only." },
        id: { type: "string", description: "One notification, whole." },
        after: { type: "string", description: "Where the page before ended." },
      },
      additionalProperties: false,
    },
  },
  {
    name: TELL_USER,
    description:
      "Says something to the user. In a turn that the system opened for you alone, this is the only way: there, what you write is not shown.",
    input_schema: {
      type: "object",
      properties: { text: { type: "string", description: "What the user is to read." } },
      required: ["text"],
      additionalProperties: false,
    },
  },
];

const NAMES: ReadonlySet<string> = new Set(BUILTIN_TOOLS.map(({ name }) => name));

export function isBuiltIn(name: string): boolean {
  return NAMES.has(name);
}

const acknowledgeSchema = z.strictObject({ acknowledged_ids: z.array(z.string()).max(LIMITS.claimLimit) });
const readSchema = z.strictObject({
  pending: z.boolean().optional(),
  inbox: z.boolean().optional(),
  floor: z.boolean().optional(),
  id: z.string().optional(),
  after: z.string().max(LIMITS.idChars).optional(),
});
const tellSchema = z.strictObject({ text: z.string().trim().min(1).max(LIMITS.contentChars) });

/** The turn in which they are called. */
export interface BuiltInContext {
  readonly store: Store;
  readonly turn: Turn;
  readonly call_id: string;
  readonly holdings: Holdings;
  readonly counters: Counters;
  /** Writes to the turn's conversation. */
  readonly record: (items: readonly Item[]) => Promise<unknown>;
}

export async function runBuiltIn(name: string, input: JsonObject, context: BuiltInContext): Promise<ToolOutcome> {
  switch (name) {
    case ACKNOWLEDGE:
      return withInput(acknowledgeSchema, input, context, ({ acknowledged_ids }) =>
        acknowledge(acknowledged_ids, context),
      );
    case READ:
      return withInput(readSchema, input, context, ({ id, inbox, floor, after }) => {
        const { store, turn } = context;
        if (id !== undefined) return readOne(store, turn, id);
        return readMany(store, turn, { what: floor === true ? "floor" : inbox === true ? "inbox" : "pending", after });
      });
    default:
      return withInput(tellSchema, input, context, ({ text }) => tellUser(text.toWellFormed(), context));
  }
}

async function withInput<Value>(
  schema: z.ZodType<Value>,
  input: JsonObject,
  { counters }: BuiltInContext,
  run: (value: Value) => Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return run(parsed.data);
  counters.malformed_calls += 1;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "input"}: ${message}`);
  return { how: "failure", output: problems.slice(0, 5).join("; ") };
}

/** Only what this turn holds, and what it had to tell only if it has spoken since. */
async function acknowledge(ids: readonly string[], context: BuiltInContext): Promise<ToolOutcome> {
  const { store, holdings, counters } = context;
  const refused: string[] = [];
  const taken = new Map<string, HeldItem>();
  for (const id of ids) {
    const item = holdings.get(id);
    const reason = taken.has(id) ? "it is named twice" : refusal(item, holdings);
    if (item === undefined || reason !== null) refused.push(`${shownId(id)}: ${reason}`);
    else taken.set(id, item);
  }
  const items = [...taken.values()];
  const answers = await store.commandMany(
    HOST,
    items.map(({ id, epoch }) => ({ id, operation: "settle", command: { column: "settle", epoch } })),
  );
  crashPoint("turn.acknowledged");
  const done: string[] = [];
  for (const [index, { id }] of items.entries()) {
    const answer = answers[index];
    const missed = answer === undefined || isMiss(answer);
    holdings.mark(id, missed ? "over" : "acknowledged");
    if (missed) refused.push(`${shownId(id)}: it is not yours any more`);
    else done.push(id);
  }
  counters.refused_acknowledgements += refused.length;
  const lines = [
    ...(done.length === 0 ? [] : [`acknowledged: ${done.join(", ")}`]),
    ...(refused.length === 0 ? [] : [`refused:\n${refused.join("\n")}`]),
  ];
  return { how: refused.length === 0 ? "success" : "failure", output: lines.join("\n") || "there was nothing to do" };
}

function refusal(item: HeldItem | undefined, holdings: Holdings): string | null {
  if (item === undefined) return "you were not told of it in this turn";
  if (item.state === "acknowledged") return "it is acknowledged already";
  if (item.passive) return "it needs no acknowledgement";
  if (item.state !== "held") return "it is not yours any more";
  if (item.must_narrate && !holdings.hasSpokenOf(item)) return "tell the user of it first, then acknowledge it";
  return null;
}

function shownId(id: string): string {
  return JSON.stringify(id.slice(0, 100));
}

/** On disk before the model learns that it was said. */
async function tellUser(
  text: string,
  { store, turn, call_id, holdings, record }: BuiltInContext,
): Promise<ToolOutcome> {
  const said = record([{ type: "told_user", content: text }]);
  await Promise.all([said, turn.internal ? promoteWithWords(store, turn, holdings, { text, call_id }) : undefined]);
  holdings.spoke();
  return { how: "success", output: "the user was told" };
}
