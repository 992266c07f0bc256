/** What the agent reads by itself: what waits for it, and, to know only, what the user was shown. */
import { ageOf } from "../agent/block/age.js";
import { cleaned, cut, fenced, withoutTags } from "../agent/block/fence.js";
import { isSystemChannel } from "../domain/axes.js";
import { InvalidInputError } from "../domain/errors.js";
import { type NotificationId, notificationId } from "../domain/ids.js";
import { userPrincipal } from "../domain/principal.js";
import { isoTime } from "../domain/time.js";
import type { Turn } from "../domain/turn.js";
import { newNonce } from "../platform/secret.js";
import type { ListFilter, Store, Stored } from "../store/contract.js";
import type { ToolOutcome } from "./tools.js";

export interface Reading {
  readonly what: "pending" | "inbox" | "floor";
  readonly after?: string | undefined;
}

const SHOWN = 20;
/** Of one of many; one that is asked for by its id is shown whole. */
const CHARS_MAX = 1_000;
/** A filter that matches little asks for further pages. */
const PAGES_MAX = 10;

export async function readOne(store: Store, turn: Turn, id: string): Promise<ToolOutcome> {
  const stored = await store.get(userPrincipal(turn.user_id), notificationId(id));
  if (stored === undefined || !concerns(stored, turn))
    return { how: "failure", output: "there is no such notification in this conversation or in the user's inbox" };
  const nonce = newNonce();
  const { directive } = stored.notification;
  const instruction =
    directive === null ? "" : `\n  Instruction: ${withoutTags(cleaned(directive), nonce).split("\n").join("\n  > ")}`;
  return { how: "success", output: entry(stored, nonce, store.now(), Number.POSITIVE_INFINITY) + instruction };
}

/** This conversation's, or the user's own. */
function concerns({ delivery }: Stored, { thread_id }: Turn): boolean {
  return delivery.channel === "inbox" || delivery.thread_id === null || delivery.thread_id === thread_id;
}

export async function readMany(store: Store, turn: Turn, { what, after }: Reading): Promise<ToolOutcome> {
  const found = new Map<NotificationId, Stored>();
  let next: string | null = after ?? null;
  for (let page = 0; page < PAGES_MAX && found.size < SHOWN; page += 1) {
    let answer: Awaited<ReturnType<Store["list"]>>;
    try {
      answer = await store.list(userPrincipal(turn.user_id), {
        ...filterFor(what, turn),
        limit: SHOWN - found.size,
        ...(next === null ? {} : { after: next }),
      });
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      return { how: "failure", output: "after: is not where another page ended" };
    }
    for (const stored of answer.stored) if (isOf(what, stored, turn)) found.set(stored.notification.id, stored);
    next = answer.next;
    if (next === null) break;
  }
  const nonce = newNonce();
  const lines = [...found.values()].map((stored) => entry(stored, nonce, store.now(), CHARS_MAX));
  if (lines.length === 0) lines.push(next === null ? "(nothing)" : "(nothing on this page)");
  if (next !== null) lines.push(`More: call \`read_notifications\` with \`after\` ${JSON.stringify(next)}.`);
  return { how: "success", output: lines.join("\n") };
}

function filterFor(what: Reading["what"], { user_id, thread_id }: Turn): Omit<ListFilter, "limit"> {
  switch (what) {
    case "pending":
      return { user_id, state: "PENDING" };
    case "inbox":
      return { user_id, channel: "inbox" };
    case "floor":
      return { user_id, thread_id, channel: "floor" };
  }
}

function isOf(what: Reading["what"], stored: Stored, turn: Turn): boolean {
  return what !== "pending" || (!isSystemChannel(stored.delivery.channel) && concerns(stored, turn));
}

function entry({ notification, delivery }: Stored, nonce: string, now: number, charsMax: number): string {
  const content = cleaned(notification.content);
  const shown = content.length > charsMax ? cut(content, charsMax) : content;
  const remarks = [
    delivery.state,
    notification.severity,
    ageOf(isoTime(notification.created_at), now),
    ...(shown === content ? [] : ["shortened"]),
  ];
  const head = `- \`${notification.id}\`${delivery.count > 1 ? ` ×${delivery.count}` : ""} (${remarks.join(", ")}):`;
  const data = fenced(shown, notification.kind, nonce);
  return `${head}${data.includes("\n") ? "\n" : " "}${data}`;
}
