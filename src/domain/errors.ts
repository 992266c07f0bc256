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
  readonly reason: "idempotency_mismatch" | "thread_closed" | "cursor_too_old";

  constructor(reason: ConflictError["reason"], message: string) {
    super("conflict", message);
    this.name = "ConflictError";
    this.reason = reason;
  }
}

/** The environment failed: a full disk, a locked or broken database, a folder that cannot be written. */
export class StoreError extends TidingsError {
  constructor(code: Extract<ErrorCode, `store_${string}` | "read_only">, message: string, cause?: unknown) {
    super(code, message, { retryable: code === "store_busy", cause });
    this.name = "StoreError";
  }
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
