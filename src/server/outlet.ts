/**
 * What one client is sent, in which order, and how much may wait for it. A frame is held back while something older is
 * still being told, and, where a call is about to be answered, so that its answer stands where it belongs.
 */
import { type Cursor, cursorOf, cursorText } from "./cursor.js";
import type { About, PushFrame } from "./frames.js";
import type { NotificationName } from "./notifications.js";
import { CLOSE, type CloseCode, type Transport } from "./transport.js";

/** Of what may wait for a client, the part that what may be dropped takes at most. */
const DROPPABLE_PART = 4;
/** And the part that is kept back at most for the sake of an answer. */
const KEPT_PART = 4;

/** Live frames are passed on; or left to whoever reads the journal for this client; or kept until that is done. */
type Live = "open" | "dropped" | "held";

/** Is told of what a client was too slow for. */
export interface Slowness {
  /** Something that may be dropped was. */
  shed(): void;
  /** The client was ended. */
  slow(reason: string): void;
}

/** Frames that are not sent yet, and their bytes. */
class Backlog<Frame> {
  frames: Frame[] = [];
  bytes = 0;
}

export class Outlet {
  readonly #transport: Transport;
  readonly #bytesMax: number;
  readonly #slowness: Slowness;
  /** The `seq` of the last push that was sent. */
  #last: number | null = null;
  /** Where the client is when it has all that was sent; undefined before the first that says so. */
  #place: string | undefined = undefined;
  #live: Live = "held";
  #held: Backlog<PushFrame> | undefined = undefined;
  /** Newer counts that came meanwhile. */
  #heldCounts: Buffer | undefined = undefined;
  /** Calls whose answers are about to be sent: what they cause stands after them, but for what they announce. */
  #answering = 0;
  /** Those of them whose items stand after them too. */
  #answeringItems = 0;
  #kept: Backlog<PushFrame | Buffer> | undefined = undefined;
  #closing = false;

  constructor(transport: Transport, bytesMax: number, slowness: Slowness) {
    this.#transport = transport;
    this.#bytesMax = bytesMax;
    this.#slowness = slowness;
  }

  get isClosing(): boolean {
    return this.#closing;
  }

  /** The `seq` of the last push that was sent; null before the first. */
  get last(): number | null {
    return this.#last;
  }

  /** Everything that was pushed has been sent, and nothing older is being told. */
  get isLevel(): boolean {
    return this.#live === "open" && this.#kept === undefined;
  }

  /** Bytes that wait for the client to take them. */
  get waiting(): number {
    return this.#transport.waiting;
  }

  push(frame: PushFrame): void {
    if (this.#closing || this.#live === "dropped") return;
    if (this.#live === "open") {
      this.#passOn(frame);
      return;
    }
    this.#held ??= new Backlog();
    this.#held.frames.push(frame);
    this.#held.bytes += frame.after(null).length;
    if (this.#held.bytes > this.#bytesMax) this.#tooSlow();
  }

  counts(frame: Buffer): void {
    if (this.#live === "open") this.send(frame);
    else this.#heldCounts = frame;
  }

  /** Sent if nothing much waits before it. */
  droppable(text: Buffer, place?: string): void {
    if (this.#closing || this.#live !== "open") return;
    const room = this.#bytesMax / DROPPABLE_PART - this.#transport.waiting - (this.#kept?.bytes ?? 0);
    if (text.length > room) this.#slowness.shed();
    else if (this.#kept !== undefined) this.#keep(text, text.length);
    else this.#toTransport(text, place);
  }

  send(text: Buffer, place?: string): void {
    if (this.hasRoom(text.length)) this.#toTransport(text, place);
  }

  #toTransport(text: Buffer, place: string | undefined): void {
    this.#place = place ?? this.#place;
    this.#transport.send(text, place);
  }

  /** Whether so much more may wait; the end of the client if not. */
  hasRoom(bytes: number): boolean {
    if (this.#closing) return false;
    if (this.#transport.waiting + bytes > this.#bytesMax) this.#tooSlow();
    return !this.#closing;
  }

  /** Where the client is when it has all that was sent; undefined where that is not known. */
  get cursor(): Cursor | undefined {
    return this.#place === undefined ? undefined : cursorOf(this.#place);
  }

  /** From here on live frames are left out: whoever calls this tells them from the journal, after the cursor. */
  leaveOut(cursor: Cursor | null): void {
    this.#last = cursor?.after_seq ?? null;
    if (cursor !== null) this.#place = cursorText(cursor.journal_id, cursor.after_seq, cursor.after_part);
    this.#live = "dropped";
    this.#held = undefined;
    this.#kept = undefined;
  }

  /** From here on live frames are kept, until `goOn`. */
  hold(): void {
    this.#live = "held";
  }

  /** Something older, at the pace of the client: it may be more than is let wait. */
  older(frame: PushFrame): Promise<void> | void {
    return this.#atItsPace(frame, frame.place);
  }

  /** What waits already. It is no place from which to go on: its end is. */
  waitingItem(frame: PushFrame): Promise<void> | void {
    return this.#atItsPace(frame);
  }

  #atItsPace(frame: PushFrame, place?: string): Promise<void> | void {
    const text = frame.after(this.#last);
    this.#last = frame.seq;
    if (this.#transport.waiting + text.length <= this.#bytesMax / DROPPABLE_PART) {
      this.#toTransport(text, place);
      return;
    }
    this.#place = place ?? this.#place;
    return this.#transport.sent(text, place);
  }

  /** All up to `seq` was told: what was kept of what came later follows, and what comes. */
  goOn(seq: number): void {
    const held = this.#held?.frames ?? [];
    this.#held = undefined;
    this.#live = "open";
    for (const frame of held) if (frame.seq > seq) this.push(frame);
    if (this.#heldCounts !== undefined) this.send(this.#heldCounts);
    this.#heldCounts = undefined;
  }

  /** What was told before is no longer connected with what follows. */
  cut(): void {
    this.#last = null;
  }

  /** `items`: also what the call does to items stands after its answer; else what follows a lifecycle frame does. */
  answering(items: boolean): void {
    this.#answering += 1;
    if (items) this.#answeringItems += 1;
  }

  /** What a call announces goes out before its answer, with all that came before that. */
  announce(isIt: (method: NotificationName, about: About) => boolean): void {
    const kept = this.#kept?.frames ?? [];
    const at = kept.findLastIndex((one) => !Buffer.isBuffer(one) && one.about !== null && isIt(one.method, one.about));
    this.#release(at + 1);
  }

  /** The answer was sent. */
  answered(items: boolean): void {
    this.#answering -= 1;
    if (items) this.#answeringItems -= 1;
    if (this.#answering === 0) this.#release(Number.POSITIVE_INFINITY);
  }

  /** With a reason that is told, where the transport can. */
  close(code: CloseCode, reason: string, cursor?: Cursor): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#held = undefined;
    this.#kept = undefined;
    this.#transport.close(code, reason, cursor);
  }

  #passOn(frame: PushFrame): void {
    if (this.#mayBeCaused(frame)) this.#keep(frame, frame.after(null).length);
    else this.#write(frame);
  }

  /** What is told of a conversation while a call is being answered may be what the call does. */
  #mayBeCaused({ about, method }: PushFrame): boolean {
    if (this.#answering === 0) return false;
    if (this.#kept !== undefined) return true;
    return about !== null && (this.#answeringItems > 0 || !method.startsWith("item/"));
  }

  #keep(frame: PushFrame | Buffer, bytes: number): void {
    this.#kept ??= new Backlog();
    this.#kept.frames.push(frame);
    this.#kept.bytes += bytes;
    // A client that reads does not wait for an answer that takes long.
    if (this.#kept.bytes > this.#bytesMax / KEPT_PART) this.#release(Number.POSITIVE_INFINITY);
  }

  #release(count: number): void {
    const kept = this.#kept;
    if (kept === undefined) return;
    const released = kept.frames.splice(0, count);
    if (kept.frames.length === 0) this.#kept = undefined;
    for (const one of released) {
      kept.bytes -= Buffer.isBuffer(one) ? one.length : one.after(null).length;
      if (Buffer.isBuffer(one)) this.send(one);
      else this.#write(one);
    }
  }

  #write(frame: PushFrame): void {
    const text = frame.after(this.#last);
    if (!this.hasRoom(text.length)) return;
    this.#last = frame.seq;
    this.#toTransport(text, frame.place);
  }

  #tooSlow(): void {
    if (this.#closing) return;
    const reason = `too slow: more than ${this.#bytesMax} bytes were waiting; connect again`;
    this.close(CLOSE.tooSlow, reason, this.cursor);
    this.#slowness.slow(reason);
  }
}
