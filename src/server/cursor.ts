/** Where a client is in a journal: after this entry, or after this part of what the entry tells. */
import { z } from "zod";
import { LIMITS } from "../domain/limits.js";
import { wordSchema } from "../domain/parse.js";

export const cursorSchema = z.strictObject({
  journal_id: wordSchema(LIMITS.idChars),
  after_seq: z.int().min(0),
  /** Of the entry `after_seq`, the last part that the client has; without it all of them. */
  after_part: z.int().min(1).optional(),
});

export interface Cursor {
  readonly journal_id: string;
  readonly after_seq: number;
  readonly after_part?: number | undefined;
}

/** Whether a frame is beyond what a client there has. */
export function isAfter(
  { seq, part = 1 }: { readonly seq: number; readonly part?: number | undefined },
  { after_seq, after_part }: Cursor,
): boolean {
  return seq > after_seq || (seq === after_seq && part > (after_part ?? part));
}

/** The text of the place that was asked for last: most clients are at the same one, and each keeps it. */
let latest = "";

/** `JOURNAL:SEQ` or `JOURNAL:SEQ.PART`, as the ids of server-sent events. */
export function cursorText(journal_id: string, seq: number, part?: number): string {
  const text = `${journal_id}:${seq}${part === undefined ? "" : `.${part}`}`;
  if (text !== latest) latest = text;
  return latest;
}

/** Undefined for what is none. */
export function cursorOf(text: string): Cursor | undefined {
  const [, journal_id, seq, part] = /^([\w-]{1,200}):(\d{1,15})(?:\.([1-9]\d{0,8}))?$/.exec(text) ?? [];
  if (journal_id === undefined || seq === undefined) return undefined;
  return { journal_id, after_seq: Number(seq), ...(part === undefined ? {} : { after_part: Number(part) }) };
}
