/**
 * What a client is told over many connections, as one: where it stands, what it has had already, and whether something
 * is missing. It knows nothing of connections but where they begin.
 */
import type { Cursor } from "./methods.js";
import type { Told } from "./told.js";

/** A notification as it came. */
export interface Frame {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** In the journal. */
interface Place {
  readonly seq: number;
  readonly prev_seq: number | null;
  readonly part?: number;
  readonly journal_id: string;
}

export class Chain {
  readonly #tell: (told: Told) => void;
  #cursor: Cursor | null;
  /** The `seq` of the frame before on this connection. */
  #previous: number | null = null;
  /** What waits already is told as a whole: cut off in the middle, it begins anew. Null where nothing is held back. */
  #held: Frame[] | null = null;
  #isFirst = true;

  constructor(cursor: Cursor | null, tell: (told: Told) => void) {
    this.#cursor = cursor;
    this.#tell = tell;
  }

  /** From where a connection would go on. */
  get cursor(): Cursor | null {
    return this.#cursor;
  }

  /** What was told after it is to be told again, by the next connection. */
  goBack(cursor: Cursor): void {
    this.#cursor = cursor;
  }

  /** A connection was asked to go on from the cursor. */
  begin(): void {
    this.#previous = this.#cursor?.after_seq ?? null;
    this.#held = this.#cursor === null ? [] : null;
    this.#isFirst = true;
  }

  /** False: something is missing before it. */
  take(frame: Frame): boolean {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    switch (frame.method) {
      case "stream/heartbeat":
        return this.#heartbeat(frame.params as { journal_id: string; seq: number | null; up_to_seq: number });
      case "stream/reset":
        this.#reset(frame, isFirst);
        return true;
      case "inbox/counts":
        this.#counts(frame);
        return true;
    }
    if (frame.params["prev_seq"] === undefined) {
      this.#pass(frame);
      return true;
    }
    const place = frame.params as unknown as Place;
    if (this.#held === null && !this.#isNew(place)) return true;
    if (place.prev_seq !== this.#previous || this.#isForeign(place)) return false;
    this.#previous = place.seq;
    if (this.#held === null) this.#cursor = cursorAfter(place);
    this.#pass(frame);
    return true;
  }

  /** The server says that all that was to be told first was told. */
  caughtUp(): void {
    if (this.#held === null) return;
    const last = this.#held.pop();
    if (last === undefined) this.#held = null;
    else this.#release(last);
  }

  #heartbeat({ journal_id, seq, up_to_seq }: { journal_id: string; seq: number | null; up_to_seq: number }): boolean {
    this.caughtUp();
    if (seq !== this.#previous || this.#isForeign({ journal_id })) return false;
    if (up_to_seq > (this.#cursor?.after_seq ?? -1)) this.#cursor = { journal_id, after_seq: up_to_seq };
    return true;
  }

  /** What waits may follow where it is the answer to the cursor of this connection. */
  #reset(frame: Frame, isFirst: boolean): void {
    const { journal_id, newest_seq } = frame.params as { journal_id: string; newest_seq: number };
    this.#cursor = { journal_id, after_seq: newest_seq };
    this.#previous = null;
    this.#held = isFirst ? [] : null;
    this.#say(frame);
  }

  /** The first ones end what waits; they are no place otherwise. */
  #counts(frame: Frame): void {
    if (this.#held === null) this.#say(frame);
    else this.#release(frame);
  }

  /** Tells what was held back, and this after it, where it is the last: a place is there only then. */
  #release(last: Frame): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const frame of held) this.#say(frame);
    for (const { params } of [...held, last]) {
      const place = params as unknown as Place;
      if (place.seq !== undefined && params["waiting"] !== true && this.#isNew(place))
        this.#cursor = cursorAfter(place);
    }
    this.#say(last);
  }

  #pass(frame: Frame): void {
    if (this.#held !== null) this.#held.push(frame);
    else this.#say(frame);
  }

  #say({ method, params }: Frame): void {
    this.#tell({ method, params, cursor: this.#cursor } as unknown as Told);
  }

  #isNew({ seq, part = 1 }: Place): boolean {
    if (this.#cursor === null) return true;
    const { after_seq, after_part } = this.#cursor;
    return seq > after_seq || (seq === after_seq && part > (after_part ?? part));
  }

  #isForeign({ journal_id }: { journal_id: string }): boolean {
    return this.#cursor !== null && journal_id !== this.#cursor.journal_id;
  }
}

function cursorAfter({ journal_id, seq, part }: Place): Cursor {
  return { journal_id, after_seq: seq, ...(part === undefined ? {} : { after_part: part }) };
}
