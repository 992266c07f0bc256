/** What a conversation shows, line by line: its items, where turns ended otherwise than they should, and what is said now. */
import type { ThreadItem } from "tidings/client";
import type { Conversation, PageTurn } from "../../live/threads_state.js";

type Of<Type extends ThreadItem["type"]> = Extract<ThreadItem, { type: Type }>;
export type MessageItem = Of<"message">;
export type ToolCallItem = Of<"tool_call">;
export type NoticeItem = Of<"notice">;
export type ObservationItem = Of<"observation">;
/** Words that wait: for a turn of their own, or for the running one to take them up. */
export type WaitingItem = Of<"queued"> | Of<"steer">;

export type Row =
  | {
      readonly kind: "message";
      readonly key: string;
      readonly item: MessageItem;
      /** It says who speaks. */
      readonly head: boolean;
      /** Who or what has cut it off. */
      readonly cut: string | null;
    }
  | { readonly kind: "system"; readonly key: string; readonly item: MessageItem; readonly opens: boolean }
  | { readonly kind: "tool_call"; readonly key: string; readonly item: ToolCallItem }
  | { readonly kind: "notice"; readonly key: string; readonly item: NoticeItem }
  | { readonly kind: "observed"; readonly key: string; readonly items: readonly ObservationItem[] }
  | { readonly kind: "turn_end"; readonly key: string; readonly turn: PageTurn; readonly words: string }
  | {
      readonly kind: "saying";
      readonly key: string;
      readonly turn_id: string;
      readonly text: string;
      readonly head: boolean;
    };

export function waitingIn({ items }: Conversation): WaitingItem[] {
  return items.filter((item): item is WaitingItem => item.type === "queued" || item.type === "steer");
}

/** `isOwn`: whoever reads it is the user who speaks in it. */
export function rowsOf(
  { items, turns }: Pick<Conversation, "items" | "turns">,
  { observations, isOwn }: { readonly observations: boolean; readonly isOwn: boolean },
): Row[] {
  const last = lastOf(items);
  const begun = new Set<string>();
  const rows: Row[] = [];
  for (const [index, item] of items.entries()) {
    const { turn_id } = item;
    const turn = turn_id === null ? undefined : turns.get(turn_id);
    const row = rowOf(item, rows, turn, { isLast: last.get(turn_id ?? "")?.said === index, begun, turns, isOwn });
    if (row !== null && (observations || row.kind !== "observed")) rows.push(row);
    if (turn_id !== null) begun.add(turn_id);
    if (turn !== undefined && last.get(turn.turn_id)?.any === index) {
      const { said } = last.get(turn.turn_id) ?? {};
      const answer = said === undefined ? undefined : items[said];
      const words = answer?.status === "interrupted" ? null : endOf(turn, { turns, isOwn });
      if (words !== null) rows.push({ kind: "turn_end", key: `end ${turn.turn_id}`, turn, words });
    }
  }
  return rows;
}

interface Around {
  /** The last answer of its turn. */
  readonly isLast: boolean;
  /** Turns that have items before it. */
  readonly begun: ReadonlySet<string>;
  readonly turns: Conversation["turns"];
  readonly isOwn: boolean;
}

function rowOf(item: ThreadItem, before: Row[], turn: PageTurn | undefined, around: Around): Row | null {
  const key = item.item_id;
  switch (item.type) {
    case "message": {
      if (item.role === "system") {
        const opens = turn?.source === "system" && !around.begun.has(turn.turn_id);
        return { kind: "system", key, item, opens };
      }
      const head = !continues(before.at(-1), item);
      const cut = item.status !== "interrupted" ? null : cutBy(around.isLast ? turn : undefined, around);
      return { kind: "message", key, item, head, cut };
    }
    case "tool_call":
      return { kind: "tool_call", key, item };
    case "notice":
      return { kind: "notice", key, item };
    case "observation": {
      const previous = before.at(-1);
      if (previous?.kind !== "observed" || previous.items[0]?.content.carrier_id !== item.content.carrier_id)
        return { kind: "observed", key, items: [item] };
      before.pop();
      return { ...previous, items: [...previous.items, item] };
    }
    default:
      return null;
  }
}

/** Whether the same one speaks on. */
function continues(row: Row | undefined, { role, turn_id }: MessageItem): boolean {
  if (row?.kind === "message") return row.item.role === role && row.item.turn_id === turn_id;
  return row?.kind === "tool_call" && role === "assistant" && row.item.turn_id === turn_id;
}

export function speaksOn(row: Row | undefined, turn_id: string): boolean {
  if (row?.kind === "message") return row.item.role === "assistant" && row.item.turn_id === turn_id;
  return row?.kind === "tool_call" && row.item.turn_id === turn_id;
}

function lastOf(items: readonly ThreadItem[]): Map<string, { any: number; said?: number }> {
  const last = new Map<string, { any: number; said?: number }>();
  for (const [index, item] of items.entries()) {
    if (item.turn_id === null || item.type === "queued" || item.type === "steer") continue;
    const known = last.get(item.turn_id);
    const said = item.type === "message" && item.role === "assistant" ? index : known?.said;
    last.set(item.turn_id, { any: index, ...(said === undefined ? {} : { said }) });
  }
  return last;
}

function cutBy(turn: PageTurn | undefined, around: Pick<Around, "turns" | "isOwn">): string {
  return (turn === undefined ? null : endOf(turn, around)) ?? "by an error of the provider; the agent went on";
}

/** Why a turn ended otherwise than with its answer; null if it did not. */
function endOf(
  { state, note, continued_by }: PageTurn,
  { turns, isOwn }: Pick<Around, "turns" | "isOwn">,
): string | null {
  switch (state) {
    case "failed":
      return note ?? "something went wrong";
    case "stopped":
      return note === null || note === "stopped by the user" ? (isOwn ? "by you" : "by the user") : note;
    case "interrupted": {
      const next = continued_by === null ? undefined : turns.get(continued_by);
      if (next?.source === "system") return "by something critical; the agent goes on in the turn that follows";
      return next === undefined ? (note ?? "by another turn") : `by ${isOwn ? "your" : "the user's"} reply`;
    }
    default:
      return null;
  }
}
