import { z } from "zod";
import type { FeedBatch } from "../delivery/feed.js";
import { CHANNELS, type Channel } from "../domain/axes.js";
import type { EventId, NotificationId, SubscriberId } from "../domain/ids.js";
import type { MatchOutcome } from "../domain/journal.js";
import { LIMITS } from "../domain/limits.js";
import { ACK_ACTIONS, type AckAction, type NotificationView } from "../domain/notification.js";
import { isPlainOf, isWord, parseInput, wordSchema } from "../domain/parse.js";
import { SEVERITIES, type Severity } from "../domain/severity.js";
import { STATES, type State } from "../domain/transitions.js";
import { disabledSchema } from "../intake/listing.js";
import type { ThreadPush } from "../runtime/thread_pushes.js";
import type { Accepted, Counts } from "../store/contract.js";

/** What users are to be shown, in the order of the journal. */
export interface ShownBatch extends FeedBatch {
  /** What happened in the conversations that somebody follows. */
  readonly conversations: readonly ThreadPush[];
}

export interface EmitAnswer {
  /** The host's id of the event. */
  id: EventId;
  seq: number;
  outcome: Accepted["outcome"];
  matches: { subscriber_id: SubscriberId; outcome: MatchOutcome; notification: NotificationView }[];
}

/** One event of many: its answer, or the error that it alone got. */
export type EmitOutcome = EmitAnswer | { error: Error };

export interface NotifyAnswer {
  id: NotificationId;
  seq: number;
  state: State;
  channel: Channel;
}

type OneOrMore<Word extends string> = Word | readonly Word[];

export interface ListInput {
  user_id?: string | undefined;
  thread_id?: string | undefined;
  /** One of them, or any of several. */
  channel?: OneOrMore<Channel> | undefined;
  state?: OneOrMore<State> | undefined;
  severity?: OneOrMore<Severity> | undefined;
  /** On a system channel, and neither clicked nor dismissed. */
  unread?: boolean | undefined;
  /** On a system channel, and not yet acknowledged in any way. */
  unacknowledged?: boolean | undefined;
  limit?: number | undefined;
  after?: string | undefined;
}

export interface ListAnswer {
  /** Newest first. */
  notifications: NotificationView[];
  /** For the next page; a page may be short while this is set. */
  next: string | null;
}

export interface ChangedInput {
  /** The `next` of an earlier answer; without it only that is answered: what changes from now on. */
  after?: string | undefined;
  limit?: number | undefined;
  /** If nothing has changed: how long to wait for something that does. */
  wait_ms?: number | undefined;
}

export interface InboxAnswer {
  items: { notification: NotificationView; seq: number }[];
  counts: Counts;
  /** The journal's newest entry at that moment. */
  seq: number;
}

export interface AckInput {
  id: string;
  /** The revision that was seen: an old one does not settle a newer text. */
  revision: number;
  action: AckAction;
}

export interface SettingsInput {
  user_id?: string | undefined;
  /** All that this user wants to have switched off. */
  disabled_subscribers: readonly string[];
}

function oneOrMore<Word extends string>(words: readonly [Word, ...Word[]]) {
  const one = z.enum(words);
  return z.union([one, z.array(one).min(1).max(words.length)]);
}

export const listSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  thread_id: wordSchema(LIMITS.idChars).optional(),
  channel: oneOrMore(CHANNELS).optional(),
  state: oneOrMore(STATES).optional(),
  severity: oneOrMore(SEVERITIES).optional(),
  unread: z.boolean().optional(),
  unacknowledged: z.boolean().optional(),
  limit: z.int().min(1).max(LIMITS.listLimit).default(100),
  after: z.string().optional(),
});

export const changedSchema = z.strictObject({
  after: z.string().optional(),
  limit: z.int().min(1).max(LIMITS.listLimit).default(100),
  wait_ms: z.int().min(0).max(LIMITS.waitMsMax).default(0),
});

export const ackSchema = z.strictObject({
  id: wordSchema(LIMITS.idChars),
  revision: z.int().min(1),
  action: z.enum(ACK_ACTIONS),
});

const ACK_KEYS: ReadonlySet<string> = new Set(Object.keys(ackSchema.shape));

/** Asks the schema only for what is wrong. */
export function parseAck(input: unknown): AckInput {
  if (!isPlainOf(input, ACK_KEYS)) return parseInput(ackSchema, input);
  const { id, revision, action } = input;
  const usual =
    isWord(id, LIMITS.idChars) &&
    typeof revision === "number" &&
    Number.isSafeInteger(revision) &&
    revision >= 1 &&
    ACK_ACTIONS.includes(action as AckAction);
  return usual ? { id, revision, action: action as AckAction } : parseInput(ackSchema, input);
}

export const settingsSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  disabled_subscribers: disabledSchema,
});
