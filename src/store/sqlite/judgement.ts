/** What of a notification is to be told now, and what the switches and the agent's own eyes hold back; and in which words. */
import { isSystemChannel } from "../../domain/axes.js";
import type { Event } from "../../domain/event.js";
import { DIRECT_SUBSCRIBER, OVERFLOW_SUBSCRIBER, type ThreadId } from "../../domain/ids.js";
import type { Notification } from "../../domain/notification.js";
import type { Command } from "../../domain/reducer.js";
import { mostSevere } from "../../domain/severity.js";
import type { Row } from "../contract.js";
import type { Core } from "./core.js";
import type { Held } from "./ledger.js";
import type { RowRecord } from "./rows.js";

/** The rows of a notification with their events. */
export function rowsOf(core: Core, held: Held): { record: RowRecord; event: Event }[] {
  const first = () => core.journal.event(held.notification.event_id)?.timestamp ?? "";
  return core.rows.of(held, first).flatMap((record) => {
    const event = core.journal.event(record.event_id);
    return event === undefined ? [] : [{ record, event }];
  });
}

export function asRow({ record, event }: { record: RowRecord; event: Event }): Row {
  return { event, count: record.count, since: record.since };
}

/** What is held back of a notification now, and what is to be told. */
interface Judgement {
  readonly told: readonly Row[];
  /** The rules that hold back the others, each once. */
  readonly rules: readonly string[];
  readonly observed: boolean;
  readonly held: number;
}

function judgementOf(core: Core, held: Held, told_now: boolean): Judgement {
  const { notification, delivery } = held;
  const disabled = core.settings.of(delivery.user_id).disabled_subscribers;
  const mutes = told_now && core.editor.holdsAny(disabled);
  const told: Row[] = [];
  const rules = new Set<string>();
  let observed = false;
  let kept = 0;
  for (const one of rowsOf(core, held)) {
    const { event } = one;
    const seen = isObserved(core, notification, event, delivery.thread_id);
    const rule = seen
      ? `the agent has seen ${event.subject} by itself`
      : mutes
        ? core.editor.held(event, notification.subscriber_id, delivery.priority, disabled)
        : undefined;
    if (rule === undefined) {
      told.push(asRow(one));
      continue;
    }
    kept += 1;
    observed ||= seen;
    rules.add(rule);
  }
  return { told, rules: [...rules], observed, held: kept };
}

/** Only the agent's own observation keeps something from the agent; what is for the user is shown. */
export function isObserved(
  core: Core,
  { axes }: Pick<Notification, "axes">,
  { subject }: Event,
  thread_id: ThreadId | null,
): boolean {
  if (subject === null || thread_id === null) return false;
  const forAgent = axes.target === "agent" || axes.handler === "agent";
  return forAgent && core.threads.hasObserved(thread_id, subject);
}

const RULES_SHOWN = 5;

/**
 * Closes the batch and words it. If it is told now, it is worded of what the switches let pass, and with nothing left it is
 * suppressed; if it then waits for its agent, the switches are asked when that one comes.
 */
export function flushCommand(core: Core, at: number, held: Held, told_now: boolean): Command {
  return commandFor(core, at, held, judgementOf(core, held, told_now));
}

/** What must be done before it is told, if anything of it is held back now; null if all of it is to be told as it stands. */
export function judgeCommand(core: Core, at: number, held: Held): Command | null {
  const { attempts, user_id, rows } = held.delivery;
  const { disabled_subscribers } = core.settings.of(user_id);
  // What was collected before may have been worded of a part of its rows.
  const whole = attempts === 0 || rows === 1;
  if (whole && !core.editor.holdsAny(disabled_subscribers)) return null;
  const judgement = judgementOf(core, held, true);
  return whole && judgement.held === 0 ? null : commandFor(core, at, held, judgement);
}

/** Withdraws what the agent has seen by itself; null if nothing is to be withdrawn now. */
export function observedCommand(core: Core, at: number, held: Held): Command | null {
  const { notification, delivery } = held;
  if (isSystemChannel(delivery.channel) || (delivery.rows === 1 && notification.subject === null)) return null;
  const judgement = judgementOf(core, held, false);
  // An open one leaves them out when it is closed.
  if (!judgement.observed || (judgement.told.length > 0 && delivery.open_until !== null)) return null;
  return commandFor(core, at, held, judgement);
}

function commandFor(core: Core, at: number, { notification }: Held, judgement: Judgement): Command {
  const { told, rules, held } = judgement;
  const shown = rules.slice(0, RULES_SHOWN).join("; ");
  if (told.length === 0 && held > 0)
    return { column: "suppress", reason: judgement.observed ? "observed" : "muted", note: shown };
  const note = held === 0 ? {} : { note: `${held} of ${told.length + held} rows held back: ${shown}` };
  const { content, severity, degraded } = notification;
  // A text that its sender has given, or whose events are gone, is what it is.
  const given = told.length === 0 || isGiven(notification);
  const words = given ? { content, degraded } : core.editor.words(notification.subscriber_id, told, at);
  const worst = given ? severity : mostSevere(told.map(({ event }) => event.severity));
  const said = { content: words.content, degraded: words.degraded, severity: worst };
  return { column: "flush", words: { ...said, ...kindOf(notification, given ? [] : told) }, ...note };
}

/** It is called by something that it tells: what made it may be held back, or no longer be what its row shows. */
function kindOf({ kind }: Notification, told: readonly Row[]): { kind?: string } {
  const first = told[0];
  return first === undefined || told.some(({ event }) => event.type === kind) ? {} : { kind: first.event.type };
}

/** In words of its own, which nobody can say anew. */
export function isGiven({ subscriber_id, redrive_of }: Notification): boolean {
  return subscriber_id === DIRECT_SUBSCRIBER || subscriber_id === OVERFLOW_SUBSCRIBER || redrive_of !== null;
}
