/**
 * Requests of one connection are begun in their turn. Node answers them in their order, but would begin all that have
 * come, and does not tell those that wait when their connection has gone: what they hold would be held for ever. And
 * behind a stream, which has no end, nothing could be answered.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

export class Pipelines {
  readonly #max: number;
  readonly #begun = new WeakMap<Duplex, ServerResponse>();
  /** How many wait on each connection. */
  readonly #waiting = new WeakMap<Duplex, number>();

  /** `max` may wait on one connection. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Begins it when all before it are answered; never, if the connection ends before. One too many ends it. */
  take(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
    const { socket } = request;
    const start = () => {
      this.#begun.set(socket, response);
      begin();
    };
    // Node gives it the connection when those before it are done with it.
    if (response.socket !== null) {
      start();
      return;
    }
    const waiting = (this.#waiting.get(socket) ?? 0) + 1;
    if (waiting > this.#max) {
      socket.destroy();
      return;
    }
    this.#waiting.set(socket, waiting);
    response.once("socket", () => {
      this.#waiting.set(socket, (this.#waiting.get(socket) ?? 1) - 1);
      start();
    });
  }

  /** What is being answered on a connection; undefined if nothing is. */
  answering(socket: Duplex): ServerResponse | undefined {
    const response = this.#begun.get(socket);
    return response?.writableFinished === true ? undefined : response;
  }
}
