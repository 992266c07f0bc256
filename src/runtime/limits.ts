/** What bounds a turn. */
export interface AgentLimits {
  /** Model calls of one turn. */
  readonly iterations: number;
  /** Of all its calls together, both ways. */
  readonly tokens: number;
  readonly time_ms: number;
  /** Of one call of a tool that says nothing else. */
  readonly tool_timeout_ms: number;
  /** How often a call that was not answered is made again. */
  readonly retries: number;
  /** Before the first of them; twice as long before each further one. */
  readonly retry_base_ms: number;
}

export const DEFAULT_LIMITS: AgentLimits = {
  iterations: 25,
  tokens: 1_000_000,
  time_ms: 600_000,
  tool_timeout_ms: 120_000,
  retries: 3,
  retry_base_ms: 500,
};

const RETRY_MS_MAX = 60_000;

/** How long to rest before the retry with this number, the first being 0. A provider's own word counts if it is longer. */
export function retryDelay(limits: AgentLimits, number: number, retry_after_ms = 0): number {
  return Math.min(Math.max(limits.retry_base_ms * 2 ** number, retry_after_ms), RETRY_MS_MAX);
}
