/** A conversation as people see it: messages, tool calls, what the system showed, and what the agent was told. */
import type { ChatRequest, Item, ToolCallResponse } from "../domain/conversation.js";
import type { NotificationId, ThreadId, TurnId } from "../domain/ids.js";
import type { JournalEntry } from "../domain/journal.js";
import type { JsonObject } from "../domain/json.js";
import type { NotificationView } from "../domain/notification.js";
import { isoTime } from "../domain/time.js";
import { isTurnOver } from "../domain/turn.js";
import { viewOf } from "../domain/view.js";
import type { Shown } from "../store/contract.js";

/** Unique in its journal, and in the order of the conversation. */
type ItemId = string;

interface ItemFields {
  item_id: ItemId;
  thread_id: ThreadId;
  turn_id: TurnId | null;
  seq: number;
  timestamp: string;
  /** Of a turn that the user does not see. */
  internal?: true;
}

export type ThreadItem = ItemFields &
  (
    | {
        type: "message";
        /** `system`: the sentence with which the system opened a turn, or went on with one. */
        role: "user" | "assistant" | "system";
        status: "completed" | "interrupted";
        /** `steered`: the user said it while the turn was under way, and that has taken it up. */
        content: { text: string; steered?: true };
      }
    /** A message that waits for its turn. */
    | { type: "queued"; role: "user"; status: "pending"; content: { text: string } }
    /** Words for the running turn, which has not taken them up. */
    | { type: "steer"; role: "user"; status: "pending"; content: { text: string } }
    | {
        type: "tool_call";
        status: "pending" | "completed" | "failed";
        content: { call_id: string; name: string; input: JsonObject; output: string | null };
      }
    /** The system showed the user a notification in the conversation. */
    | { type: "notice"; role: "system"; status: NotificationView["state"]; content: { notification: NotificationView } }
    /** What the agent was told. Nobody is shown it who does not ask; it counts for nothing. */
    | {
        type: "observation";
        role: "system";
        /** What was not sent after all is withdrawn. */
        status: "open" | "sent";
        content: {
          text: string;
          source: string;
          notification_id: NotificationId;
          revision: number;
          carrier_id: string;
        };
      }
  );

/** Reads entries one after the other, and keeps in mind what later ones change. */
export class ItemReader {
  readonly #items: ThreadItem[] = [];
  readonly #calls = new Map<string, Extract<ThreadItem, { type: "tool_call" }>>();
  readonly #steers = new Map<string, ThreadItem>();
  readonly #queued = new Map<TurnId, Extract<ThreadItem, { type: "queued" }>>();
  readonly #observed = new Map<string, Extract<ThreadItem, { type: "observation" }>[]>();
  readonly #internal = new Set<TurnId>();

  /** Turns of which the user sees nothing, whether or not the entry that says so is read. */
  hide(turn_id: TurnId): void {
    this.#internal.add(turn_id);
  }

  /** It has begun, is over or was taken back: nothing of it waits any more. */
  settle(turn_id: TurnId, over: boolean): void {
    this.#drop(this.#queued.get(turn_id));
    if (over) this.#unheard(turn_id);
  }

  /** Whether something is still to come of what was read: the result of a call, who took up a steer, whether it was sent. */
  get isUnfinished(): boolean {
    return (
      [...this.#calls.values()].some(({ status }) => status === "pending") ||
      [...this.#steers.values(), ...this.#queued.values()].some((waiting) => this.#items.includes(waiting)) ||
      [...this.#observed.values()].flat().some((item) => item.status === "open" && this.#items.includes(item))
    );
  }

  /** Takes from a later entry what it says of what was read, and nothing else. */
  finish(entry: JournalEntry): void {
    if (entry.type !== "turn" && entry.type !== "carrier") return;
    if (entry.type === "turn" && this.#queued.has(entry.turn_id)) this.#queue(entry);
    if (entry.type === "carrier") this.#become(entry);
    for (const item of entry.items) {
      if (item.type === "tool_call_response") this.#answer(item, entry.turn_id);
      if (item.type === "chat_request" && item.steer !== undefined)
        this.#drop(this.#steers.get(`${entry.turn_id} ${item.steer}`));
    }
  }

  read(entry: JournalEntry): void {
    if (entry.type !== "turn" && entry.type !== "carrier") return;
    const { turn_id } = entry;
    if (entry.type === "turn" && entry.internal) this.#internal.add(entry.turn_id);
    if (entry.type === "turn") this.#queue(entry);
    for (const [index, item] of entry.items.entries()) this.#add(entry, item, index, turn_id);
    if (entry.type === "carrier") this.#observe(entry);
    if (entry.type === "turn" && isTurnOver(entry.state)) this.#unheard(entry.turn_id);
  }

  show({ seq, stored }: Shown): void {
    const view = viewOf(stored);
    const { notification, delivery } = stored;
    this.#items.push({
      item_id: `${seq}.${notification.id}`,
      thread_id: delivery.thread_id ?? ("" as ThreadId),
      turn_id: null,
      seq,
      timestamp: isoTime(notification.created_at),
      type: "notice",
      role: "system",
      status: view.state,
      content: { notification: view },
    });
  }

  /** In the order of the conversation. */
  items({ observe, internal }: { observe: boolean; internal: boolean }): ThreadItem[] {
    return this.#items
      .filter((item) => (observe || item.type !== "observation") && (internal || item.internal !== true))
      .toSorted((one, other) => one.seq - other.seq);
  }

  #add(entry: JournalEntry, item: Item, index: number, turn_id: TurnId | null): void {
    const fields = this.#fields(entry, index, turn_id);
    switch (item.type) {
      case "chat_request": {
        if (item.steer !== undefined) this.#drop(this.#steers.get(`${turn_id} ${item.steer}`));
        const role = item.source === "user" ? "user" : "system";
        const content = { text: item.content, ...(isTakenUp(item, entry) ? { steered: true as const } : {}) };
        this.#items.push({ ...fields, type: "message", role, status: "completed", content });
        return;
      }
      case "chat_response":
        if (item.content.trim() === "") return;
        this.#items.push({
          ...fields,
          type: "message",
          role: "assistant",
          status: item.truncated === true ? "interrupted" : "completed",
          content: { text: item.content },
        });
        return;
      case "told_user": {
        // From a turn that the user does not see, the words come by what was promoted with them, and are shown there.
        const content = { text: item.content };
        this.#items.push({ ...fields, type: "message", role: "assistant", status: "completed", content });
        return;
      }
      case "steer": {
        const content = { text: item.content };
        const steer: ThreadItem = { ...fields, type: "steer", role: "user", status: "pending", content };
        this.#steers.set(`${turn_id} ${item.steer}`, steer);
        this.#items.push(steer);
        return;
      }
      case "tool_call_request": {
        const content = { call_id: item.id, name: item.name, input: item.input, output: null };
        const call: Extract<ThreadItem, { type: "tool_call" }> = {
          ...fields,
          type: "tool_call",
          status: "pending",
          content,
        };
        this.#calls.set(`${turn_id} ${item.id}`, call);
        this.#items.push(call);
        return;
      }
      case "tool_call_response":
        this.#answer(item, turn_id);
        return;
    }
  }

  /** Waits until it begins, or is taken back. */
  #queue(entry: Extract<JournalEntry, { type: "turn" }>): void {
    const { turn_id, state, content } = entry;
    const known = this.#queued.get(turn_id);
    if (state !== "queued") this.#drop(known);
    else if (content !== null && known !== undefined) known.content = { text: content };
    else if (content !== null) {
      const fields = { ...this.#fields(entry, 0, turn_id), item_id: `${entry.seq}.queued` };
      const queued = {
        ...fields,
        type: "queued",
        role: "user",
        status: "pending",
        content: { text: content },
      } as const;
      this.#queued.set(turn_id, queued);
      this.#items.push(queued);
    }
  }

  #answer({ id, is_error, output }: ToolCallResponse, turn_id: TurnId | null): void {
    const call = this.#calls.get(`${turn_id} ${id}`);
    if (call === undefined) return;
    call.status = is_error ? "failed" : "completed";
    call.content = { ...call.content, output };
  }

  /** Words that a turn has not taken up go with it. */
  #unheard(turn_id: TurnId): void {
    for (const item of this.#steers.values()) if (item.turn_id === turn_id) this.#drop(item);
  }

  /** What was told was sent, or not after all. */
  #become({ carrier_id, state }: Extract<JournalEntry, { type: "carrier" }>): void {
    for (const item of this.#observed.get(carrier_id) ?? [])
      if (state === "void") this.#drop(item);
      else item.status = state;
  }

  #observe(entry: Extract<JournalEntry, { type: "carrier" }>): void {
    const { carrier_id, state, embedded, turn_id } = entry;
    this.#become(entry);
    if (embedded.length === 0 || state === "void") return;
    const observed = embedded.map(({ id, revision, kind, content }) => ({
      ...this.#fields(entry, 0, turn_id),
      item_id: `${entry.seq}.told.${id}`,
      type: "observation" as const,
      role: "system" as const,
      status: state,
      content: { text: content, source: kind, notification_id: id, revision, carrier_id },
    }));
    this.#observed.set(carrier_id, observed);
    this.#items.push(...observed);
  }

  #fields(entry: JournalEntry, index: number, turn_id: TurnId | null): ItemFields {
    const { seq, at, thread_id } = entry;
    const internal = turn_id !== null && this.#internal.has(turn_id);
    return {
      item_id: `${seq}.${index}`,
      thread_id: thread_id ?? ("" as ThreadId),
      turn_id,
      seq,
      timestamp: isoTime(at),
      ...(internal ? { internal: true as const } : {}),
    };
  }

  #drop(item: ThreadItem | undefined): void {
    const at = item === undefined ? -1 : this.#items.indexOf(item);
    if (at >= 0) this.#items.splice(at, 1);
  }
}

/** Words for a turn that it ends with, and that no other goes on with, stay in the conversation: nobody has heard them. */
function isTakenUp({ steer }: ChatRequest, entry: JournalEntry): boolean {
  if (steer === undefined) return false;
  return entry.type !== "turn" || !isTurnOver(entry.state) || entry.continued_by !== null;
}
