import { ConflictError, InvalidInputError, type Miss, TidingsError } from "../domain/errors.js";

/** What a script can rely on; shown by `tidings --help`. */
export const EXIT = {
  ok: 0,
  problem: 1,
  usage: 2,
  notFound: 3,
  unchanged: 4,
  busy: 5,
  storage: 6,
  defect: 70,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANINGS: readonly (readonly [ExitCode, string])[] = [
  [EXIT.ok, "done"],
  [EXIT.problem, "a check found a problem (audit, doctor)"],
  [EXIT.usage, "bad usage or bad input; nothing of it was stored"],
  [EXIT.notFound, "what was named does not exist"],
  [EXIT.unchanged, "nothing changed (the answer says why), or a conflict with what is stored"],
  [EXIT.busy, "another process is the writer; try again later"],
  [EXIT.storage, "the storage failed: full, unreadable, read-only, damaged, or of a newer version"],
  [EXIT.defect, "a defect in Tidings itself"],
];

/** The command line itself is wrong. */
export class UsageError extends TidingsError {
  /** The option or argument, as it is typed. */
  readonly field: string | undefined;

  constructor(message: string, field?: string) {
    super("invalid_input", message);
    this.name = "UsageError";
    this.field = field;
  }
}

export function exitCodeOf(error: unknown): ExitCode {
  if (!(error instanceof TidingsError)) return EXIT.defect;
  switch (error.code) {
    case "invalid_input":
      return EXIT.usage;
    case "not_found":
      return EXIT.notFound;
    case "conflict":
      return EXIT.unchanged;
    case "store_busy":
      return EXIT.busy;
    case "closed":
    case "read_only":
    case "store_full":
    case "store_io":
    case "store_corrupt":
    case "store_newer":
    case "store_unsupported":
      return EXIT.storage;
  }
}

export function exitCodeOfMiss(miss: Miss): ExitCode {
  return miss.miss === "not_found" ? EXIT.notFound : EXIT.unchanged;
}

export interface ErrorReport {
  code: string;
  message: string;
  field?: string;
  reason?: string;
}

/** The error as `--json` shows it. */
export function errorReport(error: unknown): ErrorReport {
  if (!(error instanceof TidingsError))
    return { code: "internal", message: error instanceof Error ? error.message : String(error) };
  const { code, message } = error;
  if (error instanceof InvalidInputError)
    return { code, message, ...(error.field === "" ? {} : { field: error.field }), reason: error.reason };
  if (error instanceof ConflictError) return { code, message, reason: error.reason };
  if (error instanceof UsageError && error.field !== undefined) return { code, message, field: error.field };
  return { code, message };
}
