/**
 * What a model has been told and has said, as its provider is sent it. It only grows: earlier messages never change, so
 * that a provider's prompt cache keeps working. The one exception is a block that never arrived.
 */
import {
  type CarrierBlock,
  type ChatResponse,
  type Item,
  isProviderVisible,
  type ToolCallRequest,
} from "../domain/conversation.js";
import { assert } from "../domain/errors.js";
import type { CarrierId, ThreadId, TurnId } from "../domain/ids.js";
import type { JournalEntry } from "../domain/journal.js";
import type { Principal } from "../domain/principal.js";
import { isTurnOver } from "../domain/turn.js";
import type { AssistantMessage, BlockForm, Message, ToolResult } from "../providers/model.js";
import type { Store } from "../store/contract.js";
import { closing } from "./closing.js";
import { INTERRUPTED } from "./tools.js";

const PAGE = 500;

export class History {
  readonly #messages: Message[] = [];
  /** Which message holds the block of which carrier. */
  readonly #carriers = new Map<CarrierId, number>();

  static async load(store: Store, principal: Principal, thread_id: ThreadId): Promise<History> {
    const history = new History();
    const turns = new Map<TurnId, Item[]>();
    let after = 0;
    for (;;) {
      const entries = await store.conversation(principal, thread_id, after, PAGE);
      for (const entry of entries) {
        history.#read(entry);
        history.#close(entry, turns);
      }
      const last = entries.at(-1);
      if (last === undefined) return history;
      after = last.seq;
    }
  }

  /** For the next request. A call that nothing answered is answered. */
  messages(): readonly Message[] {
    return this.#messages.flatMap((message, at) => {
      if (message.role !== "assistant" || message.calls.length === 0) return [message];
      return this.#messages[at + 1]?.role === "tools" ? [message] : [message, interruptedResults(message)];
    });
  }

  #read(entry: JournalEntry): void {
    // What somebody else's agent was told in this thread is not in this conversation.
    if (entry.type === "turn") this.append(entry.items, null);
    if (entry.type !== "carrier" || entry.turn_id === null) return;
    if (!this.#carriers.has(entry.carrier_id) && entry.block !== null && entry.state === "open")
      this.append(entry.items, { id: entry.carrier_id, block: entry.block });
    else if (entry.state === "void") this.withdraw(entry.carrier_id);
    else if (entry.block !== null) this.reform(entry.carrier_id, entry.block.form);
  }

  /** One that was ended by somebody else than its host, which was gone, has left things open. */
  #close(entry: JournalEntry, turns: Map<TurnId, Item[]>): void {
    if ((entry.type !== "turn" && entry.type !== "carrier") || entry.turn_id === null) return;
    const items = [...(turns.get(entry.turn_id) ?? []), ...entry.items];
    turns.set(entry.turn_id, items);
    if (entry.type !== "turn" || !isTurnOver(entry.state)) return;
    if (entry.state === "failed") this.append(closing(items), null);
    turns.delete(entry.turn_id);
  }

  /** What was said and done, and with it what was told: that goes with the newest message. */
  append(items: readonly Item[], carrier: { readonly id: CarrierId; readonly block: CarrierBlock } | null): void {
    for (const item of items) if (isProviderVisible(item)) this.#add(item);
    if (carrier === null) return;
    const at = this.#messages.length - 1;
    const newest = this.#messages[at];
    assert(newest !== undefined && newest.role !== "assistant", "a block goes with a message to the model");
    this.#messages[at] = { ...newest, block: carrier.block };
    this.#carriers.set(carrier.id, at);
  }

  /** The model was not told: its block is not replayed. */
  withdraw(id: CarrierId): void {
    const at = this.#carriers.get(id);
    const message = at === undefined ? undefined : this.#messages[at];
    if (at === undefined || message === undefined || message.role === "assistant") return;
    const { block: _, ...rest } = message;
    this.#messages[at] = rest;
    this.#carriers.delete(id);
  }

  /** The block went out in another form. */
  reform(id: CarrierId, form: BlockForm): void {
    const at = this.#carriers.get(id);
    const message = at === undefined ? undefined : this.#messages[at];
    if (at === undefined || message === undefined || message.role === "assistant" || message.block === undefined)
      return;
    this.#messages[at] = { ...message, block: { ...message.block, form } };
  }

  #add(item: Item): void {
    const newest = this.#messages.at(-1);
    switch (item.type) {
      case "chat_request":
        this.#messages.push({ role: "user", text: item.content });
        return;
      case "chat_response":
        // What was cut off before its first word is no answer.
        if (item.truncated !== true || item.content.trim() !== "") this.#messages.push(answerOf(item));
        return;
      case "tool_call_request":
        this.#addCall(item, newest);
        return;
      case "tool_call_response": {
        const { id, name, output, is_error } = item;
        const result: ToolResult = { id, name, output, is_error };
        if (newest?.role === "tools") this.#replaceNewest({ ...newest, results: [...newest.results, result] });
        else this.#messages.push({ role: "tools", results: [result] });
        return;
      }
      case "steer":
      case "told_user":
        return;
    }
  }

  #addCall({ id, name, input }: ToolCallRequest, newest: Message | undefined): void {
    const call = { id, name, input };
    if (newest?.role === "assistant") this.#replaceNewest({ ...newest, calls: [...newest.calls, call] });
    else this.#messages.push({ role: "assistant", text: "", calls: [call] });
  }

  #replaceNewest(message: Message): void {
    this.#messages[this.#messages.length - 1] = message;
  }
}

function answerOf({ content, truncated, original }: ChatResponse): AssistantMessage {
  return {
    role: "assistant",
    text: content,
    calls: [],
    ...(original === undefined ? {} : { original }),
    ...(truncated === undefined ? {} : { truncated }),
  };
}

function interruptedResults({ calls }: AssistantMessage): Message {
  const results = calls.map(({ id, name }) => ({ id, name, output: INTERRUPTED, is_error: true }));
  return { role: "tools", results };
}
