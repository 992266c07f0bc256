/** The user is told something by the system, in words of its own. */
import type { Address } from "../domain/axes.js";
import { DIRECT_SUBSCRIBER, type ThreadId, type UserId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { HOST } from "../domain/principal.js";
import { priorityFromSeverity } from "../domain/priority.js";
import type { Severity } from "../domain/severity.js";
import type { Accepted, Store } from "../store/contract.js";

export interface Telling {
  readonly user_id: UserId;
  readonly thread_id: ThreadId | null;
  readonly kind: string;
  readonly severity: Severity;
  readonly content: string;
  /** Told once: the same again within a minute counts to it. */
  readonly key: string;
}

export function tellTheUser(store: Store, telling: Telling): Promise<Accepted> {
  const { user_id, thread_id, kind, severity, key } = telling;
  const address: Address = thread_id === null ? "user" : "session";
  const event = {
    producer_id: null,
    type: kind,
    source: DIRECT_SUBSCRIBER,
    severity,
    timestamp: null,
    payload: {},
    dedupe_key: key,
    user_id,
    thread_id,
    subject: null,
  };
  const draft = {
    subscriber_id: DIRECT_SUBSCRIBER,
    filtered: false,
    severity,
    priority: priorityFromSeverity(severity),
    inject_at: "next",
    axes: { address, target: "user", handler: "system" },
    ttl_ms: null,
    content: telling.content.slice(0, LIMITS.contentChars).toWellFormed(),
    data: null,
    directive: null,
    dedupe_key: key,
    dedupe_window_ms: LIMITS.dedupeWindowMs,
    batch: null,
    note: null,
    wake_ms: null,
  } as const;
  return store.accept(HOST, { event, drafts: [draft] });
}
