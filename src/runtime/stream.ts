/** The conversation stream: the journal of a thread in the serial form of its events. */
import { channelOf, isSystemChannel } from "../domain/axes.js";
import {
  type ConversationEvent,
  type Embedded,
  type Item,
  type SystemNotification,
  systemNotification,
} from "../domain/conversation.js";
import type { CarrierId, ThreadId, TurnId } from "../domain/ids.js";
import type { JournalEntry } from "../domain/journal.js";
import { LIMITS } from "../domain/limits.js";
import type { Principal } from "../domain/principal.js";
import { isTurnOver } from "../domain/turn.js";
import { numberInId } from "../platform/ids.js";
import type { Store } from "../store/contract.js";

const PAGE = 500;

interface Placed {
  readonly seq: number;
  readonly event: ConversationEvent;
}

/** All of it, oldest first: what was queued for the agent stands where it was queued. */
export async function conversationStream(
  store: Store,
  principal: Principal,
  thread_id: ThreadId,
): Promise<ConversationEvent[]> {
  const entries = await allEntries(store, principal, thread_id);
  const withdrawn = new Set<CarrierId>();
  for (const entry of entries) if (entry.type === "carrier" && entry.state === "void") withdrawn.add(entry.carrier_id);
  const begun = new Set<TurnId>();
  const placed = entries.flatMap((entry) =>
    eventsOf(entry, withdrawn, begun).map((event): Placed => ({ seq: entry.seq, event })),
  );
  placed.push(...(await queuedEvents(store, principal, thread_id)));
  const events = placed.toSorted((one, other) => one.seq - other.seq).map(({ event }) => event);
  return [{ type: "thread_started" }, ...events];
}

async function allEntries(store: Store, principal: Principal, thread_id: ThreadId): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = [];
  for (;;) {
    const page = await store.conversation(principal, thread_id, entries.at(-1)?.seq ?? 0, PAGE);
    entries.push(...page);
    if (page.length < PAGE) return entries;
  }
}

function eventsOf(entry: JournalEntry, withdrawn: ReadonlySet<CarrierId>, begun: Set<TurnId>): ConversationEvent[] {
  if (entry.type === "carrier") {
    const told = withdrawn.has(entry.carrier_id) ? [] : entry.embedded;
    return itemEvents(entry.items, told);
  }
  if (entry.type !== "turn") return [];
  const { turn_id, state, source, internal, items } = entry;
  const events: ConversationEvent[] = [];
  if (state === "active" && source !== null && !begun.has(turn_id)) {
    begun.add(turn_id);
    events.push({ type: "turn_started", turn_id, source, ...(internal ? { internal: true as const } : {}) });
  }
  events.push(...itemEvents(items, []));
  if (isTurnOver(state) && begun.has(turn_id)) events.push({ type: "turn_ended", turn_id, state });
  return events;
}

/** What is told goes with the first that can carry it. */
function itemEvents(items: readonly Item[], embedded: readonly Embedded[]): ConversationEvent[] {
  let told: { notifications?: SystemNotification[] } =
    embedded.length === 0
      ? {}
      : { notifications: embedded.map(({ kind, severity, content }) => systemNotification(kind, severity, content)) };
  return items.flatMap((item): ConversationEvent[] => {
    const carried = told;
    switch (item.type) {
      case "chat_request":
        told = {};
        return [{ type: "chat_request", content: item.content, source: item.source, ...carried }];
      case "tool_call_response": {
        told = {};
        const result = item.is_error ? { Err: item.output } : { Ok: item.output };
        return [{ type: "tool_call_response", id: item.id, result, ...carried }];
      }
      case "chat_response": {
        const { content, truncated } = item;
        return [{ type: "chat_response", content, ...(truncated === true ? { truncated } : {}) }];
      }
      case "tool_call_request":
        return [{ type: "tool_call_request", id: item.id, name: item.name, arguments: item.input }];
      default:
        return [];
    }
  });
}

/** What was queued for the thread's agent; the id of its first event says where. */
async function queuedEvents(store: Store, principal: Principal, thread_id: ThreadId): Promise<Placed[]> {
  const placed: Placed[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const filter = { thread_id, limit: LIMITS.listLimit, ...(after === undefined ? {} : { after }) };
    const page = await store.list(principal, filter);
    for (const { notification, delivery } of page.stored) {
      // What is below its subscriber's severity was never meant for anybody.
      if (isSystemChannel(channelOf(notification.axes)) || delivery.reason === "filtered") continue;
      const { kind, severity, content, event_id } = notification;
      const event = { type: "system_notification_queued" as const, ...systemNotification(kind, severity, content) };
      placed.push({ seq: numberInId(event_id) ?? 0, event });
    }
    after = page.next;
  }
  return placed;
}
