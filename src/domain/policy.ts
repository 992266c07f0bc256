/** Times and bounds of a delivery. Every one is an option of `Tidings.open`. */
export interface DeliveryPolicy {
  /** How long an agent item waits for its agent before it is taken to the user. */
  readonly agentTtlMs: number;
  /** How long a context item waits for its agent before it ends SUPPRESSED `expired`. */
  readonly contextTtlMs: number;
  /** How long a shown item waits for the user's acknowledgement before it is a dead letter. */
  readonly systemTtlMs: number;
  /** How long a claim holds without renewal. */
  readonly leaseMs: number;
  /** After so many released claims an agent item goes to the user. */
  readonly attemptsMax: number;
  /** Pause after the first released claim; four times as long after each further one, a minute at most. */
  readonly backoffMs: number;
  /** How many may wait for the agent of one thread (or, bound to none, for a user's agents); then the oldest are folded. */
  readonly pendingPerThread: number;
  /** How many of one source may wait for a user's agents; then its oldest are folded. */
  readonly pendingPerSource: number;
  /** How many critical ones a source may make for a user in a minute; further ones are high, and marked. */
  readonly criticalPerMinute: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;

export const DEFAULT_POLICY: DeliveryPolicy = {
  agentTtlMs: 300_000,
  contextTtlMs: 7 * DAY_MS,
  systemTtlMs: 7 * DAY_MS,
  leaseMs: 60_000,
  attemptsMax: 3,
  backoffMs: 1_000,
  pendingPerThread: 1_000,
  pendingPerSource: 1_000,
  criticalPerMinute: 20,
};

const GROWTH_MAX = 10;
/** However often it failed, an item is offered again after a minute. */
const BACKOFF_MS_MAX = 60_000;

export function backoffAfter(attempts: number, policy: DeliveryPolicy): number {
  const growth = 4 ** Math.min(Math.max(0, attempts - 1), GROWTH_MAX);
  return Math.min(policy.backoffMs * growth, Math.max(policy.backoffMs, BACKOFF_MS_MAX));
}
