/** One line of a story: in words, and as the journal has it. */
import type { AckAction } from "../domain/action.js";
import { type Channel, channelOf } from "../domain/axes.js";
import type { CarrierState } from "../domain/carrier.js";
import type { CarrierBlock } from "../domain/conversation.js";
import type { CarrierId, EventId, NotificationId, SubscriberId, ThreadId, TurnId } from "../domain/ids.js";
import type { Change, JournalEntry, MatchOutcome, Operation } from "../domain/journal.js";
import type { Reason } from "../domain/notification.js";
import type { Point } from "../domain/points.js";
import { isoTime } from "../domain/time.js";
import type { State } from "../domain/transitions.js";

/** A command of the grid, or what else happened around it. */
export type StoryKind = Change["command"] | "event" | "match" | "carrier" | "observation" | "thread" | "redriven";

/** What an agent was told it in. */
export interface StoryCarrier {
  id: CarrierId;
  thread_id: ThreadId | null;
  /** The turn of a hosted agent. */
  turn_id: TurnId | null;
  point: Point;
  state: CarrierState;
  /** The exact text that was put into the model's request; with the line that opens the carrier, or says it in another form. */
  block: CarrierBlock | null;
}

/** Fields that do not apply are left out; null is a value. */
export interface StoryLine {
  seq: number;
  at: string;
  text: string;
  kind: StoryKind;
  /** The states that it went through by this, in one transaction; empty if its state stayed. */
  path?: readonly State[];
  /** The operation that wrote it, where it is one of deliveries. */
  operation?: Operation;
  /** Who has it from here on. */
  channel?: Channel;
  owner?: string | null;
  lease_epoch?: number;
  revision?: number;
  count?: number;
  attempts?: number;
  action?: AckAction;
  reason?: Reason;
  note?: string;
  event_id?: EventId;
  subscriber_id?: SubscriberId;
  /** What a subscriber made of an event. */
  outcome?: MatchOutcome;
  /** The notification that a subscriber made, that this one was sent again as, or that it sends again. */
  notification_id?: NotificationId;
  carrier?: StoryCarrier;
  /** Where the agent acknowledged it: the turn of a hosted agent, or null. */
  acknowledged?: { turn_id: TurnId | null };
}

export type Facts = Partial<Omit<StoryLine, "seq" | "at" | "text" | "kind">>;

export function line(entry: JournalEntry, kind: StoryKind, text: string, facts: Facts = {}): StoryLine {
  return { seq: entry.seq, at: isoTime(entry.at), text, kind, ...facts };
}

export function carrierFacts(entry: Extract<JournalEntry, { type: "carrier" }>): Facts {
  const { carrier_id: id, thread_id, turn_id, point, state, block } = entry;
  return { carrier: { id, thread_id, turn_id, point, state, block } };
}

export function changeFacts(change: Change, entry: JournalEntry): Facts {
  const { set, notification } = change;
  const channel = set.channel ?? (notification === undefined ? undefined : channelOf(notification.axes));
  const event_id = change.event_id ?? notification?.event_id;
  const subscriber_id = change.subscriber_id ?? notification?.subscriber_id;
  return {
    path: change.path,
    ...(entry.type === "delivery" ? { operation: entry.operation } : {}),
    ...(channel === undefined ? {} : { channel }),
    ...(set.lease === undefined ? {} : { owner: set.lease?.owner ?? null }),
    ...(set.lease_epoch === undefined ? {} : { lease_epoch: set.lease_epoch }),
    ...(set.revision === undefined ? {} : { revision: set.revision }),
    ...(set.count === undefined ? {} : { count: set.count }),
    ...(set.attempts === undefined ? {} : { attempts: set.attempts }),
    ...(set.action === undefined || set.action === null ? {} : { action: set.action }),
    ...(set.reason === undefined || set.reason === null ? {} : { reason: set.reason }),
    ...(change.note === undefined ? {} : { note: change.note }),
    ...(event_id === undefined ? {} : { event_id }),
    ...(subscriber_id === undefined ? {} : { subscriber_id }),
    ...(notification?.redrive_of === undefined || notification.redrive_of === null
      ? {}
      : { notification_id: notification.redrive_of }),
  };
}
