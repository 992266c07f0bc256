/** What was fired, and what came of it: kept while the page is open, wherever one goes in it. */

import { notifications } from "@mantine/notifications";
import { useSyncExternalStore } from "react";
import type { TidingsClient } from "tidings/client";
import { useClient, useTold } from "../../session/session.js";
import type { Agent } from "./agent.js";
import { SITUATIONS, type SituationKey } from "./situations.js";
import { type Found, NOTHING, Stage } from "./stage.js";

export interface Run extends Found {
  /** Of which firing it is. */
  readonly number: number;
  readonly error: string | null;
}

class Runs {
  readonly #client: TidingsClient;
  readonly #runs = new Map<SituationKey, Run>();
  readonly #listeners = new Set<() => void>();

  constructor(client: TidingsClient) {
    this.#client = client;
  }

  get(key: SituationKey): Run | undefined {
    return this.#runs.get(key);
  }

  /** Whether a conversation was started for one of them. */
  has(thread_id: string): boolean {
    return [...this.#runs.values()].some((run) => run.thread_id === thread_id);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  async fire(key: SituationKey, agent: Agent): Promise<void> {
    const number = (this.get(key)?.number ?? 0) + 1;
    let run: Run = { ...NOTHING, doing: "Starting", number, error: null };
    const change = (news: Partial<Run>) => {
      run = { ...run, ...news };
      this.#runs.set(key, run);
      for (const listener of this.#listeners) listener();
    };
    change({});
    try {
      const { starts, fire } = SITUATIONS[key];
      const stage = await Stage.open(this.#client, agent, starts?.(agent) ?? {}, change);
      await fire(stage).finally(() => stage.close());
      change({ doing: null });
    } catch (error) {
      change({ doing: null, error: error instanceof Error ? error.message : String(error) });
    }
  }
}

const OF_CLIENT = new WeakMap<TidingsClient, Runs>();

function runsOf(client: TidingsClient): Runs {
  const known = OF_CLIENT.get(client) ?? new Runs(client);
  OF_CLIENT.set(client, known);
  return known;
}

/** What the agent says in a conversation that was started here stands on its card, which a toast would cover. */
export function useNoToasts(): void {
  const runs = runsOf(useClient());
  useTold(({ method, params }) => {
    if (method !== "item/created" && method !== "item/updated") return;
    if (runs.has(params.thread_id)) notifications.hide(`toast:${params.turn_id}`);
  });
}

export function useRun(key: SituationKey): {
  readonly run: Run | undefined;
  readonly fire: (agent: Agent) => Promise<void>;
} {
  const runs = runsOf(useClient());
  const run = useSyncExternalStore(runs.subscribe, () => runs.get(key));
  return { run, fire: (agent) => runs.fire(key, agent) };
}
