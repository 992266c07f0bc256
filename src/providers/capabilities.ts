/**
 * Which model can do what, as data; first match wins. Support drifts: a row that promises too much costs one refused
 * request, after which the model is downgraded for as long as the process lives (`downgrades.ts`).
 */
import { assert } from "../domain/errors.js";
import type { BlockForm } from "./model.js";

export type Api = "responses" | "chat" | "messages";

export interface Capabilities {
  /** How a block of notifications is put. */
  readonly block: BlockForm;
  /** The field that bounds the answer. */
  readonly limit: "max_output_tokens" | "max_completion_tokens" | "max_tokens";
  /** The bound where the request names none and the API wants one. */
  readonly max_tokens: number | null;
  /** Gives its reasoning out to be sent back, if asked; other models refuse the question. */
  readonly reasoning?: true;
}

interface Row extends Capabilities {
  readonly api: Api;
  readonly model: RegExp;
}

const ROWS: readonly Row[] = [
  // The API turns `system` and `developer` into whichever the model knows. Only these two know neither.
  { api: "responses", model: /^o1-(preview|mini)/, block: "text", limit: "max_output_tokens", max_tokens: null },
  {
    api: "responses",
    model: /^(o[1-9]|gpt-([5-9]|\d\d))(?!.*-chat)/,
    block: "developer",
    limit: "max_output_tokens",
    max_tokens: null,
    reasoning: true,
  },
  { api: "responses", model: /^/, block: "developer", limit: "max_output_tokens", max_tokens: null },

  // OpenAI's own models behind another address (a gateway). Whatever else is there, its chat template decides about
  // roles, and many templates refuse, drop or confuse a late one.
  {
    api: "chat",
    model: /^(openai\/)?(gpt-(3\.5|[4-9])|o1(?!-preview|-mini)|o[3-9](-|$))/,
    block: "developer",
    limit: "max_completion_tokens",
    max_tokens: null,
  },
  { api: "chat", model: /^/, block: "text", limit: "max_tokens", max_tokens: null },

  // `system` in the middle of a conversation came with Opus 4.8. From then on thinking counts into the bound, and is
  // often on by itself.
  {
    api: "messages",
    model: /^claude-(opus-4-(8|9|\d\d)(?!\d)|(opus|sonnet|haiku|fable|mythos)-[5-9](?!\d))/,
    block: "system",
    limit: "max_tokens",
    max_tokens: 32_000,
  },
  { api: "messages", model: /^claude-3-(opus|sonnet|haiku)/, block: "text", limit: "max_tokens", max_tokens: 4_096 },
  { api: "messages", model: /^/, block: "text", limit: "max_tokens", max_tokens: 8_192 },
];

export function capabilitiesOf(api: Api, model: string): Capabilities {
  const row = ROWS.find((candidate) => candidate.api === api && candidate.model.test(model));
  assert(row !== undefined, `no capabilities for ${api}`);
  return row;
}

/** How providers say that they do not take a role, or not at that place. */
const ROLE_REFUSALS: readonly RegExp[] = [
  /role '(system|developer)' is not supported/i,
  /unexpected role "?(system|developer)/i,
  /role'? does not support '(system|developer)'/i,
  /invalid role '?"?(system|developer)/i,
  /'?(system|developer)'? is not one of \[/i,
  /\.role: input should be 'user' or 'assistant'/i,
  /system message must be at the beginning/i,
  /system role not supported/i,
  /unexpected message role/i,
  /incorrect role information/i,
  /roles must alternate/i,
];

/** Whether an answer with this status and text says so. Servers that run a chat template answer 500 when it gives up. */
export function refusesRole(status: number, message: string): boolean {
  return (status === 400 || status === 422 || status === 500) && ROLE_REFUSALS.some((words) => words.test(message));
}
