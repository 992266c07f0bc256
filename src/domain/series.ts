/** What has happened over time: counts by steps, added up from the journal. */
import { CHANNELS, type Channel } from "./axes.js";
import type { NotificationId } from "./ids.js";
import type { JournalEntry } from "./journal.js";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** What is kept: steps of this length, for so long. */
export const RESOLUTIONS = [
  { step_ms: 10 * SECOND_MS, kept_ms: 6 * HOUR_MS },
  { step_ms: MINUTE_MS, kept_ms: 7 * DAY_MS },
  { step_ms: HOUR_MS, kept_ms: 400 * DAY_MS },
] as const;

export type Resolution = (typeof RESOLUTIONS)[number];

/** What can be asked for. */
export const STEPS_MS = [
  10 * SECOND_MS,
  30 * SECOND_MS,
  MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  HOUR_MS,
  6 * HOUR_MS,
  DAY_MS,
] as const;

export type StepMs = (typeof STEPS_MS)[number];

/** Points of one answer. */
export const POINTS_MAX = 1_000;

/** The coarsest of what is kept that makes up such steps. */
export function resolutionFor(step_ms: StepMs): Resolution {
  const [finest] = RESOLUTIONS;
  return RESOLUTIONS.findLast((one) => step_ms % one.step_ms === 0) ?? finest;
}

/** Four characters make a token, near enough; as for the budget of a block. */
const CHARS_PER_TOKEN = 4;

export function tokensIn(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}

/** What a tally counts, beside what was delivered on each channel. */
export const TALLIED = [
  "events",
  "notifications",
  "merged",
  "escalated",
  "failed",
  "suppressed",
  "wakes",
  "blocks_injected",
  "tokens_injected",
] as const;

export type Tallied = (typeof TALLIED)[number];

/**
 * - `events`: taken in, those that nobody takes too
 * - `notifications`: made of them; `merged`: events that counted to one that was there
 * - `escalated`: went on to the user; `failed`: became dead letters; `suppressed`: were kept back
 * - `wakes`: turns that the system opened
 * - `blocks_injected`: what agents were told; `tokens_injected`: how long that was, estimated
 */
export type Tally = Record<Tallied, number> & { readonly delivered: Record<Channel, number> };

export function newTally(): Tally {
  const counts = Object.fromEntries(TALLIED.map((name) => [name, 0])) as Record<Tallied, number>;
  const delivered = Object.fromEntries(CHANNELS.map((channel) => [channel, 0])) as Record<Channel, number>;
  return { ...counts, delivered };
}

export function addTally(to: Tally, more: Tally): void {
  for (const name of TALLIED) to[name] += more[name];
  for (const channel of CHANNELS) to.delivered[channel] += more.delivered[channel];
}

/** What an entry alone does not say. */
export interface TallySource {
  /** Where a notification was delivered; undefined if it is no longer there. */
  channelOf(id: NotificationId): Channel | undefined;
  /** How long the block was that a carrier's first entry has. */
  blockChars(entry: Extract<JournalEntry, { type: "carrier" }>): number;
}

/** Counts what an entry says. */
export function tallyEntry(to: Tally, entry: JournalEntry, source: TallySource): void {
  if (entry.type === "event") to.events += 1;
  if (entry.type === "turn" && entry.state === "active" && entry.source === "system") to.wakes += 1;
  if (entry.type === "carrier" && entry.told === true) {
    to.blocks_injected += 1;
    to.tokens_injected += tokensIn(source.blockChars(entry));
  }
  for (const { command, path, notification_id } of entry.changes) {
    if (command === "create") to.notifications += 1;
    if (command === "merge") to.merged += 1;
    switch (path.at(-1)) {
      case "DELIVERED": {
        const channel = source.channelOf(notification_id);
        if (channel !== undefined) to.delivered[channel] += 1;
        break;
      }
      case "ESCALATED":
        to.escalated += 1;
        break;
      case "FAILED":
        to.failed += 1;
        break;
      case "SUPPRESSED":
        to.suppressed += 1;
        break;
    }
  }
}
