/** How the two halves of the ledger are written: a statement for each frequent form, so that little is bound and written. */
import { isSystemChannel } from "../../domain/axes.js";
import { assert } from "../../domain/errors.js";
import { jsonText } from "../../domain/json.js";
import type { Delivery, Notification } from "../../domain/notification.js";
import { parseSubject } from "../../domain/subject.js";
import { isTerminal } from "../../domain/transitions.js";
import { axesText } from "../codec.js";
import type { Connection, Statement } from "./connection.js";
import type { Held } from "./held.js";
import { Inserts } from "./inserts.js";

export class LedgerTables {
  readonly #insertNotification: Statement;
  readonly #plainNotifications: Inserts;
  readonly #insertDelivery: Statement;
  readonly #freshDeliveries: Inserts;
  readonly #batchDeliveries: Inserts;
  readonly #updateNotification: Statement;
  readonly #updateDelivery: Statement;
  readonly #acknowledge: Statement;
  readonly #count: Statement;

  constructor(connection: Connection) {
    this.#insertNotification = connection.prepare(
      `INSERT INTO notifications (number, id, thread_id, subscriber_id, kind, source, subject, severity, inject_at,
        content, data, directive, axes, dedupe_key, dedupe_until, created_at, event_id, redrive_of, linked_to, degraded,
        wake_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#insertDelivery = connection.prepare(
      `INSERT INTO deliveries (number, user_id, thread_id, state, channel, effective, priority, revision, count,
        lease_epoch, lease_id, owner, deadline, not_before, attempts, updated_at, action, read_at, reason, subject,
        live, unread, due_at, last_seq, rows, open_until, source, wakes)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    // The same for most of them: what they do not have need not be bound.
    this.#plainNotifications = new Inserts(
      connection,
      `notifications (number, id, thread_id, subscriber_id, kind, source, subject, severity, inject_at, content, axes,
        dedupe_key, dedupe_until, created_at, event_id)`,
      "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.#freshDeliveries = new Inserts(
      connection,
      `deliveries (number, user_id, thread_id, state, channel, effective, priority, revision, count, lease_epoch,
        deadline, not_before, attempts, updated_at, subject, live, unread, due_at, last_seq, rows, source, wakes)`,
      "(?, ?, ?, ?, ?, ?, ?, 1, 1, 0, ?, 0, 0, ?, ?, 1, 0, ?, ?, 1, ?, ?)",
      this.#plainNotifications,
    );
    // The same for batches, open or closed in the transaction that has opened them.
    this.#batchDeliveries = new Inserts(
      connection,
      `deliveries (number, user_id, thread_id, state, channel, effective, priority, revision, count, lease_epoch,
        deadline, not_before, attempts, updated_at, subject, live, unread, due_at, last_seq, rows, open_until, source,
        wakes)`,
      "(?, ?, ?, ?, ?, ?, ?, 1, ?, 0, ?, 0, 0, ?, ?, 1, 0, ?, ?, ?, ?, ?, ?)",
      this.#plainNotifications,
    );
    this.#updateNotification = connection.prepare(
      "UPDATE notifications SET content = ?, data = ?, severity = ?, directive = ?, degraded = ?, kind = ? WHERE number = ?",
    );
    // Guarded: the row must still be what the decision was made on, or nothing is written.
    this.#updateDelivery = connection.prepare(
      `UPDATE deliveries SET thread_id = ?, state = ?, channel = ?, effective = ?, priority = ?, revision = ?,
        count = ?, lease_epoch = ?, lease_id = ?, owner = ?, deadline = ?, not_before = ?, attempts = ?,
        updated_at = ?, action = ?, read_at = ?, reason = ?, live = ?, unread = ?, due_at = ?, last_seq = ?, rows = ?,
        open_until = ?, quiet = ?, wakes = ?
       WHERE number = ? AND state = ? AND lease_epoch = ? AND revision = ? AND count = ?`,
    );
    // The same for a further event: only the numbers differ.
    this.#count = connection.prepare(
      `UPDATE deliveries SET count = ?, rows = ?, revision = ?, updated_at = ?, last_seq = ?
       WHERE number = ? AND state = ? AND lease_epoch = ? AND revision = ? AND count = ?`,
    );
    // The same for the most frequent change: what it leaves as it is need not be bound and written.
    this.#acknowledge = connection.prepare(
      `UPDATE deliveries SET state = ?, lease_epoch = ?, updated_at = ?, action = ?, read_at = ?, live = ?, unread = ?,
        due_at = ?, last_seq = ?
       WHERE number = ? AND state = ? AND lease_epoch = ? AND revision = ? AND count = ?`,
    );
  }

  /** `was`: as it is written; null: it is not. New ones are in the tables after `end`. */
  write(was: Held | null, now: Held): void {
    if (was === null) {
      this.#writeNew(now);
      return;
    }
    if (was.delivery !== now.delivery) this.#writeChanged(was, now);
    if (was.notification !== now.notification) this.#writeWords(now);
  }

  end(): void {
    this.#freshDeliveries.writeOut();
    this.#batchDeliveries.writeOut();
  }

  #writeNew({ notification, delivery, number, last_seq }: Held): void {
    // Both or neither: only a plain notification is known to be in its table before its delivery.
    if (isPlain(notification) && isUntouched(delivery)) {
      this.#addPlainNotification(number, notification);
      if (isAlone(delivery)) this.#addFreshDelivery(number, notification, delivery, last_seq);
      else this.#addBatchDelivery(number, notification, delivery, last_seq);
      return;
    }
    this.#writeNotification(number, notification);
    this.#writeDelivery(number, notification, delivery, last_seq);
  }

  #addPlainNotification(number: number, notification: Notification): void {
    this.#plainNotifications.add(
      number,
      notification.id,
      notification.thread_id,
      notification.subscriber_id,
      notification.kind,
      notification.source,
      notification.subject,
      notification.severity,
      notification.inject_at,
      notification.content,
      axesText(notification.axes),
      notification.dedupe_key,
      notification.dedupe_until,
      notification.created_at,
      notification.event_id,
    );
  }

  #writeNotification(number: number, notification: Notification): void {
    this.#insertNotification.run(
      number,
      notification.id,
      notification.thread_id,
      notification.subscriber_id,
      notification.kind,
      notification.source,
      notification.subject,
      notification.severity,
      notification.inject_at,
      notification.content,
      notification.data === null ? null : jsonText(notification.data),
      notification.directive,
      axesText(notification.axes),
      notification.dedupe_key,
      notification.dedupe_until,
      notification.created_at,
      notification.event_id,
      notification.redrive_of,
      notification.linked_to,
      notification.degraded,
      notification.wake_ms,
    );
  }

  #addFreshDelivery(number: number, notification: Notification, delivery: Delivery, last_seq: number): void {
    this.#freshDeliveries.add(
      number,
      delivery.user_id,
      delivery.thread_id,
      delivery.state,
      delivery.channel,
      axesText(delivery.effective),
      delivery.priority,
      delivery.deadline,
      delivery.updated_at,
      subjectName(notification),
      dueAt(delivery),
      last_seq,
      sourceOf(notification, delivery),
      wakesFlag(notification, delivery),
    );
  }

  #addBatchDelivery(number: number, notification: Notification, delivery: Delivery, last_seq: number): void {
    this.#batchDeliveries.add(
      number,
      delivery.user_id,
      delivery.thread_id,
      delivery.state,
      delivery.channel,
      axesText(delivery.effective),
      delivery.priority,
      delivery.count,
      delivery.deadline,
      delivery.updated_at,
      subjectName(notification),
      dueAt(delivery),
      last_seq,
      delivery.rows,
      delivery.open_until,
      sourceOf(notification, delivery),
      wakesFlag(notification, delivery),
    );
  }

  #writeDelivery(number: number, notification: Notification, delivery: Delivery, last_seq: number): void {
    this.#insertDelivery.run(
      number,
      delivery.user_id,
      delivery.thread_id,
      delivery.state,
      delivery.channel,
      axesText(delivery.effective),
      delivery.priority,
      delivery.revision,
      delivery.count,
      delivery.lease_epoch,
      null,
      null,
      delivery.deadline,
      delivery.not_before,
      delivery.attempts,
      delivery.updated_at,
      delivery.action,
      delivery.read_at,
      delivery.reason,
      subjectName(notification),
      liveFlag(delivery),
      unreadFlag(delivery),
      dueAt(delivery),
      last_seq,
      delivery.rows,
      delivery.open_until,
      sourceOf(notification, delivery),
      wakesFlag(notification, delivery),
    );
  }

  #writeChanged(before: Held, { delivery: next, last_seq }: Held): void {
    const was = before.delivery;
    const { changes } = isCount(was, next)
      ? this.#writeCount(before, next, last_seq)
      : isAcknowledgement(was, next)
        ? this.#writeAcknowledgement(before, next, last_seq)
        : this.#writeAll(before, next, last_seq);
    if (changes !== 1) assert(false, `delivery ${next.id} changed under the writer's hands`);
  }

  #writeCount({ number, delivery: was }: Held, next: Delivery, seq: number) {
    const { count, rows, revision, updated_at } = next;
    return this.#count.run(
      count,
      rows,
      revision,
      updated_at,
      seq,
      number,
      was.state,
      was.lease_epoch,
      was.revision,
      was.count,
    );
  }

  #writeAcknowledgement({ number, delivery: was }: Held, next: Delivery, seq: number) {
    return this.#acknowledge.run(
      next.state,
      next.lease_epoch,
      next.updated_at,
      next.action,
      next.read_at,
      liveFlag(next),
      unreadFlag(next),
      dueAt(next),
      seq,
      number,
      was.state,
      was.lease_epoch,
      was.revision,
      was.count,
    );
  }

  #writeAll({ number, notification, delivery: was }: Held, next: Delivery, seq: number) {
    return this.#updateDelivery.run(
      next.thread_id,
      next.state,
      next.channel,
      axesText(next.effective),
      next.priority,
      next.revision,
      next.count,
      next.lease_epoch,
      next.lease?.id ?? null,
      next.lease?.owner ?? null,
      next.deadline,
      next.not_before,
      next.attempts,
      next.updated_at,
      next.action,
      next.read_at,
      next.reason,
      liveFlag(next),
      unreadFlag(next),
      dueAt(next),
      seq,
      next.rows,
      next.open_until,
      next.quiet ? 1 : 0,
      wakesFlag(notification, next),
      number,
      was.state,
      was.lease_epoch,
      was.revision,
      was.count,
    );
  }

  #writeWords({ number, notification }: Held): void {
    const { content, data, severity, directive, degraded, kind } = notification;
    const json = data === null ? null : jsonText(data);
    this.#updateNotification.run(content, json, severity, directive, degraded, kind, number);
  }
}

/** Whether it has nothing beside what every one has. */
function isPlain({ data, directive, redrive_of, linked_to, degraded, wake_ms }: Notification): boolean {
  const plain = data === null && directive === null && redrive_of === null && linked_to === null;
  return plain && degraded === null && wake_ms === null;
}

/** Whether it is of one event, and takes no more. */
function isAlone({ count, rows, open_until }: Delivery): boolean {
  return count === 1 && rows === 1 && open_until === null;
}

/** Whether it is live, and nothing has happened to it since it was made, but that events were added to it. */
function isUntouched(delivery: Delivery): boolean {
  return (
    !isTerminal(delivery.state) &&
    delivery.revision === 1 &&
    delivery.lease_epoch === 0 &&
    delivery.lease === null &&
    delivery.not_before === 0 &&
    delivery.attempts === 0 &&
    !delivery.quiet &&
    delivery.action === null &&
    delivery.read_at === null &&
    delivery.reason === null
  );
}

/** Of what it is about, without the generation. */
export function subjectName({ subject }: Pick<Notification, "subject">): string | null {
  return subject === null ? null : parseSubject(subject).name;
}

/** Whose it is, of what is for an agent: for the limit of what waits of one source. */
function sourceOf({ source }: Notification, { channel }: Delivery): string | null {
  return isSystemChannel(channel) ? null : source;
}

/** Whether there are more events, and nothing but numbers has changed. */
function isCount(was: Delivery, next: Delivery): boolean {
  return (
    next.count > was.count &&
    was.state === next.state &&
    was.lease_epoch === next.lease_epoch &&
    was.thread_id === next.thread_id &&
    was.effective === next.effective &&
    was.priority === next.priority &&
    was.open_until === next.open_until &&
    was.deadline === next.deadline &&
    was.not_before === next.not_before &&
    was.attempts === next.attempts &&
    was.quiet === next.quiet &&
    was.action === next.action &&
    was.read_at === next.read_at &&
    was.reason === next.reason
  );
}

/** Whether nothing differs but what an acknowledgement changes. */
function isAcknowledgement(was: Delivery, next: Delivery): boolean {
  return (
    was.lease === null &&
    next.lease === null &&
    was.thread_id === next.thread_id &&
    was.effective === next.effective &&
    was.channel === next.channel &&
    was.priority === next.priority &&
    was.revision === next.revision &&
    was.count === next.count &&
    was.open_until === next.open_until &&
    was.deadline === next.deadline &&
    was.not_before === next.not_before &&
    was.attempts === next.attempts &&
    was.reason === next.reason
  );
}

/** The flags are functions of the delivery; `check` compares them with the rows. */
export function liveFlag(delivery: Delivery): 0 | 1 {
  return isTerminal(delivery.state) ? 0 : 1;
}

export function unreadFlag(delivery: Pick<Delivery, "state" | "channel" | "read_at">): 0 | 1 {
  const shown = delivery.channel === "inbox" || delivery.channel === "floor";
  return delivery.state === "DELIVERED" && shown && delivery.read_at === null ? 1 : 0;
}

/** Whether the user is shown it, or will be, and has not read it. */
export function awaitsReader(delivery: Delivery): boolean {
  return isSystemChannel(delivery.channel) && (liveFlag(delivery) === 1 || unreadFlag(delivery) === 1);
}

/** Whether an idle agent is to be woken for it, or told at once. */
export function wakesFlag({ wake_ms }: Pick<Notification, "wake_ms">, delivery: Delivery): 0 | 1 {
  if (isSystemChannel(delivery.channel) || isTerminal(delivery.state) || delivery.quiet) return 0;
  return delivery.channel === "agent" || wake_ms !== null || delivery.priority === "critical" ? 1 : 0;
}

export function dueAt(delivery: Delivery): number | null {
  const { state, deadline, open_until } = delivery;
  if (isTerminal(state) || state === "LOCKED") return null;
  return open_until === null ? deadline : Math.min(open_until, deadline);
}
