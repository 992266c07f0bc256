/** What a hosted agent has started, and has yet to hear of. */
import type { HandleRecord, NewHandleRecord } from "../../domain/handle.js";
import type { ThreadId } from "../../domain/ids.js";
import type { Principal } from "../../domain/principal.js";
import type { HandleBounds } from "../contract.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";

export function recordHandle(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  { thread_id, id, tool, state, detail }: NewHandleRecord,
): HandleRecord {
  const { user_id } = core.threads.owned(principal, thread_id);
  const body = { type: "handle", handle: id, tool, state, detail, changes: [] } as const;
  const generation = core.journal.append(transaction, user_id, thread_id, body);
  const record: HandleRecord = { thread_id, user_id, id, tool, state, generation, at: transaction.at, detail };
  core.handles.put(record);
  return record;
}

/** What was read goes first, then what is oldest. */
export function forgetHandles(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  thread_id: ThreadId,
  { retention_ms, kept, chars }: HandleBounds,
): number {
  core.threads.owned(principal, thread_id);
  const stopped = core.handles.stopped(thread_id);
  let room = kept;
  let charsLeft = chars;
  let gone = 0;
  for (const one of [...stopped.filter(({ read }) => !read), ...stopped.filter(({ read }) => read)]) {
    room -= 1;
    charsLeft -= one.chars;
    if (room >= 0 && charsLeft >= 0 && transaction.at - one.at < retention_ms) continue;
    transaction.wrote = true;
    core.handles.remove(thread_id, one.id);
    gone += 1;
  }
  return gone;
}
