/** What has happened over time, and how it stands now, as the border shows it. */
import { z } from "zod";
import { catchUp } from "../delivery/series.js";
import { CHANNELS, type Channel } from "../domain/axes.js";
import { InvalidInputError } from "../domain/errors.js";
import type { UserId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { timestampSchema, wordSchema } from "../domain/parse.js";
import type { Principal } from "../domain/principal.js";
import {
  addTally,
  newTally,
  POINTS_MAX,
  resolutionFor,
  STEPS_MS,
  type StepMs,
  type Tallied,
  type Tally,
} from "../domain/series.js";
import { isoTime } from "../domain/time.js";
import type { State } from "../domain/transitions.js";
import type { Standing } from "../store/contract.js";
import type { Shared } from "./shared.js";

/** What has happened in one step, which begins at `at`. */
export type PointView = Record<Tallied, number> & {
  at: string;
  /** On all channels together. */
  delivered: number;
  by_channel: Record<Channel, number>;
};

export interface NowView {
  /** What is not settled, and the dead letters: by channel and state; what is not listed is none. */
  depth: Record<Channel, Partial<Record<State, number>>>;
  /** When the oldest that is not settled was made. */
  oldest: Record<Channel, string | null>;
  unread: number;
  unacknowledged: number;
  /** Where those two end. */
  cap: number;
  dead_letters: number;
}

/** Of the hosted agent, since it was started. */
export interface ProviderView {
  name: string;
  model: string;
  calls: number;
  retries: number;
  failures: number;
  /** `message` is for the host alone. */
  last_failure: { at: string; kind: string; message: string | null } | null;
  last_answer_at: string | null;
  rate_limited_until: string | null;
}

export interface SeriesAnswer {
  /** The begin of the first step, and the end of the last. */
  from: string;
  to: string;
  step_ms: number;
  /** Nothing that was before is kept at this step. */
  since: string;
  /** All that happened up to this entry is counted. */
  seq: number;
  points: PointView[];
  now: NowView;
  /** Null if none is hosted. */
  provider: ProviderView | null;
}

export interface SeriesInput {
  user_id?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  step_ms?: number | undefined;
}

const SHORTEST_MS = 60_000;
const POINTS_USUAL = 60;

export const seriesSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  from: timestampSchema.optional(),
  to: timestampSchema.optional(),
  step_ms: z.literal(STEPS_MS, `must be one of ${STEPS_MS.join(", ")}`).optional(),
});

interface Span {
  readonly from: number;
  readonly to: number;
  readonly step_ms: StepMs;
}

/** Of one user, or of all for null. */
export async function seriesAnswer(
  shared: Shared,
  principal: Principal,
  user_id: UserId | null,
  asked: z.output<typeof seriesSchema>,
): Promise<SeriesAnswer> {
  const { store, writable } = shared;
  const span = spanOf(asked, store.now());
  if (writable) await catchUp(store);
  const resolution = resolutionFor(span.step_ms);
  const [{ points, seq }, standing] = await Promise.all([
    store.series(principal, user_id, resolution, span.from, span.to),
    store.standing(principal, user_id),
  ]);
  const steps = new Map<number, Tally>();
  for (let at = span.from; at < span.to; at += span.step_ms) steps.set(at, newTally());
  for (const { at, tally } of points) {
    const step = steps.get(at - ((at - span.from) % span.step_ms));
    if (step !== undefined) addTally(step, tally);
  }
  return {
    from: isoTime(span.from),
    to: isoTime(span.to),
    step_ms: span.step_ms,
    since: isoTime(store.now() - resolution.kept_ms),
    seq,
    points: [...steps].map(([at, tally]) => pointView(at, tally)),
    now: nowView(standing),
    provider: providerView(shared, principal.kind === "host"),
  };
}

/** Steps begin at whole multiples of their length since 1970: days at midnight (UTC). */
function spanOf(asked: z.output<typeof seriesSchema>, now: number): Span {
  const to = asked.to === undefined ? now : Date.parse(asked.to);
  const from = asked.from === undefined ? undefined : Date.parse(asked.from);
  if (from !== undefined && from >= to) throw new InvalidInputError("from", "must be before `to`");
  const step_ms = asked.step_ms ?? stepFor(to - (from ?? to));
  const end = Math.ceil((to + (asked.to === undefined ? 1 : 0)) / step_ms) * step_ms;
  const begin = from === undefined ? end - POINTS_USUAL * step_ms : Math.floor(from / step_ms) * step_ms;
  const points = (end - begin) / step_ms;
  if (points > POINTS_MAX)
    throw new InvalidInputError(
      "step_ms",
      `would make ${points} points, and ${POINTS_MAX} are the most; take a longer step`,
    );
  return { from: begin, to: end, step_ms };
}

/** The shortest that is at least a minute and fits. */
function stepFor(span_ms: number): StepMs {
  const usual = STEPS_MS.filter((step) => step >= SHORTEST_MS);
  return usual.find((step) => span_ms / step < POINTS_MAX) ?? STEPS_MS[STEPS_MS.length - 1] ?? SHORTEST_MS;
}

function pointView(at: number, { delivered, ...counts }: Tally): PointView {
  const all = CHANNELS.reduce((sum, channel) => sum + delivered[channel], 0);
  return { at: isoTime(at), ...counts, delivered: all, by_channel: delivered };
}

function nowView({ depth, oldest, counts: { unread, unacknowledged, cap } }: Standing): NowView {
  const byChannel = <Value>(value: (channel: Channel) => Value) =>
    Object.fromEntries(CHANNELS.map((channel) => [channel, value(channel)])) as Record<Channel, Value>;
  return {
    depth: byChannel((channel) =>
      Object.fromEntries(depth.filter((one) => one.channel === channel).map(({ state, count }) => [state, count])),
    ),
    oldest: byChannel((channel) => {
      const found = oldest.find((one) => one.channel === channel);
      return found === undefined ? null : isoTime(found.created_at);
    }),
    ...{ unread, unacknowledged, cap },
    dead_letters: depth.reduce((sum, { state, count }) => sum + (state === "FAILED" ? count : 0), 0),
  };
}

function providerView({ agent, model }: Shared, host: boolean): ProviderView | null {
  if (agent === null || model === null) return null;
  const { counters, health } = agent;
  const { failures, last_failure, last_answer_at, rate_limited_until } = health;
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms));
  return {
    name: model.provider,
    model: model.model,
    calls: counters.model_calls,
    retries: counters.retries,
    failures,
    last_failure:
      last_failure === null
        ? null
        : { at: isoTime(last_failure.at), kind: last_failure.kind, message: host ? last_failure.message : null },
    last_answer_at: time(last_answer_at),
    rate_limited_until: time(rate_limited_until),
  };
}
