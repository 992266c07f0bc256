/** Frames over standard output, for the one client that has started this process. */
import type { Writable } from "node:stream";
import type { Cursor } from "./cursor.js";
import { NDJSON } from "./http_stream.js";
import { CLOSE, type CloseCode, type Transport, type TransportClient } from "./transport.js";
import { endingError } from "./wire.js";

export class StdioTransport implements Transport {
  readonly #output: Writable;
  readonly #listeners = new Set<() => void>();
  #closed = false;

  constructor(output: Writable) {
    this.#output = output;
    // Whoever reads it has gone.
    output.on("error", () => this.terminate());
    output.on("close", () => this.terminate());
  }

  get waiting(): number {
    return this.#output.writableLength;
  }

  send(frame: Buffer): void {
    if (!this.#closed) this.#output.write(NDJSON.write(frame, undefined));
  }

  sent(frame: Buffer): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#listeners.add(resolve);
      this.#output.write(NDJSON.write(frame, undefined), () => {
        this.#listeners.delete(resolve);
        resolve();
      });
    });
  }

  /** A last line says why, unless all is said. */
  close(code: CloseCode, reason: string, cursor?: Cursor): void {
    if (code !== CLOSE.done)
      this.send(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: null, error: endingError(code, reason, cursor) })));
    this.terminate();
  }

  terminate(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const listener of this.#listeners) listener();
  }

  serve(client: TransportClient): void {
    this.#listeners.add(() => client.gone());
    this.#output.on("drain", () => client.madeRoom());
  }

  tick(): void {}
}
