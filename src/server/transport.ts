/** One client's way out: whole frames go in, in their order. What may wait is the connection's to bound. */

import type { Cursor } from "./cursor.js";

/** Why a stream ends; the number is the close code of a WebSocket. */
export const CLOSE = {
  done: 1000,
  goingAway: 1001,
  notText: 1003,
  policy: 1008,
  tooLarge: 1009,
  internal: 1011,
  tooSlow: 1013,
} as const;

export type CloseCode = (typeof CLOSE)[keyof typeof CLOSE];

/** Whom a transport is for: it is told what comes, without a listener of its own for each thing. */
export interface TransportClient {
  /** Asked before each thing that has come is taken: undefined where it may be at once, else it waits for its turn. */
  turn(): Promise<void> | undefined;
  /** Something came that is no message. */
  charge(): void;
  /** A message as it came. */
  take(message: Buffer): Promise<void>;
  /** Something that waited was taken. */
  madeRoom(): void;
  /** Whether so many bytes more may wait; the end of the client if not. */
  hasRoom(bytes: number): boolean;
  close(code: CloseCode, reason: string): void;
  /** It is over. */
  gone(): void;
}

export interface Transport {
  /** Bytes that the client has not taken yet. */
  readonly waiting: number;
  /** `place` is where the client is when it has this, for transports that tell. */
  send(frame: Buffer, place?: string): void;
  /** The same; resolves when the network has taken it, or the client is gone. */
  sent(frame: Buffer, place?: string): Promise<void>;
  /** Ends it after what waits, and after a while without that. `cursor`: where the client is then, if that is to be told. */
  close(code: CloseCode, reason: string, cursor?: Cursor): void;
  terminate(): void;
  /** From now on this one is told. */
  serve(client: TransportClient): void;
  /** Called now and then: ends a client that is no longer there. */
  tick(): void;
}
