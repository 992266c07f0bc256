/** Who is woken when: what is to be done about what waits for the agent of one thread. Nothing here does anything. */
import type { NotificationId } from "../domain/ids.js";
import type { Waiting } from "../store/contract.js";
import type { Activity } from "./turn.js";

/** What is critical waits so long for more of its kind. */
const GATHER_MS = 100;
/** So long what is not critical waits for company, if it may. */
const COMPANY_MS = 250;

export interface Situation {
  readonly activity: Activity | "idle";
  readonly paused: boolean;
  /** Too much was forced in too short a time. */
  readonly storm: boolean;
  readonly now: number;
}

export type Decision =
  /** What waits is told at the next delivery point, or when the situation is another. */
  | { readonly do: "nothing" }
  | { readonly do: "look"; readonly at: number }
  /** A turn of the system's own accord, at once: an answer that is being given is cut off. */
  | { readonly do: "force" }
  | { readonly do: "wake" }
  /** To the user: `ids` are taken from the agent, the words of `shown` are repeated, since those cannot be. */
  | {
      readonly do: "escalate";
      readonly reason: "paused" | "storm";
      readonly ids: readonly NotificationId[];
      readonly shown: readonly NotificationId[];
    };

export function decide(waiting: readonly Waiting[], situation: Situation): Decision {
  const { activity, paused, storm, now } = situation;
  const critical = waiting.filter(({ priority }) => priority === "critical");
  const byAgent = (items: readonly Waiting[]) => items.filter(({ channel }) => channel === "agent").map(({ id }) => id);
  if (paused) {
    const shown = critical.filter(({ channel }) => channel === "context").map(({ id }) => id);
    return escalation("paused", byAgent(critical), shown);
  }
  if (storm) {
    const taken = byAgent(activity === "idle" ? waiting : critical);
    if (taken.length > 0 || activity !== "idle") return escalation("storm", taken, []);
    // What is critical rides with the next carrier. What else the agent is woken for does not wait past its time.
    const late = earliest(waiting.filter(({ priority }) => priority !== "critical").map(latestAt));
    return late <= now ? { do: "wake" } : later(late);
  }
  if (activity === "tools" || activity === "between") return { do: "nothing" };
  const forceAt = earliest(critical.map(forcedAt));
  if (forceAt <= now) return { do: "force" };
  const wakeAt = activity === "idle" ? earliest(waiting.map(wokenAt)) : Number.POSITIVE_INFINITY;
  if (wakeAt <= now) return { do: "wake" };
  return later(Math.min(forceAt, wakeAt));
}

function later(at: number): Decision {
  return at === Number.POSITIVE_INFINITY ? { do: "nothing" } : { do: "look", at };
}

function escalation(
  reason: "paused" | "storm",
  ids: readonly NotificationId[],
  shown: readonly NotificationId[],
): Decision {
  return ids.length + shown.length === 0 ? { do: "nothing" } : { do: "escalate", reason, ids, shown };
}

function earliest(times: readonly number[]): number {
  return times.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY);
}

/** When what is critical goes out, with what came meanwhile. */
function forcedAt({ created_at, not_before }: Waiting): number {
  return Math.max(created_at + GATHER_MS, not_before);
}

/** When an idle thread is woken for it: soon, or when its batch is closed, but never past its time. */
function wokenAt(item: Waiting): number {
  const { created_at, not_before, open_until } = item;
  const soon = open_until ?? created_at + COMPANY_MS;
  return Math.max(Math.min(soon, latestAt(item)), not_before);
}

function latestAt({ created_at, wait_ms, not_before }: Waiting): number {
  return Math.max(created_at + wait_ms, not_before);
}
