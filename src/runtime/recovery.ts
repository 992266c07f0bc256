/**
 * After a crash: a turn that is active when nobody runs it yet belongs to a process that is gone. It ends as failed, with
 * its history in order: each call that was under way has a result, so that nothing is run twice.
 */
import type { Item } from "../domain/conversation.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { numberInId } from "../platform/ids.js";
import type { Store } from "../store/contract.js";
import { closing } from "./closing.js";

const PAGE = 500;
const NOTE = "its host was gone before it was over";

/** Ends what a process that is gone has left; answers the turns that wait. */
export async function recover(store: Store): Promise<readonly Turn[]> {
  const live = await store.liveTurns(HOST, null);
  for (const turn of live.filter(({ state }) => state === "active")) {
    const items = closing(await itemsOf(store, turn));
    // A miss: the watchdog was here before.
    await store.endTurn(HOST, { turn_id: turn.id, state: "failed", items, note: NOTE });
  }
  return live.filter(({ state }) => state === "queued");
}

async function itemsOf(store: Store, turn: Turn): Promise<readonly Item[]> {
  const items: Item[] = [];
  let after = (numberInId(turn.id) ?? 1) - 1;
  for (;;) {
    const entries = await store.conversation(HOST, turn.thread_id, after, PAGE);
    for (const entry of entries)
      if ((entry.type === "turn" || entry.type === "carrier") && entry.turn_id === turn.id) items.push(...entry.items);
    const last = entries.at(-1);
    if (last === undefined) return items;
    after = last.seq;
  }
}
