import type { Event } from "../domain/event.js";
import type { SubscriberId } from "../domain/ids.js";
import type { Compose, Editor, Row, Words } from "./contract.js";

/** The editor of the stores' suites: a line for each row, and it holds back what it is told to. */
export class PlainEditor implements Editor {
  /** Types of events that are switched off. */
  readonly off = new Set<string>();
  /** Subscribers whose template fails. */
  readonly failing = new Set<string>();

  words(subscriber_id: SubscriberId, rows: readonly Row[]): Words {
    const content = rows.map(({ event, count, since }) => `${lineOf(event)} ×${count} since ${since}`).join("\n");
    return { content, degraded: this.failing.has(subscriber_id) ? "the template failed" : null };
  }

  held(event: Event, subscriber_id: SubscriberId, _priority: string, disabled: readonly SubscriberId[]) {
    if (this.off.has(event.type)) return `${event.type} is off`;
    return disabled.includes(subscriber_id) ? `the user has disabled ${subscriber_id}` : undefined;
  }

  holdsAny(disabled: readonly SubscriberId[]): boolean {
    return this.off.size > 0 || disabled.length > 0;
  }
}

/** What a row says of its event. */
export function lineOf(event: Event): string {
  return `${event.type} ${JSON.stringify(event.payload)}`;
}

/** Tells all that it is given, a line each, and what the user was shown. */
export const plainCompose: Compose = (candidates, more, aware) => {
  const told = candidates.map(({ notification, delivery }) => ({
    id: notification.id,
    revision: delivery.revision,
    kind: notification.kind,
    severity: notification.severity,
    form: "full" as const,
    content: notification.content,
  }));
  const lines = [
    ...told.map(({ id, content }) => `${id}: ${content}`),
    ...aware.seen.map(({ notification }) => `seen ${notification.id}`),
    ...(aware.inbox === null ? [] : [`inbox ${aware.inbox.unread} ${aware.inbox.newest.notification.id}`]),
    ...(more === 0 ? [] : [`${more} more`]),
  ];
  return { told, text: lines.join("\n"), form: "text" };
};
