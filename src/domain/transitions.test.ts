import { describe, expect, it } from "vitest";
import type { Axes, Channel } from "./axes.js";
import { ADDRESSES, CHANNELS, channelOf, effectiveAxes, HANDLERS, TARGETS } from "./axes.js";
import { notificationId, subscriberId, userId } from "./ids.js";
import type { Delivery, Kept, Notification } from "./notification.js";
import { DEFAULT_POLICY } from "./policy.js";
import type { Priority } from "./priority.js";
import {
  type Command,
  create,
  decide,
  decideMerge,
  epochGrowth,
  type MergedWords,
  type MergeInput,
} from "./reducer.js";
import { COLUMNS, type Column, isTerminal, STATES, type State, TRANSITIONS } from "./transitions.js";

const AT = 1_000_000;
const context = { at: AT, policy: DEFAULT_POLICY };
const LEASE = { id: "lease" as never, owner: "turn" };

const AXES_ON: Record<Channel, Axes> = {
  inbox: { address: "user", target: "user", handler: "system" },
  floor: { address: "session", target: "user", handler: "system" },
  agent: { address: "session", target: "agent", handler: "agent" },
  context: { address: "session", target: "agent", handler: "system" },
};

function keptIn(state: State, channel: Channel): Kept {
  const axes = AXES_ON[channel];
  const notification: Notification = {
    id: notificationId("n"),
    user_id: userId("u"),
    thread_id: "t" as never,
    subscriber_id: subscriberId("s"),
    kind: "a.b",
    source: "x",
    subject: null,
    severity: "info",
    inject_at: "next",
    content: "words",
    data: null,
    directive: null,
    degraded: null,
    axes,
    dedupe_key: "k",
    dedupe_until: AT + 5_000,
    wake_ms: null,
    created_at: AT - 10,
    event_id: "e" as never,
    redrive_of: null,
    linked_to: null,
  };
  const { next } = create(
    notification,
    { priority: "normal", ttl_ms: null, suppress: null },
    { ...context, at: AT - 10 },
  );
  const delivery = { ...next, state, lease_epoch: 7, revision: 3, lease: state === "LOCKED" ? LEASE : null };
  return { notification, delivery: delivery as Delivery };
}

const COMMANDS: Record<Exclude<Column, "merge">, Command> = {
  dispatch: { column: "dispatch" },
  collect: { column: "collect", lease: LEASE },
  ack: { column: "ack", revision: 3, action: "rendered" },
  settle: { column: "settle", epoch: 7 },
  release: { column: "release", epoch: 7 },
  escalate: { column: "escalate", reason: "deadline" },
  expire: { column: "expire" },
  flush: { column: "flush", words: { content: "other words", severity: "info", degraded: null } },
  suppress: { column: "suppress", reason: "muted" },
};

/** The grid of the design, written out once more by hand: path, "again", "same" or "miss". */
const GRID: Record<State, Record<Exclude<Column, "merge">, string>> = {
  PENDING: {
    dispatch: "DISPATCHED",
    collect: "DISPATCHED,LOCKED",
    ack: "DISPATCHED,LOCKED,DELIVERED",
    settle: "miss stale_lease",
    release: "miss stale_lease",
    escalate: "LOCKED,ESCALATED",
    expire: "FAILED",
    flush: "",
    suppress: "SUPPRESSED",
  },
  DISPATCHED: {
    dispatch: "same",
    collect: "miss wrong_channel",
    ack: "LOCKED,DELIVERED",
    settle: "miss wrong_channel",
    release: "miss wrong_channel",
    escalate: "miss wrong_channel",
    expire: "FAILED",
    flush: "miss wrong_channel",
    suppress: "miss wrong_channel",
  },
  LOCKED: {
    dispatch: "miss wrong_channel",
    collect: "miss stale_lease",
    ack: "miss wrong_channel",
    settle: "DELIVERED",
    release: "PENDING",
    escalate: "LOCKED,ESCALATED",
    expire: "miss wrong_channel",
    flush: "miss stale_lease",
    suppress: "miss stale_lease",
  },
  ESCALATED: {
    dispatch: "same",
    collect: "miss wrong_channel",
    ack: "DELIVERED",
    settle: "miss stale_lease",
    release: "miss stale_lease",
    escalate: "miss wrong_channel",
    expire: "FAILED",
    flush: "miss wrong_channel",
    suppress: "miss wrong_channel",
  },
  DELIVERED: {
    dispatch: "miss terminal",
    collect: "miss terminal",
    ack: "same",
    settle: "miss terminal",
    release: "miss terminal",
    escalate: "miss terminal",
    expire: "miss terminal",
    flush: "miss terminal",
    suppress: "miss terminal",
  },
  FAILED: {
    dispatch: "miss terminal",
    collect: "miss terminal",
    ack: "miss terminal",
    settle: "miss terminal",
    release: "miss terminal",
    escalate: "miss terminal",
    expire: "miss terminal",
    flush: "miss terminal",
    suppress: "miss terminal",
  },
  SUPPRESSED: {
    dispatch: "miss terminal",
    collect: "miss terminal",
    ack: "miss terminal",
    settle: "miss terminal",
    release: "miss terminal",
    escalate: "miss terminal",
    expire: "miss terminal",
    flush: "miss terminal",
    suppress: "miss terminal",
  },
};

/** Where a command means anything; elsewhere it is `wrong_channel`. */
const MEANT_FOR: Record<Exclude<Column, "merge">, readonly Channel[]> = {
  dispatch: ["inbox", "floor"],
  collect: ["agent", "context"],
  ack: ["inbox", "floor"],
  settle: ["agent", "context"],
  release: ["agent", "context"],
  escalate: ["agent"],
  expire: ["inbox", "floor"],
  flush: ["inbox", "floor", "agent", "context"],
  suppress: ["inbox", "floor", "agent", "context"],
};

const MERGES: Record<State, string> = {
  PENDING: "merged",
  DISPATCHED: "merged",
  LOCKED: "new, linked",
  ESCALATED: "merged",
  DELIVERED: "counted",
  FAILED: "new",
  SUPPRESSED: "new",
};

function mergeInput(priority: Priority, words: MergedWords["words"], revises: boolean): MergeInput {
  const subscriber_id = subscriberId("s");
  return { event_id: "e2" as never, subscriber_id, priority, words: () => ({ words, revises }) };
}

function outcomeOf(kept: Kept, command: Command): string {
  const decision = decide(kept, command, context);
  if (decision.outcome === "miss") return `miss ${decision.miss.miss}`;
  return decision.outcome === "same" ? "same" : decision.change.path.join();
}

describe("the grid (I5)", () => {
  for (const state of STATES)
    for (const column of COLUMNS) {
      if (column === "merge") continue;
      for (const channel of CHANNELS) {
        const cell = GRID[state][column];
        const expected = cell.startsWith("miss") || MEANT_FOR[column].includes(channel) ? cell : "miss wrong_channel";
        it(`${state} on ${channel}: ${column} is ${expected}`, () => {
          expect(outcomeOf(keptIn(state, channel), COMMANDS[column])).toBe(expected);
        });
      }
    }

  for (const state of STATES)
    it(`${state}: merge is ${MERGES[state]}`, () => {
      const kept = keptIn(state, "inbox");
      const words = { content: "other words", data: null, severity: "info", directive: null, degraded: null } as const;
      const merge = decideMerge(kept, mergeInput("high", words, true), AT);
      if (merge.outcome === "new") {
        expect(merge.linked_to === null ? "new" : "new, linked").toBe(MERGES[state]);
        return;
      }
      const { next, change } = merge;
      expect(next.delivery.count).toBe(2);
      expect(next.delivery.deadline).toBe(kept.delivery.deadline);
      expect(change.path).toEqual([]);
      if (MERGES[state] === "counted") {
        expect(next.notification).toEqual(kept.notification);
        expect(next.delivery.revision).toBe(3);
      } else {
        expect(next.notification.content).toBe("other words");
        expect(next.delivery).toMatchObject({ revision: 4, priority: "high", state });
      }
    });

  it("a merge that changes no text does not make a new revision", () => {
    const kept = keptIn("DISPATCHED", "inbox");
    const { content, data, severity, directive, degraded } = kept.notification;
    const words = { content, data, severity, directive, degraded };
    const merge = decideMerge(kept, mergeInput("low", words, false), AT);
    expect(merge.outcome === "merged" && merge.next.delivery).toMatchObject({
      revision: 3,
      count: 2,
      priority: "normal",
    });
  });
});

describe("an open batch", () => {
  const open = (channel: Channel): Kept => {
    const kept = keptIn("PENDING", channel);
    return { ...kept, delivery: { ...kept.delivery, revision: 1, open_until: AT + 2_000 } };
  };
  const words = { content: "other words", severity: "error", degraded: null } as const;

  it("is closed and worded by a flush, which is no new revision", () => {
    const decision = decide(open("context"), { column: "flush", words }, context);
    expect(decision.outcome === "changed" && decision.next).toMatchObject({ open_until: null, revision: 1 });
    expect(decision.outcome === "changed" && decision.change).toMatchObject({ path: [], words });
  });

  it("takes further rows and counts without being worded", () => {
    const kept = open("context");
    const input = { ...mergeInput("normal", { ...kept.notification, content: "never asked" }, true), row: 1 };
    const merge = decideMerge(kept, input, AT);
    expect(merge.outcome === "merged" && merge.next).toMatchObject({
      notification: { content: "words" },
      delivery: { rows: 2, count: 2, revision: 1 },
    });
  });

  it("is open no more when it leaves PENDING in any way", () => {
    for (const channel of CHANNELS)
      for (const command of Object.values(COMMANDS)) {
        const decision = decide(open(channel), { ...command, revision: 1 } as Command, context);
        if (decision.outcome === "changed") expect(decision.next.open_until).toBe(null);
      }
  });

  it("that is closed is worded anew as a new revision, if the text differs", () => {
    const decision = decide(keptIn("PENDING", "context"), { column: "flush", words }, context);
    expect(decision.outcome === "changed" && decision.next.revision).toBe(4);
    const { content, severity, degraded } = keptIn("PENDING", "context").notification;
    const same: Command = { column: "flush", words: { content, severity, degraded } };
    expect(decide(keptIn("PENDING", "context"), same, context).outcome).toBe("same");
  });
});

describe("the reducer", () => {
  it("grows the epoch by one on every claim, release, takeover and escalation, and never otherwise (I2)", () => {
    for (const state of STATES)
      for (const channel of CHANNELS)
        for (const command of Object.values(COMMANDS)) {
          const decision = decide(keptIn(state, channel), command, context);
          if (decision.outcome !== "changed") continue;
          const grown = decision.next.lease_epoch - 7;
          expect(grown).toBe(epochGrowth(command.column, decision.change.path));
          const owned = ["collect", "release", "escalate"].includes(command.column);
          expect(grown).toBe(owned || (command.column === "ack" && state !== "ESCALATED") ? 1 : 0);
        }
  });

  it("never leaves a terminal state (I4)", () => {
    for (const state of STATES.filter(isTerminal))
      for (const channel of CHANNELS)
        for (const command of Object.values(COMMANDS)) {
          const decision = decide(keptIn(state, channel), command, context);
          expect(decision.outcome === "changed" ? decision.next.state : state).toBe(state);
        }
  });

  it("refuses a foreign epoch and an old revision (I3, I11)", () => {
    const held = keptIn("LOCKED", "agent");
    for (const column of ["settle", "release"] as const)
      expect(outcomeOf(held, { column, epoch: 6 })).toBe("miss stale_lease");
    expect(outcomeOf(held, { column: "escalate", reason: "promoted", epoch: 6 })).toBe("miss stale_lease");
    expect(outcomeOf(keptIn("DISPATCHED", "inbox"), { column: "ack", revision: 2, action: "clicked" })).toBe(
      "miss stale_revision",
    );
  });

  it("keeps when it was read beside the state: rendered settles, clicked and dismissed read", () => {
    const shown = keptIn("DISPATCHED", "inbox");
    const rendered = decide(shown, COMMANDS.ack, context);
    expect(rendered.outcome === "changed" && rendered.next).toMatchObject({ state: "DELIVERED", read_at: null });
    if (rendered.outcome !== "changed") return;
    const clicked = decide(
      { ...shown, delivery: rendered.next },
      { column: "ack", revision: 1, action: "clicked" },
      context,
    );
    expect(clicked.outcome === "changed" && clicked.next).toMatchObject({
      state: "DELIVERED",
      action: "clicked",
      read_at: AT,
    });
    if (clicked.outcome !== "changed") return;
    expect(
      decide({ ...shown, delivery: clicked.next }, { column: "ack", revision: 1, action: "dismissed" }, context)
        .outcome,
    ).toBe("same");
  });

  it("takes an escalated item to the user by its address, with the system's time to be seen (I9)", () => {
    for (const address of ADDRESSES) {
      const kept = keptIn("PENDING", "agent");
      const delivery = { ...kept.delivery, effective: { ...kept.delivery.effective, address } };
      const decision = decide({ ...kept, delivery }, COMMANDS.escalate, context);
      expect(decision.outcome === "changed" && decision.next).toMatchObject({
        state: "ESCALATED",
        channel: address === "user" ? "inbox" : "floor",
        effective: { address, target: "user", handler: "system" },
        deadline: AT + DEFAULT_POLICY.systemTtlMs,
        reason: "deadline",
      });
    }
  });
});

describe("routing (I9)", () => {
  const CHANNEL_OF: Record<string, Channel> = {
    "user/user/system": "inbox",
    "session/user/system": "floor",
    "user/user/agent": "agent",
    "session/user/agent": "agent",
    "user/agent/agent": "agent",
    "session/agent/agent": "agent",
    "user/agent/system": "context",
    "session/agent/system": "context",
  };
  for (const address of ADDRESSES)
    for (const target of TARGETS)
      for (const handler of HANDLERS) {
        const name = `${address}/${target}/${handler}`;
        it(`${name} goes to ${CHANNEL_OF[name]}`, () => {
          expect(channelOf({ address, target, handler })).toBe(CHANNEL_OF[name]);
          expect(effectiveAxes({ address, target, handler }, false).address).toBe("user");
          expect(effectiveAxes({ address, target, handler }, true).address).toBe(address);
        });
      }
});

describe("the table itself", () => {
  it("lets agent and context items never rest in DISPATCHED and system items never in LOCKED", () => {
    for (const state of STATES)
      for (const column of COLUMNS) {
        const cell = TRANSITIONS[state][column];
        if (!("to" in cell)) continue;
        const rest = cell.to.at(-1);
        if (rest === "LOCKED") expect(column).toBe("collect");
        if (rest === "DISPATCHED") expect(column).toBe("dispatch");
      }
  });
});
