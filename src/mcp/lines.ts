import { MCP_LIMITS } from "./limits.js";

/** Puts the lines of a stream together again, none longer than the limit. */
export class Lines {
  #parts: string[] = [];
  #chars = 0;

  /** The lines that this piece ends. Throws where one is too long. */
  *take(piece: string): Generator<string> {
    let from = 0;
    for (let end = piece.indexOf("\n"); end >= 0; end = piece.indexOf("\n", from)) {
      this.#add(piece.slice(from, end));
      const line = this.#parts.join("");
      this.#parts = [];
      this.#chars = 0;
      from = end + 1;
      yield line;
    }
    this.#add(piece.slice(from));
  }

  #add(part: string): void {
    this.#chars += part.length;
    if (this.#chars > MCP_LIMITS.messageChars) {
      this.#parts = [];
      throw new Error(`it sent a message of more than ${MCP_LIMITS.messageChars} characters`);
    }
    if (part !== "") this.#parts.push(part);
  }
}
