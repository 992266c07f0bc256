/** Where the user types: a line below the conversation, which goes away while the agent speaks. */
import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";

export interface PromptEvents {
  line(text: string): void;
  /** Ctrl+C. */
  interrupt(): void;
  /** Ctrl+D, or the terminal is gone. */
  end(): void;
}

/** What is typed while it is hidden is kept, and seen when it is shown again. */
export class Prompt {
  readonly #readline: Interface;
  readonly #gate: Gate;
  #words: string;
  #asking: ((answer: string | null) => void) | null = null;
  #shown = false;
  #closed = false;

  constructor(words: string, events: PromptEvents) {
    this.#words = words;
    this.#gate = new Gate();
    this.#readline = createInterface({ input: process.stdin, output: this.#gate, terminal: true, prompt: words });
    this.#readline.on("line", (text) => {
      // It stands above now, and is no prompt any more.
      this.#shown = false;
      this.#gate.open = false;
      if (this.#asking === null) events.line(text);
      else this.#answer(text);
    });
    this.#readline.on("SIGINT", () => {
      if (this.#asking === null) events.interrupt();
      else this.#answer(null);
    });
    this.#readline.on("close", () => {
      this.#shown = false;
      const ours = this.#closed;
      this.#closed = true;
      this.#answer(null);
      if (!ours) events.end();
    });
  }

  show(): void {
    if (this.#shown || this.#closed) return;
    this.#shown = true;
    this.#gate.open = true;
    this.#readline.setPrompt(this.#words);
    this.#readline.prompt(true);
  }

  hide(): void {
    if (!this.#shown) return;
    this.#clear();
    this.#shown = false;
    this.#gate.open = false;
  }

  /** Writes where the prompt is, and puts it below again. */
  write(text: string): void {
    if (this.#shown) this.#clear();
    process.stdout.write(text);
    if (this.#shown) this.#readline.prompt(true);
  }

  /** A line of the user's for a question of ours; null for Ctrl+C or Ctrl+D. */
  async ask(question: string): Promise<string | null> {
    const { line } = this.#readline;
    if (this.#closed) return null;
    const before = this.#words;
    this.hide();
    this.#take(line.length);
    this.#words = question;
    this.show();
    try {
      return await new Promise<string | null>((resolve) => {
        this.#asking = resolve;
      });
    } finally {
      this.hide();
      this.#take(this.#readline.line.length);
      this.#words = before;
      if (line !== "" && !this.#closed) this.#readline.write(line);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.hide();
    this.#closed = true;
    this.#readline.close();
  }

  #answer(answer: string | null): void {
    const asking = this.#asking;
    this.#asking = null;
    asking?.(answer);
  }

  /** Takes away what is typed. */
  #take(length: number): void {
    if (length > 0 && !this.#closed) this.#readline.write(null, { ctrl: true, name: "e" });
    if (length > 0 && !this.#closed) this.#readline.write(null, { ctrl: true, name: "u" });
  }

  /** The prompt and what is typed may take several rows. */
  #clear(): void {
    const { rows } = this.#readline.getCursorPos();
    process.stdout.write(`${rows > 0 ? `\u001b[${rows}A` : ""}\r\u001b[J`);
  }
}

/** The terminal, for as long as it is open. */
class Gate extends Writable {
  open = false;

  get columns(): number {
    return process.stdout.columns;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.open) process.stdout.write(chunk);
    done();
  }
}
