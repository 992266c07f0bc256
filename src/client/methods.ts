/** Every method of a server, with what goes in and what comes out. A test holds this table against the server's own. */

import type { NewTokenAnswer, NewTokenInput } from "../access/tokens.js";
import type { Carrier, CarrierEndView, LeaseView, SettleAnswer } from "../agent/carrier.js";
import type { CollectInput } from "../agent/carriers.js";
import type { Changed } from "../delivery/changed.js";
import type { Explanation } from "../delivery/explain.js";
import type { Miss } from "../domain/errors.js";
import type { EventInput } from "../domain/event.js";
import type { NotificationView, NotificationWithEvents, NotifyInput } from "../domain/notification.js";
import type { TokenView } from "../domain/token.js";
import type { SettingsView, SubscriberList } from "../intake/listing.js";
import type { ApproveInput } from "../mcp/registry.js";
import type { McpServerView, McpToolView } from "../mcp/views.js";
import type { InterruptAnswer, ReadOptions, StartThreadInput, ThreadPage, TurnView } from "../runtime/conversation.js";
import type { LogLine } from "../server/log.js";
import type { NotificationName, ResetReason } from "../server/notifications.js";
import type { RestView } from "../server/rest.js";
import type { ThreadAnswer, ThreadSummaryAnswer } from "../server/talk.js";
import type { Counts, PruneStep } from "../store/contract.js";
import type {
  AckInput,
  AgentView,
  ChangedInput,
  EmitAnswer,
  ListAnswer,
  ListInput,
  NotifyAnswer,
  PreviewAnswer,
  PreviewInput,
  SeriesAnswer,
  SeriesInput,
  SettingsInput,
} from "../tidings.js";

/** Where a client is in a journal: after this entry, or after this part of what the entry tells. */
export interface Cursor {
  readonly journal_id: string;
  readonly after_seq: number;
  readonly after_part?: number | undefined;
}

/** What a stream tells. */
export interface View {
  /** Also what the agent was told. */
  readonly observe?: boolean | undefined;
  /** What happens in conversations; without a word about it, yes. */
  readonly conversation?: boolean | undefined;
  /** Notifications that are not wanted. */
  readonly opt_out?: readonly NotificationName[] | undefined;
}

/** A user's words: a text, or messages. */
export type TurnInput =
  | string
  | readonly {
      readonly type: "message";
      readonly role: "user";
      readonly content: readonly { readonly type: "input_text"; readonly text: string }[];
    }[];

/** Admin's token may act as a user. */
interface AsUser {
  readonly user_id?: string | undefined;
}
type ById = AsUser & { readonly id: string };
type OfThread = AsUser & { readonly thread_id: string };
type OfTurn = AsUser & { readonly turn_id: string };
type Empty = Readonly<Record<never, never>>;

export type StartedTurn = TurnView & { started_at: string | null };

/** What runs there, and who we are to it. */
export interface ServerInfo {
  version: string;
  journal_id: string;
  /** What comes after it is pushed. */
  seq: number;
  user_id: string;
  /** What its agent runs on; null if it hosts none. */
  agent: AgentView | null;
}

export interface ResumeAnswer {
  resumed: boolean;
  /** Why it cannot go on from there. */
  reset: ResetReason | null;
  journal_id: string;
  oldest_seq: number;
  newest_seq: number;
}

export interface RuntimeStatus extends RestView {
  status: "running";
  events_processed: number;
  version: string;
  started_at: string;
  journal_id: string;
  user_id: string;
  agent: AgentView | null;
  /** What its agent can do, by name; none where it hosts none. */
  tools: string[];
  /** Those of them that the rehearsal model has brought. */
  props: string[];
  /** From here on for admin alone. */
  pid?: number;
  connections?: number;
  /** Those that can take nothing, with the environment variables in which their secret is looked for. */
  hooks_without_secret?: { name: string; secret_env: string[] }[];
  last_seq?: number;
  floor_seq?: number;
  bytes?: number;
}

/** A carrier as the wire has it. */
export type CarrierView = Pick<
  Carrier,
  "id" | "thread_id" | "point" | "state" | "lease" | "notifications" | "more" | "block"
>;

export type InterruptResult = Pick<TurnView, "turn_id" | "thread_id"> &
  Omit<InterruptAnswer, "outcome" | "successor"> & {
    state: InterruptAnswer["outcome"];
    successor: StartedTurn | null;
  };

export interface Methods {
  initialize: { params: View; result: ServerInfo };
  "stream/resume": { params: Cursor; result: ResumeAnswer };
  "event/emit": { params: EventInput; result: EmitAnswer };
  "notification/notify": { params: NotifyInput; result: NotifyAnswer };
  "notification/list": { params: ListInput; result: ListAnswer };
  "notification/changed": { params: AsUser & ChangedInput; result: Changed };
  "notification/read": { params: ById; result: NotificationWithEvents | Miss };
  "notification/ack": { params: AsUser & AckInput; result: NotificationView | Miss };
  "notification/explain": { params: ById; result: Explanation | Miss };
  "notification/redrive": { params: ById; result: NotificationView | Miss };
  "inbox/counts": { params: AsUser; result: Counts };
  "thread/start": { params: StartThreadInput; result: ThreadAnswer };
  "thread/list": {
    params: AsUser & { readonly after?: string | undefined; readonly limit?: number | undefined };
    result: { threads: ThreadSummaryAnswer[]; next: string | null };
  };
  "thread/read": { params: OfThread & ReadOptions; result: Omit<ThreadPage, "thread"> & { thread: ThreadAnswer } };
  "thread/pause": { params: OfThread; result: ThreadAnswer };
  "thread/resume": { params: OfThread; result: ThreadAnswer };
  "thread/close": { params: OfThread; result: ThreadAnswer };
  "turn/start": { params: OfThread & { readonly input: TurnInput }; result: StartedTurn };
  "turn/steer": {
    /** A `thread_id` or a `turn_id` at least. */
    params: AsUser & {
      readonly thread_id?: string | undefined;
      readonly turn_id?: string | undefined;
      readonly expected_turn_id?: string | undefined;
      readonly input: TurnInput;
    };
    result: (TurnView & { accepted_items: number }) | Miss;
  };
  "turn/deliver": {
    params: OfThread & { readonly input: TurnInput };
    /** `started_at` is not there where it was steered. */
    result: TurnView & { started_at?: string | null; how: "started" | "queued" | "steered"; accepted_items: number };
  };
  "turn/interrupt": { params: OfTurn & { readonly input?: TurnInput | undefined }; result: InterruptResult };
  "queue/list": { params: OfThread; result: { turns: TurnView[] } };
  "queue/update": { params: OfTurn & { readonly input: TurnInput }; result: TurnView | Miss };
  "queue/remove": { params: OfTurn; result: TurnView | Miss };
  "agent/collect": { params: CollectInput; result: { carrier: CarrierView | null } };
  "agent/renew": {
    params: { readonly carrier_id: string; readonly lease_ms?: number | undefined };
    result: { lease: LeaseView } | Miss;
  };
  "agent/settle": {
    params: { readonly carrier_id: string; readonly acknowledged_ids?: readonly string[] | undefined };
    result: SettleAnswer | Miss;
  };
  "agent/fail": {
    params: { readonly carrier_id: string; readonly reason?: string | undefined };
    result: CarrierEndView | Miss;
  };
  "subscriber/list": { params: AsUser & { readonly matches?: number | undefined }; result: SubscriberList };
  "subscriber/preview": { params: PreviewInput; result: PreviewAnswer };
  "stats/series": { params: SeriesInput; result: SeriesAnswer };
  "settings/get": { params: AsUser; result: SettingsView };
  "settings/update": { params: SettingsInput; result: SettingsView };
  "mcp/list": { params: Empty; result: { servers: McpServerView[] } };
  "mcp/approve": { params: ApproveInput; result: McpToolView | Miss };
  "token/create": { params: NewTokenInput; result: NewTokenAnswer };
  "token/list": { params: AsUser; result: { tokens: TokenView[] } };
  "token/revoke": { params: { readonly id: string }; result: TokenView | Miss };
  "runtime/status": { params: Empty; result: RuntimeStatus };
  "runtime/pause": { params: { readonly timeout_seconds?: number | undefined }; result: RestView };
  "runtime/resume": { params: Empty; result: RestView };
  "runtime/logStream": {
    params: { readonly follow?: boolean | undefined; readonly limit?: number | undefined };
    result: { lines: LogLine[]; following: boolean };
  };
  "runtime/prune": { params: { readonly older_than_ms: number }; result: PruneStep };
}

export type MethodName = keyof Methods;
export type ParamsOf<Name extends MethodName> = Methods[Name]["params"];
export type ResultOf<Name extends MethodName> = Methods[Name]["result"];

/** Whether a method only reads: then it may be sent again where nobody knows whether it was answered. */
export const IS_READ: Readonly<Record<MethodName, boolean>> = {
  initialize: true,
  "stream/resume": true,
  "event/emit": false,
  "notification/notify": false,
  "notification/list": true,
  "notification/changed": true,
  "notification/read": true,
  "notification/ack": false,
  "notification/explain": true,
  "notification/redrive": false,
  "inbox/counts": true,
  "thread/start": false,
  "thread/list": true,
  "thread/read": true,
  "thread/pause": false,
  "thread/resume": false,
  "thread/close": false,
  "turn/start": false,
  "turn/steer": false,
  "turn/deliver": false,
  "turn/interrupt": false,
  "queue/list": true,
  "queue/update": false,
  "queue/remove": false,
  "agent/collect": false,
  "agent/renew": false,
  "agent/settle": false,
  "agent/fail": false,
  "subscriber/list": true,
  "subscriber/preview": true,
  "stats/series": true,
  "settings/get": true,
  "settings/update": false,
  "mcp/list": true,
  "mcp/approve": false,
  "token/create": false,
  "token/list": true,
  "token/revoke": false,
  "runtime/status": true,
  "runtime/pause": false,
  "runtime/resume": false,
  "runtime/logStream": true,
  "runtime/prune": false,
};
