/** The subscribers as the border shows them, and what a user may switch off. */
import { basename } from "node:path";
import { z } from "zod";
import type { Address, Handler, Target } from "../domain/axes.js";
import { InvalidInputError } from "../domain/errors.js";
import { type EventId, type NotificationId, type SubscriberId, subscriberId, type UserId } from "../domain/ids.js";
import type { MatchOutcome } from "../domain/journal.js";
import { LIMITS } from "../domain/limits.js";
import { didYouMean } from "../domain/nearest.js";
import { wordSchema } from "../domain/parse.js";
import type { InjectionPoint, Priority } from "../domain/priority.js";
import type { UserSettings } from "../domain/settings.js";
import type { Severity } from "../domain/severity.js";
import type { Catalogue, Problem } from "./catalogue.js";
import { idleSwitches } from "./idle_switches.js";
import type { Subscriber } from "./subscriber.js";
import { problemLine } from "./subscribers/set.js";
import { withoutEffect } from "./switches.js";

/**
 * - `active`: it takes events, and this user is told
 * - `disabled`: this user has switched it off
 * - `loaded`: its file has `enabled = false`: it takes none
 * - `broken`: its file is; `reason` says what is wrong, and what is in effect instead
 */
export type SubscriberState = "active" | "disabled" | "loaded" | "broken";
export type InEffect = Exclude<SubscriberState, "broken">;

/** What the file of a broken one would say is null, unless an earlier version of it or a built-in one is in effect. */
export interface SubscriberView {
  id: string;
  name: string | null;
  description: string | null;
  version: string | null;
  state: SubscriberState;
  core: boolean | null;
  /** Why nobody can switch it off; null if one can. */
  core_reason: string | null;
  enabled: boolean | null;
  types: string[] | null;
  /** Null: from any. */
  sources: string[] | null;
  severity_filter: Severity | null;
  priority: Priority | null;
  inject_at: InjectionPoint | null;
  address: Address | null;
  target: Target | null;
  handler: Handler | null;
  batch_window_ms: number | null;
  max_batch_size: number | null;
  dedupe_window_ms: number | null;
  built_in: boolean;
  /** Null: the program gave it. */
  file: string | null;
  reason: string | null;
  /** The newest events that it took for this user, newest first; as many as were asked for. */
  last_matches: MatchView[];
}

/** An event that a subscriber took, and what became of it. */
export interface MatchView {
  at: string;
  event_id: EventId;
  event_type: string;
  outcome: MatchOutcome;
  notification_id: NotificationId;
}

/** What is wrong with a file. */
export interface ProblemView {
  /** Where to look: the subscriber's file, or its template if that is what is wrong. */
  file: string;
  /** The file that did not load for it. */
  subscriber_file: string;
  line: number | null;
  column: number | null;
  key: string | null;
  reason: string;
  subscriber_id: string | null;
  /** What is in effect in spite of it; `all_on`, of `tidings.toml`: nothing is switched off. */
  instead: "last_good" | "built_in" | "all_on" | null;
  /** All of it in one line. */
  text: string;
}

export interface SubscriberList {
  subscribers: SubscriberView[];
  /** Of their files, and of `tidings.toml`. */
  problems: ProblemView[];
  /**
   * What is switched off in `tidings.toml` or by the user, and stays on because it is core; and what no subscriber takes,
   * or is probably misspelt.
   */
  without_effect: string[];
}

/** Every subscriber that is in effect, then the files of which nothing is. */
export function subscriberList(
  catalogue: Catalogue,
  { disabled_subscribers }: UserSettings,
  matches: ReadonlyMap<SubscriberId, readonly MatchView[]> = new Map(),
): SubscriberList {
  const { problems } = catalogue;
  const reasons = new Map<SubscriberId, string[]>();
  const broken = new Map<string, Problem[]>();
  for (const problem of problems) {
    if (problem.about === "config") continue;
    const { subscriber_file: file } = problem;
    const inEffect = inSpiteOf(catalogue, problem);
    if (inEffect !== undefined) reasons.set(inEffect, [...(reasons.get(inEffect) ?? []), problemLine(problem)]);
    else if (file.endsWith(".toml")) broken.set(file, [...(broken.get(file) ?? []), problem]);
  }
  return {
    subscribers: [
      ...catalogue.subscribers.map((one) =>
        viewOf(one, disabled_subscribers, reasons.get(one.id), matches.get(one.id)),
      ),
      ...[...broken.values()].map(brokenView),
    ],
    problems: problems.map(problemView),
    without_effect: [
      ...withoutEffect(
        catalogue.config,
        catalogue.subscribers.filter(({ core, enabled }) => core && enabled),
        disabled_subscribers,
      ),
      ...idleSwitches(
        catalogue.config,
        catalogue.subscribers.flatMap(({ types }) => types),
      ),
    ],
  };
}

/** The id of what is in effect although that file is broken. */
function inSpiteOf({ subscribers }: Catalogue, { instead, ...problem }: Problem): SubscriberId | undefined {
  if (instead === null) return undefined;
  const kept = subscribers.find((one) =>
    instead === "last_good" ? one.file === problem.subscriber_file : one.built_in && one.id === problem.subscriber_id,
  );
  return kept?.id;
}

function viewOf(
  subscriber: Subscriber,
  disabled: readonly SubscriberId[],
  reasons: readonly string[] | undefined,
  matches: readonly MatchView[] = [],
): SubscriberView {
  const { id, name, description, version, core, enabled, types, sources, batch, dedupe, axes } = subscriber;
  const { severity_filter, priority, inject_at, built_in, file } = subscriber;
  return {
    id,
    name,
    description,
    version,
    state: reasons === undefined ? stateOf(subscriber, disabled) : "broken",
    core,
    core_reason: core ? CORE_REASON : null,
    enabled,
    types: [...types],
    sources: sources === null ? null : [...sources],
    severity_filter,
    priority,
    inject_at,
    ...axes,
    batch_window_ms: batch.window_ms,
    max_batch_size: batch.max_size,
    dedupe_window_ms: dedupe.window_ms,
    built_in,
    file,
    reason: reasons === undefined ? null : reasons.join("; "),
    last_matches: [...matches],
  };
}

const CORE_REASON = "it is core: what it tells must not be missed, so no user and no switch turns it off";

export function stateOf({ id, core, enabled }: Subscriber, disabled: readonly SubscriberId[]): InEffect {
  if (!enabled) return "loaded";
  return disabled.includes(id) && !core ? "disabled" : "active";
}

function brokenView(problems: readonly Problem[]): SubscriberView {
  const { subscriber_file: file = "", subscriber_id = null } = problems[0] ?? {};
  return {
    id: subscriber_id ?? basename(file, ".toml"),
    name: null,
    description: null,
    version: null,
    state: "broken",
    core: null,
    core_reason: null,
    enabled: null,
    types: null,
    sources: null,
    severity_filter: null,
    priority: null,
    inject_at: null,
    address: null,
    target: null,
    handler: null,
    batch_window_ms: null,
    max_batch_size: null,
    dedupe_window_ms: null,
    built_in: false,
    file,
    reason: problems.map(problemLine).join("; "),
    last_matches: [],
  };
}

function problemView(problem: Problem): ProblemView {
  const { file, subscriber_file, line, column, key, reason, subscriber_id, instead } = problem;
  return { file, subscriber_file, line, column, key, reason, subscriber_id, instead, text: problemLine(problem) };
}

export interface SettingsView {
  user_id: UserId;
  disabled_subscribers: SubscriberId[];
  /** Those of them that are no longer there. */
  unknown: SubscriberId[];
}

export function settingsView(catalogue: Catalogue, { user_id, disabled_subscribers }: UserSettings): SettingsView {
  const unknown = disabled_subscribers.filter((id) => catalogue.subscriber(id) === undefined);
  return { user_id, disabled_subscribers: [...disabled_subscribers], unknown };
}

export const disabledSchema = z.array(wordSchema(LIMITS.idChars)).max(LIMITS.disabledSubscribers);

/**
 * What a user wants to have switched off, checked. What is switched off already may stay so: also one that was removed
 * since, or is core by now.
 */
export function checkedDisabled(
  catalogue: Catalogue,
  before: readonly SubscriberId[],
  wanted: readonly string[],
): SubscriberId[] {
  const ids = [...new Set(wanted)].map(subscriberId);
  for (const id of ids) {
    if (before.includes(id)) continue;
    const subscriber = catalogue.subscriber(id);
    if (subscriber === undefined) {
      const known = catalogue.subscribers.filter(({ core }) => !core).map((one) => one.id);
      throw refused(`there is no subscriber ${JSON.stringify(id)}${didYouMean(id, known)}`);
    }
    if (subscriber.core) throw refused(`${id} is a core subscriber: it cannot be switched off`);
  }
  return ids;
}

function refused(reason: string): InvalidInputError {
  return new InvalidInputError("disabled_subscribers", reason);
}
