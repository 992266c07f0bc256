/**
 * The life of a delivery as one total table: what each command does in each state. It is the single source: the
 * reducer, the store's trigger, `audit`, the diagram in docs/SPEC.md and the tests are made from it or checked
 * against it. A missing cell does not compile.
 */
import type { Channel } from "./axes.js";
import type { MissCode } from "./errors.js";

export const STATES = ["PENDING", "DISPATCHED", "LOCKED", "DELIVERED", "ESCALATED", "FAILED", "SUPPRESSED"] as const;
export type State = (typeof STATES)[number];

export function isTerminal(state: State): boolean {
  return state === "DELIVERED" || state === "FAILED" || state === "SUPPRESSED";
}

export const COLUMNS = [
  "dispatch",
  "collect",
  "ack",
  "settle",
  "release",
  "escalate",
  "expire",
  "flush",
  "merge",
  "suppress",
] as const;
export type Column = (typeof COLUMNS)[number];

export type Cell =
  /** Goes through these states; the last one is where it rests. */
  | { readonly to: readonly [State, ...State[]] }
  /** Pushed to the client again; the state stays. */
  | { readonly again: true }
  /** Its batch is closed and it is worded anew; the state stays. */
  | { readonly worded: true }
  /** Settled before: the same answer. */
  | { readonly same: true }
  | { readonly miss: MissCode }
  /** What an event with the same key does to it. */
  | { readonly merge: "revise" | "revise_again" | "new_linked" | "count" | "new" };

const to = (...path: [State, ...State[]]): Cell => ({ to: path });
const miss = (code: MissCode): Cell => ({ miss: code });
const merge = (how: Extract<Cell, { merge: unknown }>["merge"]): Cell => ({ merge: how });

const SETTLED: Record<Column, Cell> = {
  dispatch: miss("terminal"),
  collect: miss("terminal"),
  ack: miss("terminal"),
  settle: miss("terminal"),
  release: miss("terminal"),
  escalate: miss("terminal"),
  expire: miss("terminal"),
  flush: miss("terminal"),
  merge: merge("new"),
  suppress: miss("terminal"),
};

export const TRANSITIONS: Record<State, Record<Column, Cell>> = {
  PENDING: {
    dispatch: to("DISPATCHED"),
    collect: to("DISPATCHED", "LOCKED"),
    ack: to("DISPATCHED", "LOCKED", "DELIVERED"),
    settle: miss("stale_lease"),
    release: miss("stale_lease"),
    escalate: to("LOCKED", "ESCALATED"),
    expire: to("FAILED"),
    flush: { worded: true },
    merge: merge("revise"),
    suppress: to("SUPPRESSED"),
  },
  DISPATCHED: {
    dispatch: { again: true },
    collect: miss("wrong_channel"),
    ack: to("LOCKED", "DELIVERED"),
    settle: miss("wrong_channel"),
    release: miss("wrong_channel"),
    escalate: miss("wrong_channel"),
    expire: to("FAILED"),
    flush: miss("wrong_channel"),
    merge: merge("revise_again"),
    suppress: miss("wrong_channel"),
  },
  LOCKED: {
    dispatch: miss("wrong_channel"),
    collect: miss("stale_lease"),
    ack: miss("wrong_channel"),
    settle: to("DELIVERED"),
    release: to("PENDING"),
    escalate: to("LOCKED", "ESCALATED"),
    expire: miss("wrong_channel"),
    flush: miss("stale_lease"),
    merge: merge("new_linked"),
    suppress: miss("stale_lease"),
  },
  ESCALATED: {
    dispatch: { again: true },
    collect: miss("wrong_channel"),
    ack: to("DELIVERED"),
    settle: miss("stale_lease"),
    release: miss("stale_lease"),
    escalate: miss("wrong_channel"),
    expire: to("FAILED"),
    flush: miss("wrong_channel"),
    merge: merge("revise_again"),
    suppress: miss("wrong_channel"),
  },
  DELIVERED: { ...SETTLED, ack: { same: true }, merge: merge("count") },
  FAILED: SETTLED,
  SUPPRESSED: SETTLED,
};

/**
 * The channels on which a command means anything. Users acknowledge what the system shows, agents settle what they
 * hold, and `context` never escalates.
 */
export const COLUMN_CHANNELS: Record<Column, readonly Channel[]> = {
  dispatch: ["inbox", "floor"],
  collect: ["agent", "context"],
  ack: ["inbox", "floor"],
  settle: ["agent", "context"],
  release: ["agent", "context"],
  escalate: ["agent"],
  expire: ["inbox", "floor"],
  flush: ["inbox", "floor", "agent", "context"],
  merge: ["inbox", "floor", "agent", "context"],
  suppress: ["inbox", "floor", "agent", "context"],
};

/** Every change of state that one command can cause, as `[from, to]`; the store's trigger allows these and no others. */
export function allowedMoves(): [State, State][] {
  const moves: [State, State][] = [];
  for (const from of STATES) {
    const targets = new Set<State>();
    for (const column of COLUMNS) {
      const cell = TRANSITIONS[from][column];
      const rest = "to" in cell ? cell.to.at(-1) : undefined;
      if (rest !== undefined && rest !== from) targets.add(rest);
    }
    for (const target of targets) moves.push([from, target]);
  }
  return moves;
}
