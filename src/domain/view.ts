import type { EventId } from "./ids.js";
import { type JsonObject, jsonText } from "./json.js";
import type { Kept, NotificationView } from "./notification.js";
import { isoTime } from "./time.js";
import { isTerminal } from "./transitions.js";

/** The notification as the border shows it. */
export function viewOf(kept: Kept & { readonly event_ids: readonly EventId[] }): NotificationView {
  const { notification, delivery } = kept;
  return {
    id: notification.id,
    revision: delivery.revision,
    count: delivery.count,
    rows: delivery.rows,
    state: delivery.state,
    channel: delivery.channel,
    kind: notification.kind,
    severity: notification.severity,
    priority: delivery.priority,
    inject_at: notification.inject_at,
    content: notification.content,
    data: notification.data === null ? null : (JSON.parse(jsonText(notification.data)) as JsonObject),
    degraded: notification.degraded,
    address: notification.axes.address,
    target: notification.axes.target,
    handler: notification.axes.handler,
    effective: delivery.effective,
    directive: notification.directive,
    source: notification.source,
    subject: notification.subject,
    dedupe_key: notification.dedupe_key,
    user_id: delivery.user_id,
    thread_id: delivery.thread_id,
    created_at: isoTime(notification.created_at),
    updated_at: isoTime(delivery.updated_at),
    deadline: isTerminal(delivery.state) ? null : isoTime(delivery.deadline),
    open_until: delivery.open_until === null ? null : isoTime(delivery.open_until),
    lease_epoch: delivery.lease_epoch,
    attempts: delivery.attempts,
    action: delivery.action,
    read_at: delivery.read_at === null ? null : isoTime(delivery.read_at),
    reason: delivery.reason,
    subscriber_id: notification.subscriber_id,
    event_ids: [...kept.event_ids],
    redrive_of: notification.redrive_of,
  };
}
