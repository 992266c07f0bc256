/** What all served models have in common: render, check, send, downgrade once, and say what went wrong. */
import { type Api, capabilitiesOf } from "./capabilities.js";
import type { Downgrades } from "./downgrades.js";
import { type ApiErrorClass, modelError } from "./errors.js";
import { type BlockForm, type Model, ModelError, type ModelEvent, type ModelRequest } from "./model.js";
import { rateLimitsOf } from "./rate_limits.js";

/** The answer has begun: what comes of it, and the headers before it. */
export interface Sent<Chunk> {
  readonly data: AsyncIterable<Chunk>;
  readonly response: Pick<Response, "headers">;
}

/** One way of talking to a server. */
export interface Protocol<Body, Chunk> {
  readonly provider: string;
  readonly api: Api;
  readonly endpoint: string;
  readonly errors: ApiErrorClass;
  /** The request with blocks in this form at most: one that was recorded as text stays text. */
  render(request: ModelRequest, form: BlockForm): Body;
  /** An `AssertionError` if the body breaks a rule of the API. */
  validate(body: Body): void;
  send(body: Body, signal: AbortSignal): Promise<Sent<Chunk>>;
  /** The events of the answer, `started` first; transient if it ends before its end. */
  read(chunks: AsyncIterable<Chunk>, request: ModelRequest): AsyncIterable<ModelEvent>;
}

export class RemoteModel<Body, Chunk> implements Model {
  readonly provider: string;
  readonly model: string;
  readonly #protocol: Protocol<Body, Chunk>;
  readonly #downgrades: Downgrades;

  constructor(model: string, protocol: Protocol<Body, Chunk>, downgrades: Downgrades) {
    this.provider = protocol.provider;
    this.model = model;
    this.#protocol = protocol;
    this.#downgrades = downgrades;
  }

  form(): BlockForm {
    const { api, endpoint } = this.#protocol;
    return this.#downgrades.form(endpoint, this.model) ?? capabilitiesOf(api, this.model).block;
  }

  async *stream(request: ModelRequest): AsyncGenerator<ModelEvent, void, undefined> {
    let form = this.form();
    try {
      try {
        yield* this.#attempt(request, form);
      } catch (error) {
        if (!this.#isRoleRefusal(error, request) || form === "text" || !hasOperatorBlock(request)) throw error;
        form = "text";
        yield* this.#attempt(request, form);
      }
    } catch (error) {
      throw this.#explained(error, request);
    }
  }

  async *#attempt(request: ModelRequest, form: BlockForm): AsyncGenerator<ModelEvent, void, undefined> {
    const { signal } = request;
    if (signal.aborted) throw new ModelError("aborted", `the request to ${this.#who()} was aborted`);
    const body = this.#protocol.render(request, form);
    this.#protocol.validate(body);
    const { data, response } = await this.#protocol.send(body, signal);
    const limits = rateLimitsOf(response.headers);
    if (limits.length > 0) request.report?.({ type: "limits", limits });
    for await (const event of this.#protocol.read(data, request)) {
      if (event.type === "started") yield* this.#accepted(request, form);
      // The SDKs end a stream quietly when it is aborted; an answer is whole only with its end.
      if (signal.aborted) throw new ModelError("aborted", `the answer of ${this.#who()} was aborted`);
      yield event;
    }
  }

  /** The request was taken in this form: learned, and told if the newest block asked for another. */
  *#accepted(request: ModelRequest, form: BlockForm): Generator<ModelEvent, void, undefined> {
    if (form !== this.form()) this.#downgrades.remember({ endpoint: this.#protocol.endpoint, model: this.model, form });
    const newest = request.messages.at(-1);
    const asked = newest === undefined || newest.role === "assistant" ? undefined : newest.block?.form;
    if (asked !== undefined && asked !== effectiveForm(asked, form)) yield { type: "downgraded", form };
  }

  #isRoleRefusal(error: unknown, request: ModelRequest): boolean {
    const explained = this.#explained(error, request);
    return explained instanceof ModelError && explained.kind === "role_unsupported";
  }

  #explained(error: unknown, request: ModelRequest): unknown {
    return modelError(error, this.#who(), this.#protocol.errors, request.signal);
  }

  #who(): string {
    return `${this.provider} (${this.model} at ${this.#protocol.endpoint})`;
  }
}

/** What was recorded as text stays so; a message of the operator takes the form that this model knows. */
export function effectiveForm(recorded: BlockForm, form: BlockForm): BlockForm {
  return recorded === "text" ? "text" : form;
}

function hasOperatorBlock(request: ModelRequest): boolean {
  return request.messages.some(
    (message) => message.role !== "assistant" && message.block !== undefined && message.block.form !== "text",
  );
}
