import type { CarrierEnd, CarrierState } from "./carrier.js";
import type { CarrierBlock, Embedded, Item } from "./conversation.js";
import type { Event } from "./event.js";
import type { HandleDetail, HandleState } from "./handle.js";
import type { CarrierId, EventId, NotificationId, SubscriberId, ThreadId, TokenId, TurnId, UserId } from "./ids.js";
import type { Approval, ToolLook } from "./mcp.js";
import type { Delivery, Notification } from "./notification.js";
import type { Point } from "./points.js";
import type { Scope } from "./token.js";
import type { Column, State } from "./transitions.js";
import type { ChatSource, TurnState } from "./turn.js";
import type { Spent, ThreadBudgets } from "./usage.js";

/** The fields of a delivery that a change sets; `state` is the last of the path, `updated_at` the entry's time. */
export type Patch = Partial<Omit<Delivery, "id" | "user_id" | "state" | "updated_at">>;

/** What happened to one notification. Replaying the changes in order gives the ledger. */
export interface Change {
  readonly notification_id: NotificationId;
  readonly command: "create" | Column;
  /** The states it went through, in this one transaction; empty if the state stayed. */
  readonly path: readonly State[];
  /** The `seq` of the previous entry about the same notification. */
  readonly prev: number | null;
  readonly set: Patch;
  /** With `create`. */
  readonly notification?: Notification;
  /** With `merge`: the event that came, and the subscriber that matched it. */
  readonly event_id?: EventId;
  readonly subscriber_id?: SubscriberId;
  /** With `merge`, where there are rows: to which one the event counts; a further one if `set` says how many there are then. */
  readonly row?: number;
  /** With a merge or a flush that changes the words. */
  readonly words?: Partial<Notification>;
  /** A word of the caller for `explain`, for example the tool that caused a promotion. */
  readonly note?: string;
}

/**
 * `queued`: a notification by itself. `batched`: it opened a batch, or is a further row of one. `merged`: it counts to what was
 * there. `filtered`: below the subscriber's severity. `muted`: switched off.
 */
export const MATCH_OUTCOMES = ["queued", "batched", "merged", "filtered", "muted"] as const;
export type MatchOutcome = (typeof MATCH_OUTCOMES)[number];

export interface MatchRecord {
  readonly subscriber_id: SubscriberId;
  readonly outcome: MatchOutcome;
  readonly notification_id: NotificationId;
}

/** What each matching subscriber made of an event: told by the creations and merges of its entry. */
export function matchesOf(changes: readonly Change[]): MatchRecord[] {
  return changes.flatMap((change): MatchRecord[] => {
    const { command, notification_id, notification } = change;
    const { set } = change;
    if (command === "merge" && change.subscriber_id !== undefined)
      return [
        {
          subscriber_id: change.subscriber_id,
          outcome: set.rows === undefined ? "merged" : "batched",
          notification_id,
        },
      ];
    if (command !== "create" || notification === undefined) return [];
    return [{ subscriber_id: notification.subscriber_id, outcome: createdAs(set), notification_id }];
  });
}

function createdAs({ reason, open_until }: Patch): MatchOutcome {
  if (reason === "filtered" || reason === "muted") return reason;
  return open_until === undefined ? "queued" : "batched";
}

/** Which operation wrote an entry. */
export const OPERATIONS = [
  "notify",
  "claim",
  "ack",
  "settle",
  "release",
  "escalate",
  "suppress",
  "watchdog",
  "flush",
  "redrive",
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** One operation, one entry. All that an entry says is about one user. */
export type EntryBody =
  | {
      readonly type: "event";
      readonly event: Event;
      readonly changes: readonly Change[];
    }
  | { readonly type: "delivery"; readonly operation: Operation; readonly changes: readonly Change[] }
  | {
      readonly type: "thread";
      readonly state: ThreadState;
      /** Whether its agent rests; left out where it does not. */
      readonly paused?: true;
      /** With the entry that starts it, where they were given. */
      readonly budgets?: ThreadBudgets;
      readonly changes: readonly Change[];
    }
  | {
      readonly type: "observation";
      readonly subject: string;
      readonly generation: number;
      readonly changes: readonly Change[];
    }
  /** A token was made or revoked; what would let anybody use it is not in the journal. */
  | {
      readonly type: "token";
      readonly action: "created" | "revoked";
      readonly token_id: TokenId;
      readonly scopes: readonly Scope[];
      readonly changes: readonly Change[];
    }
  | {
      readonly type: "settings";
      readonly disabled_subscribers: readonly SubscriberId[];
      readonly changes: readonly Change[];
    }
  /** What an agent is told: collected, and then what became of it. The entry that opens one has its `seq` in the id. */
  | {
      readonly type: "carrier";
      readonly carrier_id: CarrierId;
      readonly state: CarrierState;
      readonly point: Point;
      /** How the hold on what is in it ended; null while it lasts. */
      readonly ended: CarrierEnd | null;
      /** Why its holder failed it. */
      readonly note: string | null;
      /** The turn of a hosted agent that it belongs to. */
      readonly turn_id: TurnId | null;
      /** With the entry that opens it: the conversation's items that it is part of, and what it embeds. */
      readonly items: readonly Item[];
      readonly embedded: readonly Embedded[];
      readonly block: CarrierBlock | null;
      /** What its turn has used since it last said so; left out where that is nothing. */
      readonly spent?: Spent;
      /** With this entry the agent was told what is in it; left out of all others. */
      readonly told?: true;
      readonly changes: readonly Change[];
    }
  /** What a tool that a hosted agent has started is doing now, or has come to. */
  | {
      readonly type: "handle";
      readonly handle: string;
      readonly tool: string;
      readonly state: HandleState;
      readonly detail: HandleDetail;
      readonly changes: readonly Change[];
    }
  /** How a tool of an MCP server looks, and what it was approved by; null: by nothing, it is held. */
  | {
      readonly type: "mcp_tool";
      readonly server: string;
      readonly tool: string;
      readonly by: Approval | null;
      readonly look: ToolLook;
      readonly changes: readonly Change[];
    }
  /** A turn of a hosted agent: what was said and done, and the state that it is in then. */
  | {
      readonly type: "turn";
      readonly turn_id: TurnId;
      readonly state: TurnState;
      /** With the entry that makes it, and the one that begins it. */
      readonly source: ChatSource | null;
      readonly internal: boolean;
      /** With the entry that queues it. */
      readonly content: string | null;
      readonly note: string | null;
      /** Of one that was interrupted: the turn that goes on. */
      readonly continued_by: TurnId | null;
      readonly items: readonly Item[];
      /** What it has used since it last said so; left out where that is nothing. */
      readonly spent?: Spent;
      readonly changes: readonly Change[];
    };

/** One line of the journal. */
export type JournalEntry = EntryBody & {
  readonly seq: number;
  /** The store's clock, in milliseconds; never lower than that of the entry before. */
  readonly at: number;
  readonly user_id: UserId;
  readonly thread_id: ThreadId | null;
};

/** `closing`: no longer open, and what was in it is still being moved. */
export type ThreadState = "open" | "closing" | "closed";

export interface Thread {
  readonly id: ThreadId;
  readonly user_id: UserId;
  readonly state: ThreadState;
  readonly created_at: number;
  /** Since when its agent rests; null if it does not. */
  readonly paused_at: number | null;
  /** Null: none of its own. */
  readonly budgets: ThreadBudgets | null;
}
