/** What agents know of files, and what is still to be told of them. */
import type { ThreadId } from "../../domain/ids.js";
import type { KnownFile } from "../../domain/known_file.js";
import type { Principal } from "../../domain/principal.js";
import { parseSubject } from "../../domain/subject.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { rowsOf } from "./judgement.js";

/** Nothing is kept of a thread that is over. */
export function recordFiles(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  thread_id: ThreadId,
  files: readonly KnownFile[],
  forgotten: readonly string[],
): void {
  const { user_id, state } = core.threads.owned(principal, thread_id);
  if (state !== "open") return;
  transaction.wrote = true;
  for (const path of forgotten) core.knownFiles.remove(thread_id, path);
  for (const file of files) core.knownFiles.put({ ...file, thread_id, user_id });
}

/** Whether its agent is still to be told something about exactly this. */
export function isPendingAbout(core: Core, principal: Principal, thread_id: ThreadId, subject: string): boolean {
  const { id } = core.threads.owned(principal, thread_id);
  const { name } = parseSubject(subject);
  return [...core.threads.pendingAbout(id, name), ...core.threads.pendingBatches(id)].some((held) =>
    rowsOf(core, held).some(({ event }) => event.subject === subject),
  );
}
