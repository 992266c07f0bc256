/** What is pushed to clients, as text. A frame is the same for every client but for `prev_seq`. */
import type { Push } from "../delivery/feed.js";
import type { JournalId } from "../domain/ids.js";
import type { Progress } from "../runtime/setting.js";
import type { ThreadPush } from "../runtime/thread_pushes.js";
import type { Counts } from "../store/contract.js";
import type { ShownBatch } from "../tidings.js";
import { cursorText } from "./cursor.js";
import type { LogLine } from "./log.js";
import type { NotificationName, ResetReason } from "./notifications.js";

/** What a frame is about, for whoever waits for it. */
export interface About {
  readonly thread_id: string;
  readonly turn_id?: string | null;
}

interface Place {
  readonly seq: number;
  readonly part?: number | undefined;
  readonly journal_id: JournalId;
}

/** One push, written once for all clients that had the same frame before it. */
export class PushFrame {
  readonly method: NotificationName;
  readonly seq: number;
  /** Which of the frames of its entry it is; undefined where it is the only one. */
  readonly part: number | undefined;
  readonly journal_id: JournalId;
  /** Null for what is told outside of conversations. */
  readonly about: About | null;
  /** It says what the agent was told: only for those who ask for that. */
  readonly observation: boolean;
  readonly #params: object;
  #head: string | undefined;
  readonly #texts = new Map<number | null, Buffer>();
  #place: string | undefined;

  private constructor(
    method: NotificationName,
    params: object,
    { seq, part, journal_id }: Place,
    { about = null, observation = false }: { about?: About | null; observation?: boolean } = {},
  ) {
    this.method = method;
    this.seq = seq;
    this.part = part;
    this.journal_id = journal_id;
    this.about = about;
    this.observation = observation;
    this.#params = params;
  }

  static ofNotification(
    { kind, notification, seq }: Omit<Push, "user_id">,
    journal_id: JournalId,
    part?: number,
  ): PushFrame {
    return new PushFrame(`notification/${kind}`, { notification }, { seq, part, journal_id });
  }

  /** What is there when a client connects: it is told, but no place from which to go on. */
  static ofWaiting({ notification, seq }: Pick<Push, "notification" | "seq">, journal_id: JournalId): PushFrame {
    return new PushFrame("notification/created", { notification, waiting: true }, { seq, journal_id });
  }

  static ofThread({ method, params, seq, observation }: ThreadPush, journal_id: JournalId, part?: number): PushFrame {
    return new PushFrame(method, params, { seq, part, journal_id }, { about: params, observation });
  }

  /** Where a client is that has it. */
  get place(): string {
    this.#place ??= cursorText(this.journal_id, this.seq, this.part);
    return this.#place;
  }

  /** `prev` is the `seq` of the frame that this client had before; null for its first. */
  after(prev: number | null): Buffer {
    let text = this.#texts.get(prev);
    if (text === undefined) {
      const { part, journal_id } = this;
      const tail = `${part === undefined ? "" : `,"part":${part}`},"journal_id":"${journal_id}"}}`;
      text = Buffer.from(`${this.#written()}${prev}${tail}`);
      this.#texts.set(prev, text);
    }
    return text;
  }

  /** Up to what differs; not before somebody wants it. */
  #written(): string {
    const { method, seq } = this;
    this.#head ??= `{"jsonrpc":"2.0","method":"${method}","params":{${JSON.stringify(this.#params).slice(1, -1)},"seq":${seq},"prev_seq":`;
    return this.#head;
  }
}

/** The frames of a batch in the order of the journal, each for its user; those of one entry are numbered. */
export function* framesOf(
  { pushes, conversations }: ShownBatch,
  journal_id: JournalId,
): Generator<{ readonly user_id: string; readonly frame: PushFrame }> {
  const all = [...pushes, ...conversations].toSorted((one, other) => one.seq - other.seq);
  let part = 0;
  for (const [at, push] of all.entries()) {
    const { seq, user_id } = push;
    part = all[at - 1]?.seq === seq ? part + 1 : 1;
    const alone = part === 1 && all[at + 1]?.seq !== seq;
    const numbered = alone ? undefined : part;
    const frame =
      "notification" in push
        ? PushFrame.ofNotification(push, journal_id, numbered)
        : PushFrame.ofThread(push, journal_id, numbered);
    yield { user_id, frame };
  }
}

function frame(method: NotificationName, params: object): Buffer {
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", method, params }));
}

/** A state, not a step: it has no `prev_seq`, and a newer one takes its place. */
export function countsFrame(counts: Counts, seq: number, journal_id: JournalId): Buffer {
  return frame("inbox/counts", { ...counts, seq, journal_id });
}

/** It may be dropped: all that counts is in the journal, and pushed from there. */
export function progressFrame(progress: Progress & { readonly type: "text" }, after_seq: number): Buffer {
  const { turn_id, thread_id, delta, offset } = progress;
  return frame("turn/progress", { turn_id, thread_id, delta, offset, after_seq });
}

export function logFrame(line: LogLine): Buffer {
  return frame("runtime/log", line);
}

export function heartbeatFrame(journal_id: JournalId, seq: number | null, up_to_seq: number): Buffer {
  return frame("stream/heartbeat", { journal_id, seq, up_to_seq });
}

/** What of the journal can be told. */
export interface Bounds {
  readonly journal_id: JournalId;
  readonly oldest_seq: number;
  readonly newest_seq: number;
}

export function resetFrame(reason: ResetReason, { journal_id, oldest_seq, newest_seq }: Bounds): Buffer {
  return frame("stream/reset", { reason, journal_id, oldest_seq, newest_seq });
}
