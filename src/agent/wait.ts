/** Collecting, and waiting for the first thing that is ready where there is nothing yet. */
import { setMaxListeners } from "node:events";
import type { Principal } from "../domain/principal.js";
import { pause } from "../platform/timers.js";
import type { Collected, CollectRequest, Store } from "../store/contract.js";

/** How often it is looked at besides: what rests after a failure becomes ready without a commit. */
const LOOK_MS = 1_000;

/** Whoever asked has gone: the agent was not told. */
const GONE = "whoever collected it had gone";

export interface Waiting {
  readonly wait_ms: number;
  /** The caller wants it no more. */
  readonly gone: AbortSignal | undefined;
  /** The store closes, or has failed. */
  readonly ended: AbortSignal;
}

/**
 * What is there, or else the first that becomes ready in time: an item by itself, or a batch whose window has ended. A
 * batch that is open now is taken at once, as at every delivery point; while waiting, none is cut short.
 */
export async function collectWithin(
  store: Store,
  principal: Principal,
  request: CollectRequest,
  waiting: Waiting,
): Promise<Collected | null> {
  if (waiting.gone?.aborted) return null;
  const found = await collectFor(store, principal, request, waiting.gone);
  if (found !== null || waiting.wait_ms === 0) return found;
  const { user_id } = await store.thread(principal, request.thread_id);
  const { gone, ended, wait_ms } = waiting;
  let look = new AbortController();
  let over = false;
  const wake = () => look.abort();
  const end = () => {
    over = true;
    wake();
  };
  const signals = gone === undefined ? [ended] : [gone, ended];
  // However many wait on one signal: each takes its listener away.
  setMaxListeners(0, ...signals);
  if (signals.some((signal) => signal.aborted)) end();
  for (const signal of signals) signal.addEventListener("abort", end);
  const stopListening = store.onCommit((_seq, users) => {
    if (users === undefined || users.has(user_id)) wake();
  });
  const time = new AbortController();
  void pause(wait_ms, time.signal).then(end);
  try {
    while (!over) {
      look = new AbortController();
      if (await store.isReady(principal, request.thread_id, request.point)) {
        const ready = over ? null : await collectFor(store, principal, request, gone);
        if (ready !== null) return ready;
      }
      if (!over) await pause(LOOK_MS, look.signal);
    }
    if (ended.reason instanceof Error && ended.reason.name !== "AbortError") throw ended.reason;
    return null;
  } finally {
    time.abort();
    stopListening();
    for (const signal of signals) signal.removeEventListener("abort", end);
  }
}

/** Nobody holds what nobody got: if the caller goes meanwhile, it is let go at once. */
async function collectFor(
  store: Store,
  principal: Principal,
  request: CollectRequest,
  gone: AbortSignal | undefined,
): Promise<Collected | null> {
  const found = await store.collect(principal, request);
  if (found === null || found.state !== "open" || gone?.aborted !== true) return found;
  await store.failCarrier(principal, found.id, GONE);
  return null;
}
