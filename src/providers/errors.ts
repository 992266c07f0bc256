/** What the SDKs throw, in the words of `ModelError`. */
import { AssertionError } from "../domain/errors.js";
import { systemClock } from "../platform/clock.js";
import { refusesRole } from "./capabilities.js";
import { ModelError, type ModelErrorKind } from "./model.js";

/** The error class that both SDKs have in the same shape. */
export interface ApiError extends Error {
  readonly status: number | undefined;
  readonly headers: Headers | undefined;
  readonly error: unknown;
}

export type ApiErrorClass = abstract new (...args: never[]) => ApiError;

/** Accounts without money: asking again does not help, whatever the status says. */
const NO_MONEY = /insufficient_quota|billing_error|billing_hard_limit|credit balance is too low/i;

export function modelError(error: unknown, who: string, apiErrors: ApiErrorClass, signal: AbortSignal): unknown {
  // Our own abort comes first: whatever broke because of it is no failure.
  if (signal.aborted) return new ModelError("aborted", `the request to ${who} was aborted`, { cause: error });
  if (error instanceof ModelError || error instanceof AssertionError) return error;
  if (error instanceof apiErrors) return fromApi(error, who);
  // A connection that breaks in the middle of a stream, and a chunk that was cut.
  if (error instanceof SyntaxError || (error instanceof TypeError && (error.message === "terminated" || error.cause)))
    return new ModelError("transient", `the answer of ${who} broke off: ${error.message}`, { cause: error });
  return error;
}

function fromApi(error: ApiError, who: string): ModelError {
  const said = `${error.message} ${wordsOf(error.error)}`;
  const kind = kindOf(error.status, said, error.error);
  const retry_after_ms = kind === "transient" ? retryAfter(error.headers) : undefined;
  const reason = error.status === undefined ? `cannot be reached, or broke off: ${error.message}` : error.message;
  return new ModelError(kind, `${who}: ${reason}`, {
    cause: error,
    rate_limited: kind === "transient" && isRateLimit(error.status, typeOf(error.error)),
    ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
  });
}

function kindOf(status: number | undefined, said: string, body: unknown): ModelErrorKind {
  if (status === undefined) return kindOfType(typeOf(body));
  if (refusesRole(status, said)) return "role_unsupported";
  if (status === 402 || NO_MONEY.test(said)) return "refused";
  if (status === 401 || status === 403) return "auth";
  if (status === 408 || status === 409 || status === 425 || status === 429 || status >= 500) return "transient";
  return "bad_request";
}

/** Too many calls, or a provider that has too many of everybody's. */
function isRateLimit(status: number | undefined, type: string | undefined): boolean {
  return status === 429 || status === 529 || isRateLimitType(type);
}

/** Of an error that came inside the stream. */
export function isRateLimitType(type: string | undefined): boolean {
  return type === "rate_limit_error" || type === "rate_limit_exceeded" || type === "overloaded_error";
}

/** Of an error that came inside the stream, where there is no status. A connection error has no type. */
export function kindOfType(type: string | undefined): ModelErrorKind {
  switch (type) {
    case "invalid_request_error":
    case "not_found_error":
    case "request_too_large":
    case "invalid_prompt":
      return "bad_request";
    case "authentication_error":
    case "permission_error":
      return "auth";
    case "billing_error":
    case "insufficient_quota":
      return "refused";
    default:
      return "transient";
  }
}

function typeOf(body: unknown): string | undefined {
  const inner = fieldOf(body, "error") ?? body;
  const type = fieldOf(inner, "type") ?? fieldOf(inner, "code");
  return typeof type === "string" ? type : undefined;
}

function wordsOf(body: unknown): string {
  return typeof body === "object" && body !== null ? JSON.stringify(body) : "";
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function retryAfter(headers: Headers | undefined): number | undefined {
  const exact = Number.parseFloat(headers?.get("retry-after-ms") ?? "");
  if (exact >= 0 && Number.isFinite(exact)) return Math.ceil(exact);
  const given = headers?.get("retry-after") ?? "";
  if (/^\d+(\.\d+)?$/.test(given)) return Math.ceil(Number(given) * 1_000);
  const date = Date.parse(given);
  return Number.isNaN(date) ? undefined : Math.max(0, date - systemClock.wall());
}
