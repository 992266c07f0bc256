/** What a worker, and the one who reopens its folder after it, open it with. */
import { BATCHED_TYPES } from "./batches.mjs";

/** Short, so that leases run out, agents are given up and letters die within a few lives. */
export const POLICY = {
  agentTtlMs: 700,
  contextTtlMs: 1_500,
  systemTtlMs: 1_200,
  leaseMs: 400,
  attemptsMax: 3,
  backoffMs: 20,
  // So that a burst is more than may wait.
  pendingPerThread: 5,
  pendingPerSource: 6,
};

const routed = (id, address, target, handler) => ({
  id,
  types: [`load.${id}`],
  routing: { address, target, handler },
  dedupe_window_ms: 60_000,
});

/** Every channel; `both` makes two notifications of one event. */
export const SUBSCRIBERS = [
  routed("inbox", "user", "user", "system"),
  routed("floor", "session", "user", "system"),
  routed("narrate", "session", "user", "agent"),
  routed("decide", "session", "agent", "agent"),
  routed("context", "session", "agent", "system"),
  { ...routed("both_inbox", "user", "user", "system"), types: ["load.both"] },
  { ...routed("both_agent", "user", "agent", "agent"), types: ["load.both"] },
];

/** `nobody` matches no subscriber. Those that batch are files in the folder. */
export const TYPES = [
  ...["inbox", "floor", "narrate", "decide", "context", "both", "nobody"].map((name) => `load.${name}`),
  ...BATCHED_TYPES,
];
