/** JSON-RPC over HTTP: a call, its answer, or the error that the library would have thrown. */
import {
  AccessError,
  ConflictError,
  type ErrorReport,
  InvalidInputError,
  MISS_CODES,
  type Miss,
  type MissCode,
  OverloadedError,
  TidingsError,
  TooLargeError,
  UnreachableError,
} from "../domain/errors.js";
import { later } from "../platform/timers.js";

export interface Endpoint {
  readonly url: string;
  readonly token: string;
}

export interface RpcAnswer {
  readonly result?: unknown;
  readonly error?: { code: number; message: string; data?: Omit<ErrorReport, "message"> & { id?: string } };
}

/** A server that takes longer is stopped, or has too much to do to be of use. */
const ANSWER_MS = 30_000;

export interface CallOptions {
  /** How long the answer may take; without it half a minute. */
  readonly answerMs?: number;
  /** The connection is not kept for the next call: a server that ends closes those that are quiet. */
  readonly hangUp?: boolean;
  /** Ends the waiting; what was asked for may be done, or not. */
  readonly signal?: AbortSignal;
}

export class RpcClient {
  readonly #endpoint: Endpoint;
  #id = 0;
  #answers = 0;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** How many requests have been answered. */
  get answers(): number {
    return this.#answers;
  }

  /** Throws what went wrong; a miss is an answer. */
  async call<Result>(method: string, params: object, options: CallOptions = {}): Promise<Result | Miss> {
    this.#id += 1;
    const id = this.#id;
    const answer = (await this.post("/rpc", { jsonrpc: "2.0", id, method, params }, options)) as RpcAnswer;
    if (answer.result === undefined && typeof answer.error?.code !== "number")
      throw this.#foreign("without a result or an error");
    return resultOf(answer);
  }

  /** The answer's JSON, also where its status is an error's: the body says what it is. */
  async post(path: string, body: unknown, options: CallOptions = {}): Promise<unknown> {
    const { status, text } = await this.#send(path, body, options);
    const answer = jsonOf(text);
    if (typeof answer !== "object" || answer === null) throw this.#foreign(`${status} and no JSON`);
    this.#answers += 1;
    if (path === "/rpc" || status < 400) return answer;
    throw reportedError(answer) ?? this.#foreign(String(status));
  }

  #foreign(what: string): UnreachableError {
    return new UnreachableError(`${this.#endpoint.url} answers ${what}; is it a Tidings server?`, { why: "foreign" });
  }

  async #send(
    path: string,
    body: unknown,
    { answerMs = ANSWER_MS, hangUp = false, signal }: CallOptions,
  ): Promise<{ status: number; text: string }> {
    const { url, token } = this.#endpoint;
    const late = new AbortController();
    const cancel = Number.isFinite(answerMs) ? later(answerMs, () => late.abort()) : () => {};
    const giveUp = () => late.abort();
    signal?.addEventListener("abort", giveUp);
    try {
      const response = await fetch(new URL(path, url), {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          ...(hangUp ? { connection: "close" } : {}),
        },
        body: JSON.stringify(body),
        signal: late.signal,
      });
      return { status: response.status, text: await response.text() };
    } catch (error) {
      signal?.throwIfAborted();
      if (late.signal.aborted)
        throw new UnreachableError(`${url} did not answer within ${answerMs / 1_000} s; is it stopped?`, {
          why: "late",
        });
      const why = isUnconnected(error) ? "unsent" : "lost";
      const done = why === "lost" ? "; what it was asked to do may be done, or not" : "";
      throw new UnreachableError(`${url} does not answer: ${causeOf(error)}${done}`, { why, cause: error });
    } finally {
      cancel();
      signal?.removeEventListener("abort", giveUp);
    }
  }
}

/** Throws what went wrong; a miss is an answer. */
export function resultOf<Result>({ result, error }: RpcAnswer): Result | Miss {
  if (error === undefined) return result as Result;
  const { message, data } = error;
  if (data?.id !== undefined && isMissCode(data.reason)) return { miss: data.reason, id: data.id, message };
  throw errorOf({ code: "internal", ...data, message });
}

const UNCONNECTED = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];

/** The server cannot have seen the request. */
function isUnconnected(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if ("code" in cause && typeof cause.code === "string" && UNCONNECTED.includes(cause.code)) return true;
  return false;
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isMissCode(reason: string | undefined): reason is MissCode {
  return (MISS_CODES as readonly (string | undefined)[]).includes(reason);
}

/** The error that the body of a refusal speaks of; undefined where it is none of ours. */
export function reportedError(body: unknown): Error | undefined {
  const { error } = (body ?? {}) as { error?: ErrorReport };
  return typeof error?.code === "string" ? errorOf(error) : undefined;
}

/** The error of the library that the report speaks of. */
export function errorOf(report: ErrorReport): Error {
  const { code, message, field = "", reason = "" } = report;
  switch (code) {
    case "invalid_input":
      return new InvalidInputError(field, reason === "" ? message : reason);
    case "conflict":
      return new ConflictError(reason as ConflictError["reason"], message);
    case "unauthorized":
    case "forbidden":
      return new AccessError(code, message);
    case "too_large":
      return new TooLargeError(message);
    case "overloaded":
      return new OverloadedError(message, report.retry_after_ms ?? 0);
    case "internal":
      return new Error(message);
    default:
      return new TidingsError(code, message);
  }
}

/** What there is to say of a request that failed. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
