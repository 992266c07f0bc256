/** Every method. One that is not listed here does not exist. */
import type { Method } from "./method.js";
import { eventEmit } from "./methods/event_emit.js";
import { inboxCounts } from "./methods/inbox_counts.js";
import { notificationAck } from "./methods/notification_ack.js";
import { notificationExplain } from "./methods/notification_explain.js";
import { notificationList } from "./methods/notification_list.js";
import { notificationNotify } from "./methods/notification_notify.js";
import { notificationRead } from "./methods/notification_read.js";
import { notificationRedrive } from "./methods/notification_redrive.js";
import { runtimePrune } from "./methods/runtime_prune.js";
import { runtimeStatus } from "./methods/runtime_status.js";
import { tokenCreate } from "./methods/token_create.js";
import { tokenList } from "./methods/token_list.js";
import { tokenRevoke } from "./methods/token_revoke.js";

export const METHODS: readonly Method[] = [
  eventEmit,
  notificationNotify,
  notificationList,
  notificationRead,
  notificationAck,
  notificationExplain,
  notificationRedrive,
  inboxCounts,
  tokenCreate,
  tokenList,
  tokenRevoke,
  runtimeStatus,
  runtimePrune,
];
