/**
 * A conversation as its journal has it: items in the order in which they came. What a carrier embeds stands beside the
 * items of its entry.
 */
import type { NotificationId } from "./ids.js";
import type { JsonObject } from "./json.js";
import type { Severity } from "./severity.js";
import type { ChatSource } from "./turn.js";

/** How a block of notifications is put into a request; see `providers/model.ts`. */
export const BLOCK_FORMS = ["developer", "system", "text"] as const;
export type BlockForm = (typeof BLOCK_FORMS)[number];

/** A notification as a carrier embeds it. */
export interface Embedded {
  readonly id: NotificationId;
  readonly revision: number;
  readonly kind: string;
  readonly severity: Severity;
  /** The whole text, or its beginning on one line. */
  readonly form: "full" | "line";
  readonly content: string;
}

/** The exact text in which a model was told, and how it was put into the request. Replayed as it is, for ever. */
export interface CarrierBlock {
  readonly text: string;
  readonly form: BlockForm;
}

/** A whole answer as its provider gave it, for that provider alone. */
export interface OriginalAnswer {
  readonly provider: string;
  readonly model: string;
  readonly parts: readonly JsonObject[];
}

export interface ChatRequest {
  readonly type: "chat_request";
  readonly content: string;
  readonly source: ChatSource;
  /** The steer that it consumes. */
  readonly steer?: number;
}

export interface ChatResponse {
  readonly type: "chat_response";
  readonly content: string;
  /** It was cut off; this is all that was said. */
  readonly truncated?: true;
  readonly original?: OriginalAnswer;
  readonly usage?: { readonly input: number; readonly output: number };
}

export interface ToolCallRequest {
  readonly type: "tool_call_request";
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
  /** Why its arguments could not be used. */
  readonly malformed?: string;
}

export interface ToolCallResponse {
  readonly type: "tool_call_response";
  readonly id: string;
  readonly name: string;
  readonly output: string;
  readonly is_error: boolean;
}

/** A user's words for the running turn, which has not taken them up yet. Its number is unique in its turn. */
export interface Steer {
  readonly type: "steer";
  readonly steer: number;
  readonly content: string;
}

/** What the agent said to the user from an internal turn. */
export interface ToldUser {
  readonly type: "told_user";
  readonly content: string;
}

export type Item = ChatRequest | ChatResponse | ToolCallRequest | ToolCallResponse | Steer | ToldUser;

/** Whether a model sees it; the rest is bookkeeping. */
export function isProviderVisible({ type }: Pick<ConversationEvent, "type"> | Item): boolean {
  return (
    type === "chat_request" || type === "chat_response" || type === "tool_call_request" || type === "tool_call_response"
  );
}

/** One notification in the serial form of the conversation stream: `level` is left out when it is info. */
export interface SystemNotification {
  kind: { source: string; name: string };
  level?: Exclude<Severity, "info">;
  message: string;
}

/** The conversation stream, as it is written out. */
export type ConversationEvent =
  | { type: "thread_started" }
  | { type: "turn_started"; turn_id: string; source: ChatSource; internal?: true }
  | { type: "chat_request"; content: string; source: ChatSource; notifications?: SystemNotification[] }
  | { type: "chat_response"; content: string; truncated?: true }
  | { type: "tool_call_request"; id: string; name: string; arguments: JsonObject }
  | {
      type: "tool_call_response";
      id: string;
      result: { Ok: string } | { Err: string };
      notifications?: SystemNotification[];
    }
  | ({ type: "system_notification_queued" } & SystemNotification)
  | { type: "turn_ended"; turn_id: string; state: string };

/** The kind of a type: split at its first dot. */
export function systemNotification(type: string, severity: Severity, message: string): SystemNotification {
  const dot = type.indexOf(".");
  const kind = dot < 0 ? { source: type, name: "" } : { source: type.slice(0, dot), name: type.slice(dot + 1) };
  return severity === "info" ? { kind, message } : { kind, level: severity, message };
}
