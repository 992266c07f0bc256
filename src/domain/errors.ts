/**
 * Throwables. An expected outcome is a value (`Miss`); what is here is bad input, a conflict, or the environment.
 * `retryable` says whether the same call may succeed later without anything being changed.
 */

export const MISS_CODES = ["stale_lease", "stale_revision", "wrong_channel", "terminal", "not_found"] as const;
export type MissCode = (typeof MISS_CODES)[number];

/** Nothing was changed, and why. */
export interface Miss {
  readonly miss: MissCode;
  readonly id: string;
  readonly message: string;
}

export function isMiss(answer: unknown): answer is Miss {
  return typeof answer === "object" && answer !== null && "miss" in answer;
}

export type ErrorCode =
  | "invalid_input"
  | "not_found"
  | "conflict"
  | "unauthorized"
  | "forbidden"
  | "too_large"
  | "overloaded"
  | "unreachable"
  | "closed"
  | "read_only"
  | "store_busy"
  | "store_full"
  | "store_io"
  | "store_corrupt"
  | "store_newer"
  | "store_unsupported";

export class TidingsError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = "TidingsError";
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}

/** The caller sent something that is not of the documented form; nothing was stored. */
export class InvalidInputError extends TidingsError {
  readonly field: string;
  readonly reason: string;

  constructor(field: string, reason: string) {
    super("invalid_input", `${field === "" ? "input" : field}: ${reason}`);
    this.name = "InvalidInputError";
    this.field = field;
    this.reason = reason;
  }
}

/** What was named does not exist, or is another user's: the two cannot be told apart from outside. */
export class NotFoundError extends TidingsError {
  constructor(what: string, id: string) {
    super("not_found", `no ${what} ${JSON.stringify(id)}; check the id, and that it belongs to this user`);
    this.name = "NotFoundError";
  }
}

/** The input contradicts what is stored. */
export class ConflictError extends TidingsError {
  readonly reason:
    | "idempotency_mismatch"
    | "replayed"
    | "thread_closed"
    | "thread_held"
    | "thread_paused"
    | "turn_active"
    | "turn_not_active"
    | "no_agent"
    | "cursor_too_old";

  constructor(reason: ConflictError["reason"], message: string) {
    super("conflict", message);
    this.name = "ConflictError";
    this.reason = reason;
  }
}

/** The caller has not said who it is, or may not do that. Nothing was done. */
export class AccessError extends TidingsError {
  constructor(code: Extract<ErrorCode, "unauthorized" | "forbidden">, message: string) {
    super(code, message);
    this.name = "AccessError";
  }
}

/** More came than is taken in at once. Nothing of it was stored. */
export class TooLargeError extends TidingsError {
  constructor(message: string) {
    super("too_large", message);
    this.name = "TooLargeError";
  }
}

/** Over the rate, or too much waits already. Nothing of it was stored; the same may be sent again after a while. */
export class OverloadedError extends TidingsError {
  readonly retry_after_ms: number;

  constructor(message: string, retry_after_ms: number) {
    super("overloaded", message, { retryable: true });
    this.name = "OverloadedError";
    this.retry_after_ms = retry_after_ms;
  }
}

/**
 * - `unsent`: no connection was made, so nothing was asked for
 * - `lost`: the connection ended before the answer: what was asked for was done, or not
 * - `late`: there was no answer in time; the same is true
 * - `foreign`: what answered is no Tidings
 */
export type UnreachableReason = "unsent" | "lost" | "late" | "foreign";

/** The server cannot be reached, or what answered is none. */
export class UnreachableError extends TidingsError {
  readonly why: UnreachableReason;

  constructor(message: string, options: { why?: UnreachableReason; cause?: unknown } = {}) {
    super("unreachable", message, { retryable: true, cause: options.cause });
    this.name = "UnreachableError";
    this.why = options.why ?? "unsent";
  }
}

/** The environment failed: a full disk, a locked or broken database, a folder that cannot be written. */
export class StoreError extends TidingsError {
  constructor(code: Extract<ErrorCode, `store_${string}` | "read_only">, message: string, cause?: unknown) {
    super(code, message, { retryable: code === "store_busy", cause });
    this.name = "StoreError";
  }
}

/** An error as the wire and `--json` show it. */
export interface ErrorReport {
  code: ErrorCode | "internal";
  message: string;
  field?: string;
  reason?: string;
  retry_after_ms?: number;
}

export function errorReport(error: unknown): ErrorReport {
  if (!(error instanceof TidingsError))
    return { code: "internal", message: error instanceof Error ? error.message : String(error) };
  const { code, message } = error;
  if (error instanceof InvalidInputError) return { code, message, field: error.field, reason: error.reason };
  if (error instanceof ConflictError) return { code, message, reason: error.reason };
  if (error instanceof OverloadedError) return { code, message, retry_after_ms: error.retry_after_ms };
  return { code, message };
}

/** A broken promise of our own code. It is never caught to go on. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

export function unreachable(value: never): never {
  throw new AssertionError(`unreachable: ${JSON.stringify(value)}`);
}
