/** Every method. One that is not listed here does not exist. */
import type { Method } from "./method.js";
import { agentCollect } from "./methods/agent_collect.js";
import { agentFail } from "./methods/agent_fail.js";
import { agentRenew } from "./methods/agent_renew.js";
import { agentSettle } from "./methods/agent_settle.js";
import { eventEmit } from "./methods/event_emit.js";
import { inboxCounts } from "./methods/inbox_counts.js";
import { initialize } from "./methods/initialize.js";
import { mcpApprove } from "./methods/mcp_approve.js";
import { mcpList } from "./methods/mcp_list.js";
import { notificationAck } from "./methods/notification_ack.js";
import { notificationChanged } from "./methods/notification_changed.js";
import { notificationExplain } from "./methods/notification_explain.js";
import { notificationList } from "./methods/notification_list.js";
import { notificationNotify } from "./methods/notification_notify.js";
import { notificationRead } from "./methods/notification_read.js";
import { notificationRedrive } from "./methods/notification_redrive.js";
import { queueList } from "./methods/queue_list.js";
import { queueRemove } from "./methods/queue_remove.js";
import { queueUpdate } from "./methods/queue_update.js";
import { runtimeLogStream } from "./methods/runtime_log_stream.js";
import { runtimePause } from "./methods/runtime_pause.js";
import { runtimePrune } from "./methods/runtime_prune.js";
import { runtimeResume } from "./methods/runtime_resume.js";
import { runtimeStatus } from "./methods/runtime_status.js";
import { settingsGet } from "./methods/settings_get.js";
import { settingsUpdate } from "./methods/settings_update.js";
import { statsSeries } from "./methods/stats_series.js";
import { streamResume } from "./methods/stream_resume.js";
import { subscriberList } from "./methods/subscriber_list.js";
import { subscriberPreview } from "./methods/subscriber_preview.js";
import { threadClose } from "./methods/thread_close.js";
import { threadList } from "./methods/thread_list.js";
import { threadPause } from "./methods/thread_pause.js";
import { threadRead } from "./methods/thread_read.js";
import { threadResume } from "./methods/thread_resume.js";
import { threadStart } from "./methods/thread_start.js";
import { tokenCreate } from "./methods/token_create.js";
import { tokenList } from "./methods/token_list.js";
import { tokenRevoke } from "./methods/token_revoke.js";
import { turnDeliver } from "./methods/turn_deliver.js";
import { turnInterrupt } from "./methods/turn_interrupt.js";
import { turnStart } from "./methods/turn_start.js";
import { turnSteer } from "./methods/turn_steer.js";

export const METHODS: readonly Method[] = [
  initialize,
  streamResume,
  eventEmit,
  notificationNotify,
  notificationList,
  notificationChanged,
  notificationRead,
  notificationAck,
  notificationExplain,
  notificationRedrive,
  inboxCounts,
  threadStart,
  threadList,
  threadRead,
  threadPause,
  threadResume,
  threadClose,
  turnStart,
  turnSteer,
  turnDeliver,
  turnInterrupt,
  queueList,
  queueUpdate,
  queueRemove,
  agentCollect,
  agentRenew,
  agentSettle,
  agentFail,
  subscriberList,
  subscriberPreview,
  statsSeries,
  settingsGet,
  settingsUpdate,
  mcpList,
  mcpApprove,
  tokenCreate,
  tokenList,
  tokenRevoke,
  runtimeStatus,
  runtimePause,
  runtimeResume,
  runtimeLogStream,
  runtimePrune,
];

const ALIAS = "holon/";

/** `holon/status` is `runtime/status`, and so on. */
export function canonicalName(name: string): string {
  return name.startsWith(ALIAS) ? `runtime/${name.slice(ALIAS.length)}` : name;
}
