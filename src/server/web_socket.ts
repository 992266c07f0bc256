/** Frames over a WebSocket, and whether its client is still there. */
import { WebSocket } from "ws";
import type { Clock } from "../platform/clock.js";
import { later } from "../platform/timers.js";
import { type Cursor, cursorText } from "./cursor.js";
import type { ServerLimits } from "./limits.js";
import { CLOSE, type CloseCode, type Transport, type TransportClient } from "./transport.js";

/**
 * Tells its transport by itself what comes. With listeners each socket would have a table of them, and there are
 * thousands of sockets, most of them quiet.
 */
export class ClientSocket extends WebSocket {
  transport: WebSocketTransport | undefined = undefined;

  override emit(event: string | symbol, ...values: unknown[]): boolean {
    switch (event) {
      case "message":
        this.transport?.message(values[0] as Buffer, values[1] as boolean);
        return true;
      case "ping":
        this.transport?.pinged(values[0] as Buffer);
        return true;
      case "pong":
        this.transport?.heard();
        return true;
      // What is wrong with a client's frames is told by the close that follows.
      case "error":
        return true;
      case "close":
        this.transport?.closed();
    }
    return super.emit(event, ...values);
  }
}

export class WebSocketTransport implements Transport {
  readonly #socket: ClientSocket;
  readonly #limits: ServerLimits;
  readonly #clock: Clock;
  #client: TransportClient | undefined = undefined;
  /** Whole milliseconds: with a fraction each would be an object of its own. */
  #pingAt = 0;
  #pinged = false;
  /** What has come and waits for its turn; nothing more is read meanwhile. */
  #later: (() => void)[] | undefined = undefined;

  constructor(socket: ClientSocket, limits: ServerLimits, clock: Clock) {
    this.#socket = socket;
    this.#limits = limits;
    this.#clock = clock;
    this.heard();
    socket.transport = this;
  }

  get waiting(): number {
    return this.#socket.bufferedAmount;
  }

  serve(client: TransportClient): void {
    this.#client = client;
  }

  send(frame: Buffer): void {
    this.#socket.send(frame, { binary: false });
  }

  sent(frame: Buffer): Promise<void> {
    return new Promise((resolve) => this.#socket.send(frame, { binary: false }, () => resolve()));
  }

  close(code: CloseCode, reason: string, cursor?: Cursor): void {
    this.#socket.close(code, cursor === undefined ? reason : withCursor(reason, cursor));
    const cancel = later(this.#limits.closeMs, () => this.#socket.terminate());
    this.#socket.on("close", cancel);
  }

  terminate(): void {
    this.#socket.terminate();
  }

  /** Asks a quiet client whether it is there, and ends one that did not say so. */
  tick(): void {
    const now = this.#clock.monotonic();
    if (now < this.#pingAt) return;
    if (this.#pinged) {
      this.terminate();
      return;
    }
    this.#pinged = true;
    this.#pingAt = Math.ceil(now + this.#limits.pongMs);
    this.#socket.ping();
  }

  /** Something came of it: it is there. */
  heard(): void {
    this.#pinged = false;
    this.#pingAt = Math.ceil(this.#clock.monotonic() + this.#limits.pingMs);
  }

  message(data: Buffer, binary: boolean): void {
    this.heard();
    if (binary) this.#client?.close(CLOSE.notText, "messages are JSON text");
    else this.#inTurn(() => void this.#client?.take(data));
  }

  /** Whoever asks whether we are there has to listen too: what waits for them is bounded here as everywhere. */
  pinged(data: Buffer): void {
    this.heard();
    this.#inTurn(() => {
      this.#client?.charge();
      if (this.#client?.hasRoom(data.length) === true) this.#socket.pong(data);
    });
  }

  #inTurn(task: () => void): void {
    if (this.#later !== undefined) {
      this.#later.push(task);
      return;
    }
    const turn = this.#client?.turn();
    if (turn === undefined) {
      task();
      return;
    }
    this.#later = [task];
    this.#socket.pause();
    void this.#takeLater(this.#later, turn);
  }

  /** Whoever sends much waits for its turn again and again: the network holds back what else it sends. */
  async #takeLater(tasks: readonly (() => void)[], turn: Promise<void>): Promise<void> {
    await turn;
    // It may grow by what was read before the pause.
    for (let at = 0; at < tasks.length; at += 1) {
      if (at > 0) await this.#client?.turn();
      this.heard();
      tasks[at]?.();
    }
    this.#later = undefined;
    this.#socket.resume();
  }

  closed(): void {
    this.#client?.gone();
  }
}

/** What a close frame holds of a reason, in bytes. */
const REASON_BYTES = 123;

function withCursor(reason: string, { journal_id, after_seq, after_part }: Cursor): string {
  const text = `${reason} after ${cursorText(journal_id, after_seq, after_part)}`;
  return Buffer.byteLength(text) <= REASON_BYTES ? text : reason;
}
