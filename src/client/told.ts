/** What a server tells by itself, by the name of the method. A test holds it against the server's own table. */
import type { JournalId, ThreadId, TurnId } from "../domain/ids.js";
import type { NotificationView } from "../domain/notification.js";
import type { ChatSource } from "../domain/turn.js";
import type { ThreadItem } from "../runtime/thread_items.js";
import type { LogLine } from "../server/log.js";
import type { ResetReason } from "../server/notifications.js";
import type { Counts } from "../store/contract.js";
import type { Cursor } from "./methods.js";

/** Where it stands: in the journal, and after what on its connection. */
export interface Place {
  readonly seq: number;
  readonly prev_seq: number | null;
  /** Which of the frames of its entry it is, where there are several. */
  readonly part?: number;
  readonly journal_id: JournalId;
}

type OfNotification = Place & { readonly notification: NotificationView };

type OfThread<Type extends string, State extends string> = Place & {
  readonly thread_id: ThreadId;
  readonly type: Type;
  readonly state: State;
  readonly started_at?: string;
};

type OfTurn<Type extends string, State extends string> = Place & {
  readonly turn_id: TurnId;
  readonly thread_id: ThreadId;
  readonly type: Type;
  readonly state: State;
  readonly started_at: string;
};

/** An item of `thread/read`, whose `type` is called `item_type` here. */
type ItemOf<Type extends "created" | "updated" | "deleted", Item> = Item extends ThreadItem
  ? Place & {
      readonly item_id: string;
      readonly type: Type;
      readonly item_type: Item["type"];
      readonly role?: "user" | "assistant" | "system";
      readonly timestamp: string;
      readonly thread_id: ThreadId;
      readonly turn_id: TurnId | null;
    } & (Type extends "deleted"
        ? { readonly status: "deleted" }
        : { readonly status: Item["status"]; readonly content: Item["content"] })
  : never;

export interface ToldParams {
  "notification/created": OfNotification & {
    /** It was there when the client connected: no place from which to go on. */
    readonly waiting?: true;
  };
  "notification/updated": OfNotification;
  "inbox/counts": Counts & { readonly seq: number; readonly journal_id: JournalId };
  "thread/started": OfThread<"started", "running">;
  "thread/resumed": OfThread<"resumed", "running">;
  "thread/paused": OfThread<"paused", "paused">;
  "thread/closed": OfThread<"closed", "closed">;
  "turn/started": OfTurn<"started", "active"> & { readonly source: ChatSource };
  "turn/completed": OfTurn<"completed", "completed"> & { readonly completed_at: string };
  "turn/interrupted": OfTurn<"interrupted", "interrupted"> & {
    readonly message: string | null;
    /** The turn that goes on in its place. */
    readonly continued_by: TurnId | null;
  };
  "turn/failed": OfTurn<"failed", "failed"> & { readonly message: string | null };
  "turn/progress": {
    readonly turn_id: TurnId;
    readonly thread_id: ThreadId;
    readonly delta: string;
    /** How many characters of the same answer came before it. */
    readonly offset: number;
    /** The newest entry when it was said: an item of a later one holds it. */
    readonly after_seq: number;
  };
  "item/created": ItemOf<"created", ThreadItem>;
  "item/updated": ItemOf<"updated", ThreadItem>;
  "item/deleted": ItemOf<"deleted", ThreadItem>;
  "runtime/log": LogLine;
  "stream/reset": {
    readonly reason: ResetReason;
    readonly journal_id: JournalId;
    readonly oldest_seq: number;
    readonly newest_seq: number;
  };
}

export type ToldName = keyof ToldParams;

/** One thing that was told. */
export type Told<Name extends ToldName = ToldName> = {
  [Each in Name]: {
    readonly method: Each;
    readonly params: ToldParams[Each];
    /** Where a client stands that has done with this: keep it to go on from here. Null: nowhere yet. */
    readonly cursor: Cursor | null;
  };
}[Name];
