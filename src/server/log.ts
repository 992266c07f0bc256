/**
 * What the server says about itself: one line for each thing that happened, with fields that programs can read. Never a
 * token, a secret, a signature or a body. The last lines are kept for whoever wants to follow them.
 */
import { isoTime } from "../domain/time.js";
import { type Clock, systemClock } from "../platform/clock.js";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** Is told of an error of our own, and of what it concerned. */
export type OnDefect = (error: unknown, fields?: LogFields) => void;

export interface LogLine {
  readonly time: string;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

export interface LogOptions {
  /** What is below it is not written. */
  readonly level: LogLevel;
  /** Where each line of that level goes. */
  readonly write: (line: LogLine) => void;
  readonly clock?: Clock;
}

/** From this level on, lines are kept for whoever asks for them, however little is written. */
const KEPT_FROM = LOG_LEVELS.indexOf("info");
/** Lines that are kept, and characters of a text in one. */
const KEPT_MAX = 1_000;
const CHARS_MAX = 4_096;

export class Log {
  readonly #level: number;
  readonly #write: (line: LogLine) => void;
  readonly #clock: Clock;
  readonly #kept: LogLine[] = [];
  readonly #listeners = new Set<(line: LogLine) => void>();

  constructor({ level, write, clock = systemClock }: LogOptions) {
    this.#level = LOG_LEVELS.indexOf(level);
    this.#write = write;
    this.#clock = clock;
  }

  /** Whether a line of this level is said at all: what is needed for it alone need not be found out. */
  says(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) >= Math.min(this.#level, KEPT_FROM);
  }

  say(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (!this.says(level)) return;
    const line: LogLine = {
      time: isoTime(this.#clock.wall()),
      level,
      message: cut(message),
      fields: Object.fromEntries(
        Object.entries(fields).map(([key, value]) => [key, typeof value === "string" ? cut(value) : value]),
      ),
    };
    this.#kept.push(line);
    if (this.#kept.length > KEPT_MAX) this.#kept.shift();
    if (LOG_LEVELS.indexOf(level) >= this.#level) this.#write(line);
    for (const listener of this.#listeners) listener(line);
  }

  /** An error of our own. Whoever called is told no more than that it happened. */
  defect(error: unknown, fields: LogFields = {}): void {
    const { message, stack = message } = error instanceof Error ? error : new Error(String(error));
    this.say("error", message, { ...fields, stack });
  }

  /** The last lines, oldest first. */
  recent(): readonly LogLine[] {
    return [...this.#kept];
  }

  /** Every line from now on, until the function that is returned is called. A listener must not throw, nor wait. */
  subscribe(listener: (line: LogLine) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** As one JSON object: what the line says of itself is not hidden by a field of the same name. */
export function jsonLogLine({ time, level, message, fields }: LogLine): string {
  return JSON.stringify({ ...fields, time, level, message });
}

function cut(text: string): string {
  return text.length <= CHARS_MAX ? text.toWellFormed() : `${text.slice(0, CHARS_MAX).toWellFormed()}…`;
}
