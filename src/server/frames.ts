/** What is pushed to clients, as text. A frame is the same for every client but for `prev_seq`. */
import type { Push } from "../delivery/feed.js";
import type { JournalId } from "../domain/ids.js";
import type { Counts } from "../store/contract.js";

/** One push, written once for all clients that had the same frame before it. */
export class PushFrame {
  readonly seq: number;
  readonly #head: string;
  readonly #tail: string;
  readonly #texts = new Map<number | null, Buffer>();

  constructor({ kind, notification, seq }: Omit<Push, "user_id">, journal_id: JournalId) {
    this.seq = seq;
    const params = `"notification":${JSON.stringify(notification)},"seq":${seq}`;
    this.#head = `{"jsonrpc":"2.0","method":"notification/${kind}","params":{${params},"prev_seq":`;
    this.#tail = `,"journal_id":"${journal_id}"}}`;
  }

  /** `prev` is the `seq` of the frame that this client had before; null for its first. */
  after(prev: number | null): Buffer {
    let text = this.#texts.get(prev);
    if (text === undefined) {
      text = Buffer.from(`${this.#head}${prev}${this.#tail}`);
      this.#texts.set(prev, text);
    }
    return text;
  }
}

/** A state, not a step: it has no `prev_seq`, and a newer one takes its place. */
export function countsFrame(counts: Counts, seq: number, journal_id: JournalId): Buffer {
  return Buffer.from(
    JSON.stringify({ jsonrpc: "2.0", method: "inbox/counts", params: { ...counts, seq, journal_id } }),
  );
}
