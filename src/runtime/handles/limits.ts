/** What bounds the calls that go on in the background. */
export interface HandleLimits {
  /** That run or wait at once, in one thread. */
  readonly live: number;
  /** How long what they have come to is kept. */
  readonly retention_ms: number;
  /** How many that have stopped are kept in one thread, and how much they may have to say together. */
  readonly kept: number;
  readonly kept_chars: number;
  /** How long the end of a turn waits for those that it is to wait for. */
  readonly turn_end_ms: number;
  /** How long one that is to end may take for it; then it is left alone. */
  readonly abort_ms: number;
}

export const DEFAULT_HANDLE_LIMITS: HandleLimits = {
  live: 1_000,
  retention_ms: 86_400_000,
  kept: 2_000,
  kept_chars: 8_000_000,
  turn_end_ms: 60_000,
  abort_ms: 10_000,
};
