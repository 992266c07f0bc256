import { once } from "node:events";
import { styleText } from "node:util";
import { systemClock } from "../platform/clock.js";

export type Style = Parameters<typeof styleText>[0];

const NARROWEST = 40;
const USUAL = 80;
const PROGRESS_MS = 100;

/** Where a command speaks: answers on stdout, in words or as JSON; progress and remarks on stderr. */
export class Output {
  /** Answers are JSON, one value a line. */
  readonly json: boolean;
  /** Whether somebody looks at the answers, and not a program. */
  readonly terminal: boolean;
  /** Columns of the terminal; endless where there is none, so that a pipe gets whole texts. */
  readonly width: number;
  readonly #colour: boolean;

  constructor(json: boolean) {
    const { stdout, env } = process;
    this.json = json;
    this.terminal = stdout.isTTY === true && !json;
    this.width = stdout.isTTY ? Math.max(NARROWEST, stdout.columns || USUAL) : Number.POSITIVE_INFINITY;
    this.#colour = stdout.isTTY === true && (env["NO_COLOR"] ?? "") === "";
  }

  /** For text that is read: no wider than is pleasant in a terminal, and unbroken in a pipe. */
  columns(most: number): number {
    return Number.isFinite(this.width) ? Math.min(this.width, most) : this.width;
  }

  style(style: Style, text: string): string {
    return this.#colour ? styleText(style, text) : text;
  }

  /** A line of words. */
  line(text = ""): Promise<void> {
    return this.#write(`${text}\n`);
  }

  /** A line of JSON. */
  value(value: unknown): Promise<void> {
    return this.#write(`${JSON.stringify(value)}\n`);
  }

  /** A remark beside the answer. */
  remark(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  /** Shows how far something is, where somebody looks. */
  progress(): Progress {
    return new Progress();
  }

  /** Waits where the reader is slower than we are, so that memory does not grow with the answer. */
  async #write(text: string): Promise<void> {
    if (!process.stdout.write(text)) await once(process.stdout, "drain");
  }
}

/** One line on stderr that changes in place; nothing at all where stderr is no terminal. */
export class Progress {
  #shownAt = Number.NEGATIVE_INFINITY;
  #shown = false;

  show(text: string): void {
    if (!process.stderr.isTTY) return;
    const now = systemClock.monotonic();
    if (now - this.#shownAt < PROGRESS_MS) return;
    this.#shownAt = now;
    this.#shown = true;
    process.stderr.write(`\r\u001b[K${text}`);
  }

  end(): void {
    if (this.#shown) process.stderr.write("\r\u001b[K");
    this.#shown = false;
  }
}
