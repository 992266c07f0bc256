import { type ErrorReport, errorReport, type Miss, TidingsError } from "../domain/errors.js";

/** What a script can rely on; shown by `tidings --help`. */
export const EXIT = {
  ok: 0,
  problem: 1,
  usage: 2,
  notFound: 3,
  unchanged: 4,
  busy: 5,
  storage: 6,
  notAllowed: 7,
  defect: 70,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANINGS: readonly (readonly [ExitCode, string])[] = [
  [EXIT.ok, "done"],
  [EXIT.problem, "a check found a problem (audit, doctor, subscribers check)"],
  [EXIT.usage, "bad usage or bad input; nothing of it was stored"],
  [EXIT.notFound, "what was named does not exist"],
  [EXIT.unchanged, "nothing changed (the answer says why), or a conflict with what is stored"],
  [EXIT.busy, "another process is the writer, or the server is busy or away; try again later"],
  [EXIT.storage, "the storage failed: full, unreadable, read-only, damaged, or of a newer version"],
  [EXIT.notAllowed, "the token does not allow it"],
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
    case "too_large":
      return EXIT.usage;
    case "unauthorized":
    case "forbidden":
      return EXIT.notAllowed;
    case "overloaded":
    case "unreachable":
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

/** The error as `--json` shows it; an option is named as it is typed. */
export function reportOf(error: unknown): ErrorReport {
  const report = errorReport(error);
  if (error instanceof UsageError && error.field !== undefined) return { ...report, field: error.field };
  return report.field === "" ? { code: report.code, message: report.message, reason: report.reason ?? "" } : report;
}
