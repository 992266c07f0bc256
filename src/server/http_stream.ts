/** Frames over the response of an HTTP request that stays open: as lines, or as server-sent events. */
import type { ServerResponse } from "node:http";
import type { Clock } from "../platform/clock.js";
import { later } from "../platform/timers.js";
import type { Cursor } from "./cursor.js";
import type { ServerLimits } from "./limits.js";
import { CLOSE, type CloseCode, type Transport, type TransportClient } from "./transport.js";
import { endingError } from "./wire.js";

/** How a frame is written. */
export interface Framing {
  readonly type: string;
  /** Before the first frame. */
  readonly opening: string;
  write(frame: Buffer, place: string | undefined): Buffer;
}

const END_OF_LINE = Buffer.from("\n");

export const NDJSON: Framing = {
  type: "application/x-ndjson",
  opening: "",
  write: (frame) => Buffer.concat([frame, END_OF_LINE]),
};

/** The client goes on by itself, with the last id that it has seen. */
export const SERVER_SENT_EVENTS: Framing = {
  type: "text/event-stream",
  opening: "retry: 1000\n\n",
  write: (frame, place) =>
    Buffer.concat([Buffer.from(place === undefined ? "data: " : `id: ${place}\ndata: `), frame, Buffer.from("\n\n")]),
};

export class HttpStream implements Transport {
  readonly #response: ServerResponse;
  readonly #framing: Framing;
  readonly #limits: ServerLimits;
  readonly #clock: Clock;
  #taken = 0;
  #takenAt: number;

  constructor(response: ServerResponse, framing: Framing, limits: ServerLimits, clock: Clock) {
    this.#response = response;
    this.#framing = framing;
    this.#limits = limits;
    this.#clock = clock;
    this.#takenAt = clock.monotonic();
    response.writeHead(200, {
      "Content-Type": framing.type,
      "Cache-Control": "no-cache",
      Connection: "keep-alive",
      "X-Content-Type-Options": "nosniff",
      // A proxy that collects what it passes on would hold back what happens now.
      "X-Accel-Buffering": "no",
    });
    response.flushHeaders();
    response.on("error", () => {});
    if (framing.opening !== "") response.write(framing.opening);
  }

  get waiting(): number {
    return this.#response.writableLength;
  }

  send(frame: Buffer, place?: string): void {
    if (!this.#response.destroyed) this.#response.write(this.#framing.write(frame, place));
  }

  sent(frame: Buffer, place?: string): Promise<void> {
    const response = this.#response;
    if (response.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        response.off("close", done);
        resolve();
      };
      response.on("close", done);
      response.write(this.#framing.write(frame, place), done);
    });
  }

  /** A last line says why, unless all is said. */
  close(code: CloseCode, reason: string, cursor?: Cursor): void {
    const response = this.#response;
    const { req } = response;
    if (response.destroyed) return;
    const error = endingError(code, reason, cursor);
    if (code !== CLOSE.done)
      response.write(this.#framing.write(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: null, error })), undefined));
    // What is still to come of the request is not wanted: the connection cannot be used again.
    response.on("finish", () => {
      if (req.complete) return;
      if (code === CLOSE.tooLarge) this.#letRunOut();
      else req.socket.destroySoon();
    });
    response.end();
    const cancel = later(this.#limits.closeMs, () => this.terminate());
    response.on("close", cancel);
  }

  /** An end right now, while more is coming, would take the last line with it. */
  #letRunOut(): void {
    const { req } = this.#response;
    const cancel = later(this.#limits.closeMs, () => req.socket.destroy());
    req.on("end", () => req.socket.destroySoon());
    req.on("close", cancel);
    req.resume();
  }

  terminate(): void {
    this.#response.req.socket.destroy();
  }

  serve(client: TransportClient): void {
    this.#response.on("close", () => client.gone());
    this.#response.on("drain", () => client.madeRoom());
  }

  /** A client that has taken nothing for a while, though something waits for it, is no longer there. */
  tick(): void {
    const { socket } = this.#response.req;
    const taken = socket.bytesWritten - socket.writableLength;
    const now = this.#clock.monotonic();
    if (this.waiting === 0 || taken !== this.#taken) {
      this.#taken = taken;
      this.#takenAt = now;
    } else if (now - this.#takenAt > this.#limits.pingMs + this.#limits.pongMs) this.terminate();
  }
}
