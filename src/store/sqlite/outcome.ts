/** What one draft comes to, decided and not yet written; and its writing. */
import type { Event } from "../../domain/event.js";
import type { MatchOutcome } from "../../domain/journal.js";
import type { Kept, Notification } from "../../domain/notification.js";
import type { NewChange } from "../../domain/reducer.js";
import { isTerminal } from "../../domain/transitions.js";
import type { Draft } from "../contract.js";
import type { Core } from "./core.js";
import type { Held } from "./ledger.js";

export interface Outcome {
  readonly draft: Draft;
  readonly outcome: MatchOutcome;
  readonly kept: Kept;
  readonly changes: readonly NewChange[];
  /** The notification that it merges into; null for a new one. */
  readonly into: Held | null;
  readonly key: string | null;
  /** The row that it counts to, where there are rows. */
  readonly row: number | undefined;
  /** Whether the batch takes no more after this. */
  readonly full: boolean;
}

/** It takes no more: the new one may name it. */
export interface Refused {
  readonly linked_to: Notification["linked_to"];
}

export function noted(change: NewChange, note: string | null): NewChange {
  return note === null ? change : { ...change, note };
}

export function writeOutcome(core: Core, at: number, event: Event, outcome: Outcome, seq: number): Held {
  const { kept, into, key, row, draft } = outcome;
  const until = at + draft.dedupe_window_ms;
  const { priority, state } = kept.delivery;
  // What has become critical by this event is one more, whatever it was before.
  if (priority === "critical" && into?.delivery.priority !== "critical" && !isTerminal(state))
    core.quota.count(event.user_id, event.source, at);
  if (into === null) {
    const held = core.ledger.insert(kept, seq);
    if (key !== null) core.dedupe.set(key, held.number, 0, until, at);
    return held;
  }
  if (row === undefined) core.rows.add(into, event.id);
  else writeRow(core, event, draft, into, row, until);
  if (key !== null && row !== undefined) core.dedupe.set(key, into.number, row, until, at);
  const held = core.ledger.update(into, kept.delivery, seq);
  return kept.notification === into.notification ? held : core.ledger.rewrite(held, kept.notification);
}

function writeRow(core: Core, event: Event, draft: Draft, into: Held, row: number, until: number): void {
  const { id: event_id, timestamp: since } = event;
  const first = () => core.journal.event(into.notification.event_id)?.timestamp ?? since;
  if (row < into.delivery.rows) core.rows.again(into, first, row, event_id);
  else core.rows.addRow(into, first, { row, key: draft.dedupe_key, until, event_id, count: 1, since });
}
