import { AccessError } from "../domain/errors.js";
import type { NewEvent } from "../domain/event.js";
import { DIRECT_SUBSCRIBER } from "../domain/ids.js";
import type { ParsedNotify } from "../domain/notification.js";
import { payloadProblem } from "../domain/payloads.js";
import { severityAtLeast } from "../domain/severity.js";
import type { Grants } from "../domain/token.js";
import type { Acceptance, Draft } from "../store/contract.js";
import type { Catalogue } from "./catalogue.js";
import type { Subscriber } from "./subscriber.js";
import { derivedKey } from "./subscribers/dedupe.js";
import { SUBSCRIBER_DEFAULTS } from "./subscribers/schema.js";

/** From an event to what the store takes in: who matches, and what becomes of it. */
export class Intake {
  readonly #catalogue: Catalogue;

  constructor(catalogue: Catalogue) {
    this.#catalogue = catalogue;
  }

  forEvent(event: NewEvent, grants: Grants): Acceptance {
    const matching = this.#catalogue.matching(event);
    const note = matching.length === 0 ? null : payloadNote(event);
    return { event, drafts: matching.map((subscriber) => granted(draftOf(event, subscriber, note), grants)) };
  }

  /** A caller with its own text: an event of its kind, and one notification of it. */
  forNotify(notify: ParsedNotify, grants: Grants): Acceptance {
    if (notify.directive !== undefined && !grants.directive)
      throw new AccessError("forbidden", "directive: an instruction to the agent needs the scope directive");
    const event: NewEvent = {
      producer_id: null,
      type: notify.kind,
      source: DIRECT_SUBSCRIBER,
      severity: notify.severity,
      timestamp: null,
      payload: notify.data ?? {},
      dedupe_key: notify.dedupe_key ?? null,
      user_id: notify.user_id,
      thread_id: notify.thread_id,
      subject: notify.subject ?? null,
    };
    const draft: Draft = {
      subscriber_id: DIRECT_SUBSCRIBER,
      filtered: false,
      severity: notify.severity,
      priority: notify.priority,
      inject_at: notify.inject_at,
      axes: { address: notify.address, target: notify.target, handler: notify.handler },
      ttl_ms: notify.ttl_ms ?? null,
      content: notify.content,
      data: notify.data,
      directive: notify.directive ?? null,
      dedupe_key: notify.dedupe_key ?? null,
      dedupe_window_ms: notify.dedupe_window_ms,
      batch: null,
      note: null,
      wake_ms: notify.handler === "agent" ? SUBSCRIBER_DEFAULTS.maxWaitMs : null,
    };
    return { event, drafts: [granted(draft, grants)] };
  }
}

function payloadNote({ type, payload }: NewEvent): string | null {
  const problem = payloadProblem(type, payload);
  return problem === null ? null : `its payload is not as ${type} has it: ${problem}`;
}

/** What a subscriber makes of an event that it takes, whoever sends it. */
export function draftFor(event: NewEvent, subscriber: Subscriber): Draft {
  return draftOf(event, subscriber, payloadNote(event));
}

/** `note`: what is wrong with the event, which is told all the same. */
function draftOf(event: NewEvent, subscriber: Subscriber, note: string | null): Draft {
  const { batch, dedupe } = subscriber;
  const filtered = !severityAtLeast(event.severity, subscriber.severity_filter);
  return {
    subscriber_id: subscriber.id,
    filtered,
    severity: event.severity,
    priority: subscriber.priority,
    inject_at: subscriber.inject_at,
    axes: subscriber.axes,
    ttl_ms: subscriber.ttl_ms,
    content: null,
    data: null,
    directive: subscriber.directive,
    dedupe_key: keyOf(event, subscriber),
    dedupe_window_ms: dedupe.window_ms,
    batch: batch.window_ms > 0 && batch.max_size > 1 ? batch : null,
    note: filtered ? noted(note, filterNote(event, subscriber)) : note,
    wake_ms: subscriber.wake === "idle" || subscriber.axes.handler === "agent" ? subscriber.max_wait_ms : null,
  };
}

function filterNote({ severity }: NewEvent, { severity_filter, file }: Subscriber): string {
  return `${severity} is below the severity_filter ${severity_filter}${file === null ? "" : ` of ${file}`}`;
}

function noted(note: string | null, more: string): string {
  return note === null ? more : `${note}; ${more}`;
}

/** The event's own, else by the subscriber's expression, else derived; nothing needs one where nothing merges. */
export function keyOf(event: Omit<NewEvent, "timestamp">, { dedupe }: Subscriber): string | null {
  if (event.dedupe_key !== null || dedupe.window_ms === 0) return event.dedupe_key;
  return dedupe.key === null ? derivedKey(event) : dedupe.key.keyOf(event);
}

/** Priority critical is only for senders that may ask for it: another's is high, and its story says so. */
function granted(draft: Draft, { critical }: Grants): Draft {
  if (critical || draft.priority !== "critical") return draft;
  return {
    ...draft,
    priority: "high",
    inject_at: draft.inject_at === "immediate" ? "next" : draft.inject_at,
    note: noted(draft.note, "the priority critical was lowered to high: its sender lacks the scope critical"),
  };
}
