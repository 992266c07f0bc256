/** Whether an entry of the journal is what its type says: every type is told from every other by what its body has. */
import type { EntryBody, JournalEntry } from "../domain/journal.js";

type Common = "type" | "changes";
type Form<Body> = {
  readonly [Field in Exclude<keyof Body, Common>]-?: object extends Pick<Body, Field> ? "maybe" : "always";
};

/** Of an entry as it is read: with what its stored form leaves out. */
const FORMS: { readonly [Type in EntryBody["type"]]: Form<Extract<EntryBody, { type: Type }>> } = {
  event: { event: "always" },
  delivery: { operation: "always" },
  thread: { state: "always", paused: "maybe", budgets: "maybe" },
  observation: { subject: "always", generation: "always" },
  token: { action: "always", token_id: "always", scopes: "always" },
  settings: { disabled_subscribers: "always" },
  carrier: {
    carrier_id: "always",
    state: "always",
    point: "always",
    ended: "always",
    note: "always",
    turn_id: "always",
    items: "always",
    embedded: "always",
    block: "always",
    spent: "maybe",
    told: "maybe",
  },
  handle: { handle: "always", tool: "always", state: "always", detail: "always" },
  mcp_tool: { server: "always", tool: "always", by: "always", look: "always" },
  turn: {
    turn_id: "always",
    state: "always",
    source: "always",
    internal: "always",
    content: "always",
    note: "always",
    continued_by: "always",
    items: "always",
    spent: "maybe",
  },
};

/** What every entry has. */
const COMMON: ReadonlySet<string> = new Set(["seq", "at", "type", "user_id", "thread_id", "changes"]);

/** What is wrong with it, in words. */
export function wrongForm(entry: JournalEntry): string | undefined {
  const { type } = entry;
  if (!Object.hasOwn(FORMS, type)) return `is of the type ${JSON.stringify(type)}, which there is not`;
  const form: Readonly<Record<string, "always" | "maybe">> = FORMS[type];
  const lacking = Object.keys(form).filter((field) => form[field] === "always" && !Object.hasOwn(entry, field));
  const strange = Object.keys(entry).filter((field) => !COMMON.has(field) && !Object.hasOwn(form, field));
  if (lacking.length === 0 && strange.length === 0) return undefined;
  return `is a ${type}${listed("without", lacking)}${listed("with", strange)}`;
}

function listed(word: string, fields: readonly string[]): string {
  return fields.length === 0 ? "" : ` ${word} ${fields.join(", ")}`;
}
