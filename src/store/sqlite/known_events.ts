/** Events whose producer has sent them before. */
import { createHash } from "node:crypto";
import { assert, ConflictError } from "../../domain/errors.js";
import { eventIdentity, type NewEvent } from "../../domain/event.js";
import type { EventId } from "../../domain/ids.js";
import { matchesOf } from "../../domain/journal.js";
import type { Accepted, Match } from "../contract.js";
import type { Core } from "./core.js";

export function digestOf(event: NewEvent): string {
  return createHash("sha256").update(eventIdentity(event)).digest("base64url");
}

/** As which event it was accepted; the same id with another body is a conflict. */
export function knownEvent(core: Core, event: NewEvent, digest: string): EventId | undefined {
  const row = core.producerIds.find(event);
  if (row === undefined) return undefined;
  if (row.digest !== digest)
    throw new ConflictError(
      "idempotency_mismatch",
      `event ${JSON.stringify(event.producer_id)} of source ${JSON.stringify(event.source)} was accepted before with another body, as ${row.event_id}; send it with an id of its own`,
    );
  return row.event_id;
}

/** The answer that it got, as things are now. */
export function duplicate(core: Core, event_id: EventId): Accepted {
  const entry = core.journal.ofEvent(event_id);
  assert(entry !== undefined, `event ${event_id} has no journal entry`);
  // What retention has removed of it meanwhile is not shown; it is the same event all the same.
  const matches = matchesOf(entry.changes).flatMap((record): Match[] => {
    const held = core.ledger.byId(record.notification_id);
    if (held === undefined) return [];
    return [{ subscriber_id: record.subscriber_id, outcome: record.outcome, stored: core.ledger.stored(held) }];
  });
  return { event_id, seq: entry.seq, outcome: "duplicate", matches };
}
