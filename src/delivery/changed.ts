/**
 * What has changed in the ledger since somebody last asked, whoever owns it: each notification once, as it is now. Found by
 * the journal, so that it costs what has happened since, and not what there is.
 */
import { setMaxListeners } from "node:events";
import { InvalidInputError } from "../domain/errors.js";
import type { NotificationId } from "../domain/ids.js";
import type { JournalEntry } from "../domain/journal.js";
import type { NotificationView } from "../domain/notification.js";
import { mayAct, type Principal } from "../domain/principal.js";
import { viewOf } from "../domain/view.js";
import { pause } from "../platform/timers.js";
import type { Store } from "../store/contract.js";

export interface ChangedRequest {
  /** The `next` of an earlier answer; without it only that is answered: from now on. */
  readonly after: string | undefined;
  readonly limit: number;
  /** How much the answer may come to; one goes in whatever its size. */
  readonly bytes_max: number;
  /** If nothing has changed: how long to wait for something that does. */
  readonly wait_ms: number;
  /** Nobody wants it any more. */
  readonly over: AbortSignal;
}

export interface Changed {
  /** As they are now, those that changed first first. */
  notifications: NotificationView[];
  /** Where to go on. */
  next: string;
  /** There is more already. */
  more: boolean;
  /** What came after the cursor cannot be told whole: read anew what is shown, and go on with `next`. */
  reset: boolean;
}

const PAGE = 256;
/** Pages of the journal that one answer is looked for in. */
const PAGES_MAX = 16;

/** All up to this entry; with a part, all before it and so many of the notifications that it is about. */
interface Place {
  readonly seq: number;
  readonly part: number;
}

export async function changed(store: Store, principal: Principal, request: ChangedRequest): Promise<Changed> {
  const last = await store.lastSeq();
  if (request.after === undefined) return { ...nothing({ seq: last, part: 0 }), reset: false };
  const after = placeOf(request.after);
  if (after.seq > last) return { ...nothing({ seq: last, part: 0 }), reset: true };
  const found = await read(store, principal, request, after);
  if (found.notifications.length > 0 || found.more || found.reset || request.wait_ms === 0) return found;
  return waitFor(store, principal, request, placeOf(found.next));
}

function nothing(next: Place): Changed {
  return { notifications: [], next: textOf(next), more: false, reset: false };
}

async function read(store: Store, principal: Principal, request: ChangedRequest, after: Place): Promise<Changed> {
  const notifications: NotificationView[] = [];
  const seen = new Set<NotificationId>();
  let room = request.bytes_max;
  let place = after;
  const answer = (more: boolean): Changed => ({ notifications, next: textOf(place), more, reset: false });
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const from = place.part === 0 ? place.seq : place.seq - 1;
    const page = await store.entries(principal, from, PAGE);
    if (from + 1 < page.floor) return { ...nothing({ seq: await store.lastSeq(), part: 0 }), reset: true };
    for (const entry of page.entries) {
      for (const [index, id] of idsOf(entry).entries()) {
        const isKnown = entry.seq === place.seq && index < place.part;
        if (isKnown || seen.has(id)) continue;
        const stored = await store.get(principal, id);
        if (stored === undefined) continue;
        const view = viewOf(stored);
        room -= Buffer.byteLength(JSON.stringify(view));
        const isFull = notifications.length >= request.limit || (room < 0 && notifications.length > 0);
        if (isFull) {
          place = index === 0 ? { seq: entry.seq - 1, part: 0 } : { seq: entry.seq, part: index };
          return answer(true);
        }
        seen.add(id);
        notifications.push(view);
      }
    }
    place = { seq: Math.max(page.after, place.seq), part: 0 };
    if (page.end) return answer(false);
  }
  return answer(true);
}

function idsOf(entry: JournalEntry): NotificationId[] {
  return [...new Set(entry.changes.map(({ notification_id }) => notification_id))];
}

/** Woken by commits that are about what the principal may see. */
async function waitFor(store: Store, principal: Principal, request: ChangedRequest, from: Place): Promise<Changed> {
  const { wait_ms, over } = request;
  let look = new AbortController();
  let ended = false;
  const end = () => {
    ended = true;
    look.abort();
  };
  const stopListening = store.onCommit((_seq, users) => {
    if (users === undefined || [...users].some((user) => mayAct(principal, user))) look.abort();
  });
  const time = new AbortController();
  void pause(wait_ms, time.signal).then(end);
  // However many wait on it: each takes its listener away.
  setMaxListeners(0, over);
  over.addEventListener("abort", end);
  try {
    if (over.aborted) end();
    for (let place = from; ; ) {
      // What came between the reading before and the listening is found by this one.
      const found = await read(store, principal, request, place);
      if (found.notifications.length > 0 || found.more || found.reset || ended) return found;
      place = placeOf(found.next);
      if (!look.signal.aborted) await pause(wait_ms, look.signal);
      if (!ended) look = new AbortController();
    }
  } finally {
    time.abort();
    stopListening();
    over.removeEventListener("abort", end);
  }
}

function placeOf(text: string): Place {
  const [, seq, part = "0"] = /^([0-9]{1,15})(?:\.([0-9]{1,9}))?$/.exec(text) ?? [];
  if (seq === undefined) throw new InvalidInputError("after", "must be the `next` of an earlier answer");
  return { seq: Number(seq), part: Number(part) };
}

function textOf({ seq, part }: Place): string {
  return part === 0 ? String(seq) : `${seq}.${part}`;
}
