/** What a process that is gone has left of its calls in the background. */
import { type HandleRecord, handleSubject, isHandleOver } from "../../domain/handle.js";
import type { ThreadId } from "../../domain/ids.js";
import { HOST } from "../../domain/principal.js";
import type { HandlePlace, Store } from "../../store/contract.js";
import type { HandleLimits } from "./limits.js";

const PAGE = 500;
/** So many are told together: they share their commits. */
const TOGETHER = 100;
const LOST = "its host was gone before it was done; what it had done by then is unknown";

/** What has not stopped is over, and all of it is told: whether it was before, the producer's id of the event says. */
export async function recoverHandles(
  store: Store,
  { retention_ms, kept, kept_chars }: HandleLimits,
  tell: (record: HandleRecord) => Promise<void>,
): Promise<void> {
  const threads = new Map<ThreadId, boolean>();
  for (let after: HandlePlace | null = null; ; ) {
    const records: readonly HandleRecord[] = await store.handles(after, PAGE);
    for (const { thread_id } of records)
      if (!threads.has(thread_id)) threads.set(thread_id, (await store.thread(HOST, thread_id)).state === "open");
    for (let at = 0; at < records.length; at += TOGETHER) {
      const over = await Promise.all(records.slice(at, at + TOGETHER).map((record) => ended(store, record)));
      await Promise.all(over.filter(({ thread_id }) => threads.get(thread_id) === true).map(tell));
    }
    const last = records.at(-1);
    if (last === undefined || records.length < PAGE) break;
    after = last;
  }
  for (const [thread_id, open] of threads)
    await store.forgetHandles(HOST, thread_id, { retention_ms, kept: open ? kept : 0, chars: kept_chars });
}

async function ended(store: Store, record: HandleRecord): Promise<HandleRecord> {
  if (isHandleOver(record.state)) return record;
  const { thread_id, id, tool, generation } = record;
  const { emits } = record.detail;
  // What it asked is asked no more.
  if (record.state === "waiting") await store.observe(HOST, thread_id, handleSubject(id, generation));
  const error = { message: LOST, transient: true };
  const detail = { error, ...(emits === undefined ? {} : { emits }) };
  return store.recordHandle(HOST, { thread_id, id, tool, state: "failed", detail });
}
