/** Errors as the wire shows them. Codes and `data` are the contract, the text is not. */
import {
  AccessError,
  type ErrorCode,
  type ErrorReport,
  errorReport,
  InvalidInputError,
  isMiss,
  type Miss,
  OverloadedError,
  TidingsError,
} from "../domain/errors.js";
import type { Cursor } from "./cursor.js";
import { CLOSE, type CloseCode } from "./transport.js";

export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  overloaded: -32001,
  unauthorized: -32002,
  forbidden: -32003,
  notFound: -32004,
  conflict: -32009,
} as const;

/** How long somebody waits for whom another program holds the storage. */
const BUSY_RETRY_MS = 1_000;

type Code = ErrorCode | "internal";

const RPC_CODES: Record<Code, number> = {
  invalid_input: RPC.invalidParams,
  not_found: RPC.notFound,
  conflict: RPC.conflict,
  unauthorized: RPC.unauthorized,
  forbidden: RPC.forbidden,
  too_large: RPC.invalidRequest,
  overloaded: RPC.overloaded,
  unreachable: RPC.internal,
  closed: RPC.internal,
  read_only: RPC.internal,
  store_busy: RPC.overloaded,
  store_full: RPC.internal,
  store_io: RPC.internal,
  store_corrupt: RPC.internal,
  store_newer: RPC.internal,
  store_unsupported: RPC.internal,
  internal: RPC.internal,
};

const HTTP_STATUS: Record<Code, number> = {
  invalid_input: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  overloaded: 429,
  store_busy: 503,
  closed: 503,
  read_only: 503,
  store_full: 503,
  store_io: 503,
  store_corrupt: 503,
  store_newer: 503,
  store_unsupported: 503,
  unreachable: 503,
  internal: 500,
};

export interface RpcError {
  code: number;
  message: string;
  data: Omit<ErrorReport, "message"> & { id?: string; cursor?: Cursor };
}

export function rpcErrorOf(error: unknown): RpcError {
  if (isMiss(error)) return rpcErrorOfMiss(error);
  const { message, ...data } = publicReport(error);
  return { code: RPC_CODES[data.code], message, data };
}

/** Nothing was changed, and why: `not_found`, or a conflict with what is stored. */
function rpcErrorOfMiss({ miss, id, message }: Miss): RpcError {
  const code = miss === "not_found" ? "not_found" : "conflict";
  return { code: RPC_CODES[code], message, data: { code, reason: miss, id } };
}

export function httpStatusOf(error: unknown): number {
  return HTTP_STATUS[errorReport(error).code];
}

/** A defect of ours is told in the log; the caller gets no more than that it happened. */
export function publicReport(error: unknown): ErrorReport {
  const report = errorReport(error);
  if (report.code === "internal") return { code: "internal", message: "an error of the server itself; see its log" };
  return report.code === "store_busy" ? { ...report, retry_after_ms: BUSY_RETRY_MS } : report;
}

/** Why a stream ends, as its last line says it; with a cursor, from where to go on. */
export function endingError(code: CloseCode, reason: string, cursor?: Cursor): RpcError {
  const told = rpcErrorOf(endOf(code, reason));
  // What is too long is not read to where it would be JSON.
  const error = code === CLOSE.tooLarge ? { ...told, code: RPC.parseError } : told;
  return cursor === undefined ? error : { ...error, data: { ...error.data, cursor } };
}

function endOf(code: CloseCode, reason: string): Error {
  switch (code) {
    case CLOSE.policy:
      return new AccessError("unauthorized", reason);
    case CLOSE.tooSlow:
      return new OverloadedError(reason, 0);
    case CLOSE.tooLarge:
    case CLOSE.notText:
      return new InvalidInputError("", reason);
    case CLOSE.internal:
      return new Error(reason);
    case CLOSE.done:
    case CLOSE.goingAway:
      return new TidingsError("closed", reason);
  }
}
