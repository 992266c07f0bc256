/** A model, whoever serves it: a conversation in neutral words goes in, a stream of events comes out. */
import type { JsonObject } from "../domain/json.js";

/**
 * How a block of notifications is put into a request: as a message of the operator (`developer`, `system`), or as text
 * of the user's side. Recorded with the carrier, and replayed for ever.
 */
export type BlockForm = "developer" | "system" | "text";

export interface Block {
  readonly text: string;
  readonly form: BlockForm;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
}

export interface ToolResult {
  /** Of the call that it answers. */
  readonly id: string;
  readonly name: string;
  readonly output: string;
  readonly is_error: boolean;
}

export interface UserMessage {
  readonly role: "user";
  /** A user's words, or the sentence that opens a turn of the system. */
  readonly text: string;
  readonly block?: Block;
}

/**
 * A whole answer as its provider gave it, with the parts that only the same model can read (its reasoning). Kept and
 * sent back as it is, to that model; any other gets the text and the calls.
 */
export interface Original {
  readonly provider: string;
  readonly model: string;
  readonly parts: readonly JsonObject[];
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly text: string;
  readonly calls: readonly ToolCall[];
  /** From the `end` of this answer, if there was one. */
  readonly original?: Original;
  /** The answer was cut off; what is here is all that was said. */
  readonly truncated?: boolean;
}

export interface ToolsMessage {
  readonly role: "tools";
  /** All results of one batch, in the order of its calls. */
  readonly results: readonly ToolResult[];
  readonly block?: Block;
}

export type Message = UserMessage | AssistantMessage | ToolsMessage;

export interface ToolDeclaration {
  readonly name: string;
  readonly description: string;
  /** A JSON schema. */
  readonly input_schema: JsonObject;
}

export interface ModelRequest {
  readonly system: string;
  readonly tools: readonly ToolDeclaration[];
  readonly messages: readonly Message[];
  /** Of the answer. */
  readonly max_tokens?: number;
  readonly signal: AbortSignal;
  /** Is told what the provider says beside its answer, where the model knows of it; a model need not call it. */
  readonly report?: (report: ModelReport) => void;
}

/** One of the limits that a provider sets to calls, as the headers of its response say. */
export interface RateLimit {
  /** `requests`, `tokens`, `input tokens`, `output tokens`. */
  readonly what: string;
  readonly limit: number;
  readonly remaining: number;
  /** When it begins again; null if the provider does not say. */
  readonly reset_at: number | null;
}

export type ModelReport =
  /** What the answer has used so far: it counts if the answer is cut off before its end. */
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "limits"; readonly limits: readonly RateLimit[] };

export interface Usage {
  readonly input: number;
  readonly output: number;
}

export type ModelEvent =
  /** The newest block went out in another form than it asks for, and was accepted: record this one. Before `started`. */
  | { readonly type: "downgraded"; readonly form: BlockForm }
  /** The provider began to answer: the request, and the block in it, has arrived. */
  | { readonly type: "started" }
  | { readonly type: "text"; readonly delta: string }
  /** Whole calls only, after all text. `malformed`: why the arguments cannot be used; the input is then empty. */
  | { readonly type: "call"; readonly call: ToolCall; readonly malformed?: string }
  /** Always the last. `length`: cut off by a limit; a call that was half made is left out. */
  | {
      readonly type: "end";
      readonly reason: "end" | "calls" | "length" | "other";
      readonly usage: Usage | null;
      /** To be kept with the answer. */
      readonly original?: Original;
    };

export interface Model {
  readonly provider: string;
  readonly model: string;
  /** How a new block should be put after a user's message or after tool results. */
  form(): BlockForm;
  /** Streams one answer, or throws a `ModelError`. */
  stream(request: ModelRequest): AsyncIterable<ModelEvent>;
}

/**
 * - `transient`: the same request may succeed later
 * - `refused`: the provider understood and declines: policy, or an account without money
 * - `role_unsupported`: a role of the request is refused, and there is no other form to try
 * - `aborted`: our own signal; nobody retries it
 * - `bad_request`: the request, the model's name or the address is wrong
 * - `auth`: no key, or one that is not accepted
 * - `missing_sdk`: the provider's package is not installed
 */
export type ModelErrorKind =
  | "transient"
  | "refused"
  | "role_unsupported"
  | "aborted"
  | "bad_request"
  | "auth"
  | "missing_sdk";

export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly kind: ModelErrorKind;
  /** How long the provider asks to be left alone. */
  readonly retry_after_ms?: number;
  /** The provider has had too many calls, or is overloaded. */
  readonly rate_limited: boolean;

  constructor(
    kind: ModelErrorKind,
    message: string,
    options: { retry_after_ms?: number; rate_limited?: boolean; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.kind = kind;
    this.rate_limited = options.rate_limited ?? false;
    if (options.retry_after_ms !== undefined) this.retry_after_ms = options.retry_after_ms;
  }
}
