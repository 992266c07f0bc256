/** What waits, made into the block that tells it: inside the transaction that collects, so that it only computes. */
import { mustNarrate } from "../domain/axes.js";
import type { BlockForm, Embedded } from "../domain/conversation.js";
import { type EventId, type NotificationId, OVERFLOW_SUBSCRIBER } from "../domain/ids.js";
import { isoTime } from "../domain/time.js";
import { newNonce } from "../platform/secret.js";
import type { Aware, Compose, Stored } from "../store/contract.js";
import { type Awareness, type Block, type BlockItem, type Budget, composeBlock } from "./block/block.js";
import { cleaned, cut, onOneLine } from "./block/fence.js";

/** As much of a text as a journal keeps of what was told in one line. */
const LINE_CHARS_MAX = 200;

/** `form`: how the model wants a new block; asked each time, since it may have learned meanwhile. */
export function composerFor(budget: Budget, form: () => BlockForm): Compose {
  return (candidates, more, aware, now) => {
    const given = { more, awareness: awarenessOf(aware), budget, nonce: newNonce(), now };
    const shared = sameEvents(candidates);
    let items = candidates.map((stored) => blockItem(stored, shared));
    let block = composeBlock({ ...given, items });
    if (!namesOnlyTold(block, shared)) {
      // What a line names is left waiting: each then says by itself what it has to say.
      items = candidates.map((stored) => blockItem(stored, new Map()));
      block = composeBlock({ ...given, items });
    }
    const told = block.told.map(({ form: told }, index) => embedded(items[index] as BlockItem, told));
    return { told, text: block.text, form: form() };
  };
}

/**
 * Two subscribers may have made something of the same event: it is told once. For each that is not, the one that is told for
 * it: one that the user must be told, else the first. Of several events one may show what the other has merged, or holds
 * back: these are all told, so that nothing is lost.
 */
function sameEvents(candidates: readonly Stored[]): ReadonlyMap<NotificationId, NotificationId> {
  const alone = candidates.filter(({ delivery }) => delivery.count === 1);
  const tellers = new Map<EventId, Stored>();
  for (const stored of alone) {
    const { event_id } = stored.notification;
    const teller = tellers.get(event_id);
    if (teller === undefined || (mustNarrate(stored.delivery.effective) && !mustNarrate(teller.delivery.effective)))
      tellers.set(event_id, stored);
  }
  const shared = new Map<NotificationId, NotificationId>();
  for (const stored of alone) {
    const teller = tellers.get(stored.notification.event_id);
    if (teller !== undefined && teller !== stored) shared.set(stored.notification.id, teller.notification.id);
  }
  return shared;
}

/** How often the one thing that it tells has come. Rows are counted where they stand, and a summary by its own words. */
function timesOf({ notification, delivery }: Stored): number {
  return delivery.rows > 1 || notification.subscriber_id === OVERFLOW_SUBSCRIBER ? 1 : delivery.count;
}

function namesOnlyTold({ told }: Block, shared: ReadonlyMap<NotificationId, NotificationId>): boolean {
  const ids = new Set(told.map(({ id }) => id));
  return told.every(({ id }) => {
    const teller = shared.get(id);
    return teller === undefined || ids.has(teller);
  });
}

function blockItem(stored: Stored, shared: ReadonlyMap<NotificationId, NotificationId>): BlockItem {
  const { notification, delivery } = stored;
  const teller = shared.get(notification.id);
  return {
    id: notification.id,
    revision: delivery.revision,
    count: timesOf(stored),
    kind: notification.kind,
    severity: notification.severity,
    priority: delivery.priority,
    content: teller === undefined ? notification.content : `same event as ${teller}`,
    must_narrate: mustNarrate(delivery.effective),
    directive: notification.directive,
    created_at: isoTime(notification.created_at),
  };
}

function embedded({ id, revision, kind, severity, content }: BlockItem, form: Embedded["form"]): Embedded {
  const shown = form === "full" ? content : cut(onOneLine(cleaned(content)), LINE_CHARS_MAX);
  return { id, revision, kind, severity, form, content: shown };
}

function awarenessOf({ seen, seen_more, inbox }: Aware): Awareness {
  return {
    seen: seen.map(({ notification, delivery }) => ({
      content: notification.content,
      kind: notification.kind,
      acknowledged: delivery.state === "DELIVERED",
    })),
    seen_more,
    inbox: inbox === null ? null : { unread: inbox.unread, newest: inbox.newest.notification.content },
  };
}
