/** What is pushed to clients, as text. A frame is the same for every client but for `prev_seq`. */
import type { Push } from "../delivery/feed.js";
import type { JournalId } from "../domain/ids.js";
import type { Progress } from "../runtime/setting.js";
import type { ThreadPush } from "../runtime/thread_pushes.js";
import type { Counts } from "../store/contract.js";

/** One push, written once for all clients that had the same frame before it. */
export class PushFrame {
  readonly seq: number;
  readonly #head: string;
  readonly #tail: string;
  readonly #texts = new Map<number | null, Buffer>();

  constructor(method: string, params: object, seq: number, journal_id: JournalId) {
    this.seq = seq;
    const fields = JSON.stringify(params).slice(1, -1);
    this.#head = `{"jsonrpc":"2.0","method":"${method}","params":{${fields},"seq":${seq},"prev_seq":`;
    this.#tail = `,"journal_id":"${journal_id}"}}`;
  }

  static ofNotification({ kind, notification, seq }: Omit<Push, "user_id">, journal_id: JournalId): PushFrame {
    return new PushFrame(`notification/${kind}`, { notification }, seq, journal_id);
  }

  static ofThread({ method, params, seq }: ThreadPush, journal_id: JournalId): PushFrame {
    return new PushFrame(method, params, seq, journal_id);
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

/** It may be dropped: all that counts is in the journal, and pushed from there. */
export function progressFrame({ turn_id, thread_id, delta }: Progress & { readonly type: "text" }): Buffer {
  const params = { turn_id, thread_id, delta };
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "turn/progress", params }));
}
