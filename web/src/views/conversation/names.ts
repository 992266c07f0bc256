import type { ThreadSummary } from "../../live/threads.js";

const MINTED = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** What a conversation is called: by the user's first words, else by the id that its host chose. */
export function nameOf({ title, thread_id }: Pick<ThreadSummary, "title" | "thread_id">): string {
  return title ?? (MINTED.test(thread_id) ? "New conversation" : thread_id);
}
