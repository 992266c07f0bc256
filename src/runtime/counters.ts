/** What the agent has done since it was started; for metrics. */
export interface Counters {
  model_calls: number;
  refused_acknowledgements: number;
  unknown_tools: number;
  malformed_calls: number;
  /** Turns that something critical forced. */
  forced_turns: number;
  /** Turns of the system's own accord for what was not critical. */
  wakes: number;
  retries: number;
}

export function newCounters(): Counters {
  return {
    model_calls: 0,
    refused_acknowledgements: 0,
    unknown_tools: 0,
    malformed_calls: 0,
    forced_turns: 0,
    wakes: 0,
    retries: 0,
  };
}
