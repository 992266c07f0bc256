export type { CarriedView, Carrier, CarrierEndView, LeaseView, SettleAnswer } from "./agent/carrier.js";
export type { CollectOptions } from "./agent/carriers.js";
export type { AgentThread } from "./agent/thread.js";
export type { McpServerConfig } from "./config/mcp.js";
export type { Changed } from "./delivery/changed.js";
export type { ClaimAnswer, ClaimInput, HeldItem } from "./delivery/deliveries.js";
export type { Explanation, StoryLine } from "./delivery/explain.js";
export type { Address, Axes, Channel, Handler, Target } from "./domain/axes.js";
export type { ConversationEvent, SystemNotification } from "./domain/conversation.js";
export {
  ConflictError,
  type ErrorCode,
  InvalidInputError,
  isMiss,
  type Miss,
  type MissCode,
  NotFoundError,
  StoreError,
  TidingsError,
} from "./domain/errors.js";
export type { Event, EventInput, NewEvent } from "./domain/event.js";
export type {
  CarrierId,
  EventId,
  JournalId,
  LeaseId,
  NotificationId,
  SubscriberId,
  ThreadId,
  UserId,
} from "./domain/ids.js";
export type { Change, JournalEntry, MatchOutcome } from "./domain/journal.js";
export type { Json, JsonObject } from "./domain/json.js";
export type {
  AckAction,
  NotificationView as Notification,
  NotificationWithEvents,
  NotifyInput,
  Reason,
} from "./domain/notification.js";
export type { Point } from "./domain/points.js";
export type { DeliveryPolicy } from "./domain/policy.js";
export type { InjectionPoint, Priority } from "./domain/priority.js";
export type { Severity } from "./domain/severity.js";
export type { State } from "./domain/transitions.js";
export type { MatchView, ProblemView, SettingsView, SubscriberList, SubscriberView } from "./intake/listing.js";
export type { SubscriberInput } from "./intake/subscriber.js";
export type { ApproveInput, McpRegistry } from "./mcp/registry.js";
export type { McpLookView, McpServerView, McpState, McpToolView } from "./mcp/views.js";
export type { Clock } from "./platform/clock.js";
export type { Model } from "./providers/model.js";
export type { BudgetLimits, Budgets } from "./runtime/budgets.js";
export type {
  Conversation,
  InterruptAnswer,
  ReadOptions,
  Saying,
  StartThreadInput,
  ThreadPage,
  ThreadSummaryView,
  ThreadView,
  Turns,
  TurnView,
} from "./runtime/conversation.js";
export type { HandleLimits } from "./runtime/handles/limits.js";
export type { ShellOptions } from "./runtime/handles/shell/shell.js";
export {
  type Action,
  type Handle,
  HandleError,
  type Outcome,
  type StatefulTool,
  type TurnEndPolicy,
} from "./runtime/handles/stateful_tool.js";
export type { Impact } from "./runtime/impact.js";
export type { AgentLimits } from "./runtime/limits.js";
export type { LoopOptions } from "./runtime/loops.js";
export type { Progress } from "./runtime/setting.js";
export type { ThreadItem } from "./runtime/thread_items.js";
export type { ToolRegistry, ToolView } from "./runtime/tool_registry.js";
export { type AnyTool, defineTool, type Tool, type ToolContext } from "./runtime/tools.js";
export type { UsageAnswer, UsageView } from "./runtime/usage.js";
export type { FileKnowledge, ToolFiles } from "./runtime/workspace/tool_files.js";
export type { WorkspaceOptions } from "./runtime/workspace/workspace.js";
export type { AuditProblem, AuditReport } from "./store/audit.js";
export type { Counts, PruneStep, StoreFacts } from "./store/contract.js";
export {
  type AckInput,
  type AgentInput,
  type ChangedInput,
  type EmitAnswer,
  type EmitOutcome,
  type ListAnswer,
  type ListInput,
  type NotifyAnswer,
  type OpenOptions,
  type PreviewAnswer,
  type PreviewInput,
  type SeriesAnswer,
  type SeriesInput,
  type SettingsInput,
  Tidings,
  type TidingsView,
} from "./tidings.js";
