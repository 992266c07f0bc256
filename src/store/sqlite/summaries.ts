/** What a list of conversations shows of each, without reading them. */
import type { ThreadId, UserId } from "../../domain/ids.js";
import type { JournalEntry, Thread } from "../../domain/journal.js";
import type { ThreadSummary } from "../contract.js";
import type { Core } from "./core.js";
import type { Lists } from "./list.js";

/** Among so many entries at its beginning the user's first words are looked for. */
const BEGINNING = 4;

export function summariesOf(
  core: Core,
  lists: Lists,
  user_id: UserId,
  threads: readonly Thread[],
): readonly ThreadSummary[] {
  if (threads.length === 0) return [];
  const unread = lists.unreadByThread(user_id);
  return threads.map((thread) => {
    const live = core.turns.liveIn(thread.id);
    const active = live.find(({ state }) => state === "active");
    return {
      thread,
      active_at: core.threads.activeAt(thread.id),
      first_words: firstWords(core, thread.id),
      active_turn: active === undefined || active.internal ? null : active.id,
      queued: live.filter(({ state }) => state === "queued").length,
      unread: unread.get(thread.id) ?? 0,
    };
  });
}

/** One entry after the other: mostly the first has them. */
function firstWords(core: Core, thread_id: ThreadId): string | null {
  for (let after = 0, read = 0; read < BEGINNING; read += 1) {
    const [entry] = core.journal.conversation(thread_id, after, 1);
    if (entry === undefined) return null;
    const words = wordsOf(entry);
    if (words !== null) return words;
    after = entry.seq;
  }
  return null;
}

function wordsOf(entry: JournalEntry): string | null {
  if (entry.type !== "turn" && entry.type !== "carrier") return null;
  if (entry.type === "turn" && entry.state === "queued" && entry.content !== null) return entry.content;
  for (const item of entry.items) if (item.type === "chat_request" && item.source === "user") return item.content;
  return null;
}
