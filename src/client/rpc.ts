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

export interface Endpoint {
  readonly url: string;
  readonly token: string;
}

interface RpcAnswer {
  result?: unknown;
  error?: { code: number; message: string; data?: Omit<ErrorReport, "message"> & { id?: string } };
}

export class RpcClient {
  readonly #endpoint: Endpoint;
  #id = 0;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** Throws what went wrong; a miss is an answer. */
  async call<Result>(method: string, params: object): Promise<Result | Miss> {
    this.#id += 1;
    const id = this.#id;
    const { result, error } = (await this.post("/rpc", { jsonrpc: "2.0", id, method, params })) as RpcAnswer;
    if (error === undefined) return result as Result;
    const { message, data } = error;
    if (data?.id !== undefined && isMissCode(data.reason)) return { miss: data.reason, id: data.id, message };
    throw errorOf({ code: "internal", ...data, message });
  }

  /** The answer's JSON, also where its status is an error's: the body says what it is. */
  async post(path: string, body: unknown): Promise<unknown> {
    const { url, token } = this.#endpoint;
    let response: Response;
    let text: string;
    try {
      response = await fetch(new URL(path, url), {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      text = await response.text();
    } catch (error) {
      throw new UnreachableError(`${url} does not answer: ${causeOf(error)}`, error);
    }
    let answer: unknown;
    try {
      answer = JSON.parse(text === "" ? "null" : text);
    } catch (error) {
      throw new UnreachableError(`${url} answers ${response.status} and no JSON: is it a Tidings server?`, error);
    }
    const refused = answer as { error?: ErrorReport } | null;
    if (path !== "/rpc" && !response.ok && refused?.error !== undefined) throw errorOf(refused.error);
    return answer;
  }
}

function isMissCode(reason: string | undefined): reason is MissCode {
  return (MISS_CODES as readonly (string | undefined)[]).includes(reason);
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

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
