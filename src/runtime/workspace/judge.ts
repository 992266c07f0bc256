/** What is to be said of a file that is another than its agent knows. */
import {
  type Announcement,
  type FileChange,
  type FileState,
  isSameState,
  type KnownFile,
} from "../../domain/known_file.js";

export type Verdict =
  | { readonly say: "nothing" }
  /** What is pending is still right. */
  | { readonly say: "no_more"; readonly next: KnownFile }
  /** It is as the agent knows it: what is pending is withdrawn. */
  | { readonly say: "back"; readonly next: KnownFile }
  /** `instead`: of what is pending. */
  | {
      readonly say: "change";
      readonly next: KnownFile & { readonly announced: Announcement };
      readonly instead: number | null;
    };

/** `pending`: the agent is still to be told what was announced. */
export function judge(record: KnownFile, state: FileState | null, pending: boolean): Verdict {
  const { announced } = record;
  const latest = announced === null ? record.seen : announced.state;
  if (isSameState(latest, state)) return { say: "nothing" };
  // What the agent was told it knows.
  const seen = pending ? record.seen : latest;
  if (announced !== null && pending) {
    const back = isSameState(seen, state);
    if (back && announced.overwritten !== true) return { say: "back", next: { ...record, announced: null } };
    if (back || announced.change === changeOf(seen, state))
      return { say: "no_more", next: { ...record, announced: { ...announced, state } } };
  }
  const generation = record.generation + 1;
  const next = { ...record, seen, generation, announced: { state, change: changeOf(seen, state), generation } };
  return { say: "change", next, instead: announced !== null && pending ? announced.generation : null };
}

function changeOf(seen: FileState | null, state: FileState | null): FileChange {
  if (state === null) return "deleted";
  return seen === null ? "created" : "modified";
}
