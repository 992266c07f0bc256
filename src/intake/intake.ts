import { AccessError, InvalidInputError } from "../domain/errors.js";
import type { NewEvent } from "../domain/event.js";
import { DIRECT_SUBSCRIBER } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import type { ParsedNotify } from "../domain/notification.js";
import { severityAtLeast } from "../domain/severity.js";
import type { Grants } from "../domain/token.js";
import type { Acceptance, Draft } from "../store/contract.js";
import { generalWords, type Subscriber } from "./subscriber.js";

/** From an event to what the store takes in: who matches, and in which words. */
export class Intake {
  readonly #byType = new Map<string, Subscriber[]>();

  constructor(subscribers: readonly Subscriber[]) {
    const ids = new Set<string>();
    for (const subscriber of subscribers) {
      if (ids.has(subscriber.id)) throw new InvalidInputError("subscribers", `two have the id ${subscriber.id}`);
      ids.add(subscriber.id);
      for (const pattern of new Set(subscriber.types)) {
        const found = this.#byType.get(pattern);
        if (found === undefined) this.#byType.set(pattern, [subscriber]);
        else found.push(subscriber);
      }
    }
  }

  /** By the type and each of its prefixes: the cost does not depend on how many subscribers do not match. */
  #matching(type: string): Subscriber[] {
    const found = [...(this.#byType.get(type) ?? [])];
    for (let dot = type.lastIndexOf("."); dot > 0; dot = type.lastIndexOf(".", dot - 1)) {
      for (const subscriber of this.#byType.get(`${type.slice(0, dot)}.*`) ?? [])
        if (!found.includes(subscriber)) found.push(subscriber);
    }
    return found;
  }

  forEvent(event: NewEvent, grants: Grants): Acceptance {
    const drafts = this.#matching(event.type).map((subscriber) => granted(draftOf(event, subscriber), grants));
    return { event, drafts };
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
      note: null,
    };
    return { event, drafts: [granted(draft, grants)] };
  }
}

function draftOf(event: NewEvent, subscriber: Subscriber): Draft {
  return {
    subscriber_id: subscriber.id,
    filtered: !severityAtLeast(event.severity, subscriber.severity_filter),
    severity: event.severity,
    priority: subscriber.priority,
    inject_at: subscriber.inject_at,
    axes: subscriber.axes,
    ttl_ms: subscriber.ttl_ms,
    content: wordsOf(event, subscriber),
    data: null,
    directive: subscriber.directive,
    dedupe_key: event.dedupe_key,
    dedupe_window_ms: subscriber.dedupe_window_ms,
    note: null,
  };
}

/** Priority critical is only for senders that may ask for it: another's is high, and its story says so. */
function granted(draft: Draft, { critical }: Grants): Draft {
  if (critical || draft.priority !== "critical") return draft;
  return {
    ...draft,
    priority: "high",
    inject_at: draft.inject_at === "immediate" ? "next" : draft.inject_at,
    note: "the priority critical was lowered to high: its sender lacks the scope critical",
  };
}

/** A subscriber that cannot find words is no reason to lose an event. */
function wordsOf(event: NewEvent, subscriber: Subscriber): string {
  let words: unknown;
  try {
    words = subscriber.content(event);
  } catch {
    words = undefined;
  }
  const usable = typeof words === "string" && words.length > 0 ? words : generalWords(event);
  return usable.slice(0, LIMITS.contentChars).toWellFormed();
}
