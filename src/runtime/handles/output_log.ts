import { copied } from "../../domain/text.js";

const HEAD_CHARS = 4_096;
const TAIL_CHARS = 28_672;

/** What a call said on the way: of very much, the beginning and the end. */
export class OutputLog {
  #head = "";
  #tail = "";
  #total = 0;
  #read = 0;

  add(text: string): void {
    this.#total += text.length;
    const room = HEAD_CHARS - this.#head.length;
    if (text.length <= room) {
      this.#head += text;
      return;
    }
    const rest = text.length - room;
    this.#head += copied(text.slice(0, room));
    this.#tail = (this.#tail + copied(text.slice(-Math.min(rest, TAIL_CHARS)))).slice(-TAIL_CHARS);
  }

  /** All that is kept. */
  get text(): string {
    return this.#from(0);
  }

  /** What came since it was asked for last. */
  take(): string {
    const fresh = this.#from(this.#read);
    this.#read = this.#total;
    return fresh;
  }

  #from(start: number): string {
    const after = this.#total - Math.max(start, this.#head.length);
    const tail = after > 0 ? this.#tail.slice(-after) : "";
    const left = after - tail.length;
    const gap = left > 0 ? `\n(${left} characters left out)\n` : "";
    return `${this.#head.slice(start)}${gap}${tail}`.toWellFormed();
  }
}
