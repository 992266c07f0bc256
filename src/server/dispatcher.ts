/** One way in for every transport: finds the method, asks whether the caller may, checks the form, runs it. */
import { InvalidInputError, isMiss, OverloadedError, TidingsError } from "../domain/errors.js";
import { parseInput } from "../domain/parse.js";
import type { Caller } from "./access.js";
import { JsonShapeError, parseJson } from "./json.js";
import type { ServerLimits } from "./limits.js";
import type { OnDefect } from "./log.js";
import type { Method, Runtime, Session } from "./method.js";
import { canonicalName, METHODS } from "./methods.js";
import type { RateLimit } from "./rate.js";
import { RPC, type RpcError, rpcErrorOf } from "./wire.js";

export type RpcId = string | number | null;

export type Refusal = { jsonrpc: "2.0"; id: RpcId; error: RpcError };
export type RpcResponse = { jsonrpc: "2.0"; id: RpcId; result: unknown } | Refusal;

interface Call {
  readonly id: RpcId | undefined;
  readonly method: string;
  readonly params: unknown;
}

/** Whose calls these are, and where their answers go. */
interface Calling {
  readonly caller: Caller;
  /** How large the answer should be at most. */
  readonly bytesMax: number;
  readonly gone: AbortSignal;
  readonly session: Session | null;
  /** Of the request that they came with, or that opened their stream; null where there was none. */
  readonly request_id: string | null;
  /** Its answer waits for those of others. */
  readonly batched?: boolean;
}

/** So many calls of a batch run at the same time. */
const SLICE = 20;
const RETRY_MS = 100;

export class Dispatcher {
  readonly #methods = new Map<string, Method>(METHODS.map((method) => [method.name, method]));
  readonly #runtime: Runtime;
  readonly #rate: RateLimit;
  readonly #limits: ServerLimits;
  readonly #onDefect: OnDefect;

  constructor(runtime: Runtime, rate: RateLimit, limits: ServerLimits, onDefect: OnDefect) {
    this.#runtime = runtime;
    this.#rate = rate;
    this.#limits = limits;
    this.#onDefect = onDefect;
  }

  /** A message as it came: a call, a notification, or a batch. Undefined if nothing is to be answered. */
  async answer(text: Uint8Array, calling: Calling): Promise<RpcResponse | RpcResponse[] | undefined> {
    const { caller } = calling;
    let message: unknown;
    try {
      message = parseJson(text, this.#limits);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      const isShape = error instanceof JsonShapeError;
      const id = isShape ? idOf(error.value) : null;
      const code = isShape ? RPC.invalidRequest : RPC.parseError;
      return this.#overRate(caller, 1, id) ?? refusal(id, code, error.field, error.reason);
    }
    if (!Array.isArray(message)) return this.#one(message, calling);
    if (message.length === 0)
      return this.#overRate(caller, 1, null) ?? refusal(null, RPC.invalidRequest, "", "the batch is empty");
    const { callsPerBatch } = this.#limits;
    if (message.length > callsPerBatch) {
      const reason = `a batch holds at most ${callsPerBatch} calls`;
      return this.#overRate(caller, callsPerBatch, null) ?? refusal(null, RPC.invalidRequest, "", reason);
    }
    const said = await this.#batch(message, calling);
    return said.length === 0 ? undefined : said;
  }

  /** Whatever a client sends costs of its rate, also what is no call. Answers after how many milliseconds it could be taken. */
  charge(caller: Caller, cost: number): number {
    return this.#rate.take(caller.token_id ?? "", cost);
  }

  #overRate(caller: Caller, cost: number, id: RpcId): Refusal | undefined {
    const waitMs = this.charge(caller, cost);
    return waitMs === 0 ? undefined : { jsonrpc: "2.0", id, error: rpcErrorOf(tooMany(waitMs)) };
  }

  /** Some at a time: when the answers are large already, the calls that are left are refused and not run. */
  async #batch(messages: readonly unknown[], calling: Calling): Promise<RpcResponse[]> {
    const said: RpcResponse[] = [];
    let left = calling.bytesMax;
    for (let start = 0; start < messages.length; start += SLICE) {
      const slice = messages.slice(start, start + SLICE);
      const share = { ...calling, bytesMax: left / slice.length, batched: messages.length > 1 };
      for (const answer of await Promise.all(slice.map((one) => this.#one(one, share)))) {
        if (answer === undefined) continue;
        said.push(answer);
        left -= JSON.stringify(answer).length;
      }
    }
    return said;
  }

  async #one(message: unknown, calling: Calling): Promise<RpcResponse | undefined> {
    const call = callOf(message);
    if ("error" in call) return this.#overRate(calling.caller, 1, call.id) ?? call;
    const { id } = call;
    try {
      const result = await this.#run(call, calling);
      if (id === undefined) return undefined;
      return isMiss(result)
        ? { jsonrpc: "2.0", id, error: rpcErrorOf(result) }
        : { jsonrpc: "2.0", id, result: result ?? null };
    } catch (error) {
      const { request_id } = calling;
      if (!(error instanceof TidingsError)) this.#onDefect(error, { request_id, method: call.method });
      return id === undefined ? undefined : { jsonrpc: "2.0", id, error: errorOf(error) };
    }
  }

  async #run({ method: name, params }: Call, calling: Calling): Promise<unknown> {
    const { caller, bytesMax, session } = calling;
    const waitMs = this.charge(caller, 1);
    if (waitMs > 0) throw tooMany(waitMs);
    const method = this.#methods.get(canonicalName(name));
    if (method === undefined) throw new UnknownMethodError(name);
    caller.mustHave(method.scope);
    if (bytesMax <= 0) throw new OverloadedError("the answers of the batch are large enough already", RETRY_MS);
    if (typeof params !== "object" || params === null || Array.isArray(params))
      throw new InvalidInputError("params", "must be an object");
    const parsed = parseInput(method.params, params);
    // What is told on a stream waits for the answers of calls that announce something.
    if (session !== null && calling.batched === true && waits(parsed))
      throw new InvalidInputError("wait_ms", "a call that waits holds up the others of its batch; send it by itself");
    const { announced } = method;
    if (announced !== undefined) session?.announcing(announced);
    const result = await method.run(parsed, { ...calling, runtime: this.#runtime });
    if (announced !== undefined) await session?.announce(announced, result);
    return result;
  }
}

function tooMany(waitMs: number): OverloadedError {
  return new OverloadedError("more calls than this token may make; slow down", waitMs);
}

function waits(params: unknown): boolean {
  const { wait_ms } = params as { wait_ms?: number };
  return wait_ms !== undefined && wait_ms > 0;
}

class UnknownMethodError extends TidingsError {
  constructor(name: string) {
    super("not_found", `there is no method ${JSON.stringify(name.slice(0, 100))}`);
  }
}

function errorOf(error: unknown): RpcError {
  const told = rpcErrorOf(error);
  return error instanceof UnknownMethodError ? { ...told, code: RPC.methodNotFound } : told;
}

export function refusal(id: RpcId, code: number, field: string, reason: string): Refusal {
  const message = field === "" ? reason : `${field}: ${reason}`;
  return { jsonrpc: "2.0", id, error: { code, message, data: { code: "invalid_input", field, reason } } };
}

/** Of what may be no call at all; null where it has none. */
export function idOf(message: unknown): RpcId {
  if (typeof message !== "object" || message === null || !("id" in message)) return null;
  const { id } = message;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

/** `jsonrpc` may be absent. A call without an `id` is a notification: it is run, and not answered. */
function callOf(message: unknown): Call | Refusal {
  if (typeof message !== "object" || message === null || Array.isArray(message))
    return refusal(null, RPC.invalidRequest, "", "must be a JSON-RPC call: an object with `method` and `params`");
  const { jsonrpc, id, method, params } = message as Record<string, unknown>;
  const isId = id === undefined || id === null || typeof id === "string" || typeof id === "number";
  if (!isId) return refusal(null, RPC.invalidRequest, "id", "must be a string, a number or null");
  const known = id ?? null;
  if (jsonrpc !== undefined && jsonrpc !== "2.0") return refusal(known, RPC.invalidRequest, "jsonrpc", 'must be "2.0"');
  if (typeof method !== "string") return refusal(known, RPC.invalidRequest, "method", "must be a string");
  return { id: Object.hasOwn(message, "id") ? known : undefined, method, params: params ?? {} };
}
