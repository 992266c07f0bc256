/** One WebSocket client: what it is sent, in which order, and how much may wait for it. */
import type { RawData, WebSocket } from "ws";
import { OverloadedError, TooLargeError } from "../domain/errors.js";
import type { JournalId } from "../domain/ids.js";
import type { Clock } from "../platform/clock.js";
import { later } from "../platform/timers.js";
import type { InboxAnswer } from "../tidings.js";
import type { Caller } from "./access.js";
import type { Dispatcher, RpcResponse } from "./dispatcher.js";
import { countsFrame, PushFrame } from "./frames.js";
import { parseJson } from "./json.js";
import type { ServerLimits } from "./limits.js";
import type { ClientView, Session } from "./method.js";
import { rpcErrorOf } from "./wire.js";

export const CLOSE = {
  goingAway: 1001,
  notText: 1003,
  policy: 1008,
  internal: 1011,
  tooSlow: 1013,
} as const;

/** After a close was asked for, how long the client may take to agree. */
const CLOSE_MS = 2_000;
const CALL_RETRY_MS = 100;

/** Of what may wait for a client, the part that what may be dropped takes at most. */
const DROPPABLE_PART = 4;

/** All who are connected. */
export interface Audience {
  /** What this one wants to hear is another thing now. */
  viewed(connection: Connection): void;
  /** Resolves when all that is committed now was pushed. */
  pushed(): Promise<void>;
}

export class Connection implements Session {
  readonly caller: Caller;
  readonly #socket: WebSocket;
  readonly #dispatcher: Dispatcher;
  readonly #limits: ServerLimits;
  readonly #clock: Clock;
  readonly #audience: Audience;
  #view: ClientView = { conversation: false, observe: false };
  /** The `seq` of the last push that was sent. */
  #last: number | null = null;
  /** Pushes that came while the client is still being told what waits; undefined afterwards. */
  #held: PushFrame[] | undefined = [];
  #heldBytes = 0;
  /** Newer counts that came meanwhile: the first ones that a client is sent end its welcome. */
  #heldCounts: Buffer | undefined;
  /** The client has been told what waits, or has gone. */
  readonly #welcomed: Promise<void>;
  #endWelcome: () => void = () => {};
  /** Nobody hears the answers of calls that still wait. */
  readonly #gone = new AbortController();
  #closing = false;
  #calls = 0;
  #pingAt: number;
  #pinged = false;

  constructor(
    socket: WebSocket,
    caller: Caller,
    dispatcher: Dispatcher,
    limits: ServerLimits,
    clock: Clock,
    audience: Audience,
    onDefect: (error: unknown) => void,
  ) {
    this.#socket = socket;
    this.#audience = audience;
    this.#welcomed = new Promise((resolve) => {
      this.#endWelcome = resolve;
    });
    this.caller = caller;
    this.#dispatcher = dispatcher;
    this.#limits = limits;
    this.#clock = clock;
    this.#pingAt = clock.monotonic() + limits.pingMs;
    socket.on("message", (data, binary) => {
      this.#take(data, binary).catch((error: unknown) => {
        onDefect(error);
        this.close(CLOSE.internal, "an error of the server itself");
      });
    });
    socket.on("ping", (data) => this.#pong(data));
    socket.on("pong", () => this.#heard());
    socket.on("close", () => {
      this.#gone.abort();
      this.#endWelcome();
    });
    // What is wrong with a client's frames is told by the close that follows.
    socket.on("error", () => {});
  }

  onClose(listener: () => void): void {
    this.#socket.on("close", listener);
  }

  /** First what waits, oldest first, and the counts; then what came meanwhile, and from then on what comes. */
  async welcome({ items, counts, seq }: InboxAnswer, journal_id: JournalId): Promise<void> {
    for (const item of items) {
      await this.#sent(PushFrame.ofNotification({ kind: "created", ...item }, journal_id));
      if (this.#closing) return;
    }
    this.send(countsFrame(counts, seq, journal_id));
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const frame of held) if (frame.seq > seq) this.push(frame);
    if (this.#heldCounts !== undefined) this.send(this.#heldCounts);
    this.#heldCounts = undefined;
    this.#endWelcome();
  }

  get followsConversations(): boolean {
    return this.#view.conversation;
  }

  /** After what waits, so that what it asks for is not among that. */
  async initialize(view: ClientView): Promise<void> {
    await this.#welcomed;
    this.#view = view;
    if (!this.#closing) this.#audience.viewed(this);
  }

  async told(): Promise<void> {
    if (this.#view.conversation && !this.#closing) await this.#audience.pushed();
  }

  /** What happens in a conversation, if it was asked for. */
  pushOfThread(frame: PushFrame, observation: boolean): void {
    if (this.#view.conversation && (this.#view.observe || !observation)) this.push(frame);
  }

  /** Sent if nothing much waits before it. */
  pushDroppable(text: Buffer): void {
    const room = this.#limits.outgoingBytes / DROPPABLE_PART - this.#socket.bufferedAmount;
    if (this.#view.conversation && text.length <= room) this.send(text);
  }

  push(frame: PushFrame): void {
    if (this.#closing) return;
    if (this.#held === undefined) {
      this.send(frame.after(this.#last));
      this.#last = frame.seq;
      return;
    }
    this.#held.push(frame);
    this.#heldBytes += frame.after(null).length;
    if (this.#heldBytes > this.#limits.outgoingBytes) this.#tooSlow();
  }

  counts(frame: Buffer): void {
    if (this.#held === undefined) this.send(frame);
    else this.#heldCounts = frame;
  }

  send(text: Buffer): void {
    if (this.#closing) return;
    if (this.#socket.bufferedAmount + text.length > this.#limits.outgoingBytes) this.#tooSlow();
    else this.#socket.send(text, { binary: false });
  }

  /** Sent, and taken by the network: what a client is told at first may be more than is let wait. */
  #sent(frame: PushFrame): Promise<void> {
    const text = frame.after(this.#last);
    this.#last = frame.seq;
    return new Promise((resolve) => this.#socket.send(text, { binary: false }, () => resolve()));
  }

  #tooSlow(): void {
    this.close(CLOSE.tooSlow, "too slow: more than 1 MiB was waiting; connect again");
  }

  close(code: number, reason: string): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#gone.abort();
    this.#held = [];
    this.#socket.close(code, reason);
    const cancel = later(CLOSE_MS, () => this.#socket.terminate());
    this.#socket.on("close", cancel);
  }

  terminate(): void {
    this.#closing = true;
    this.#socket.terminate();
  }

  /** Called now and then: asks a quiet client whether it is there, and ends one that did not say so. */
  tick(): void {
    const now = this.#clock.monotonic();
    this.#endIfExpired();
    if (this.#closing || now < this.#pingAt) return;
    if (this.#pinged) {
      this.terminate();
      return;
    }
    this.#pinged = true;
    this.#pingAt = now + this.#limits.pongMs;
    this.#socket.ping();
  }

  #endIfExpired(): void {
    const { expires_at } = this.caller;
    if (expires_at !== null && expires_at <= this.#clock.wall()) this.close(CLOSE.policy, "the token has expired");
  }

  /** Whoever asks whether we are there has to listen too: what waits for them is bounded here as everywhere. */
  #pong(data: Buffer): void {
    if (this.#closing) return;
    this.#heard();
    if (this.#socket.bufferedAmount + data.length > this.#limits.outgoingBytes) this.#tooSlow();
    else this.#socket.pong(data);
  }

  #heard(): void {
    this.#pinged = false;
    this.#pingAt = this.#clock.monotonic() + this.#limits.pingMs;
  }

  async #take(data: RawData, binary: boolean): Promise<void> {
    this.#endIfExpired();
    if (this.#closing) return;
    this.#heard();
    if (binary) {
      this.close(CLOSE.notText, "messages are JSON text");
      return;
    }
    const answer = await this.#answer(data as Buffer);
    if (answer === undefined) return;
    const text = Buffer.from(JSON.stringify(answer));
    const fits = text.length <= this.#limits.outgoingBytes;
    this.send(fits ? text : Buffer.from(JSON.stringify(tooLarge(answer, text.length))));
  }

  async #answer(data: Buffer): Promise<RpcResponse | RpcResponse[] | undefined> {
    if (this.#calls >= this.#limits.callsPerSocket) {
      const error = new OverloadedError(`${this.#calls} calls are not answered yet; wait for them`, CALL_RETRY_MS);
      return { jsonrpc: "2.0", id: idOf(data), error: rpcErrorOf(error) };
    }
    this.#calls += 1;
    try {
      return await this.#dispatcher.answer(data, {
        caller: this.caller,
        bytesMax: this.#limits.messageAnswerBytes,
        gone: this.#gone.signal,
        session: this,
      });
    } finally {
      this.#calls -= 1;
    }
  }
}

/** Instead of an answer that could never be sent here. The call was run. */
function tooLarge(answer: RpcResponse | RpcResponse[], bytes: number): RpcResponse | RpcResponse[] {
  if (Array.isArray(answer)) return answer.map((one) => tooLarge(one, bytes) as RpcResponse);
  const error = new TooLargeError(`the answer has ${bytes} bytes, too many for a WebSocket; ask by POST /rpc`);
  return { jsonrpc: "2.0", id: answer.id, error: rpcErrorOf(error) };
}

/** Of a call that is refused before it is looked at; null where it has none. */
function idOf(data: Buffer): string | number | null {
  try {
    const { id } = parseJson(data) as { id?: unknown };
    return typeof id === "string" || typeof id === "number" ? id : null;
  } catch {
    return null;
  }
}
