/** What the web app says became of a notification: never more than what happened. */
import { describe, expect, test } from "vitest";
import { CHANNELS, type Channel } from "../../src/domain/axes.js";
import { SUPPRESS_REASONS } from "../../src/domain/notification.js";
import { STATES, type State } from "../../src/domain/transitions.js";
import { outcomeOf, type Told } from "../../web/src/parts/outcome.js";

const DECIDES = { address: "session", target: "agent", handler: "agent" } as const;
const NARRATES = { address: "session", target: "user", handler: "agent" } as const;

function said(state: State, channel: Channel, more: Partial<Told> = {}): string {
  return outcomeOf({ state, channel, reason: null, action: null, effective: DECIDES, ...more }, "other");
}

const WANTED: Record<State, Record<Channel, string>> = {
  PENDING: {
    inbox: "Is to be shown in the user's inbox; it has not been yet.",
    floor: "Is to be shown to the user in the conversation; it has not been yet.",
    agent: "Waits for the agent, which is to decide what to do about it.",
    context: "Waits for the agent's next turn; nobody is woken for it.",
  },
  DISPATCHED: {
    inbox: "Sent to the user's inbox; nobody has seen it yet.",
    floor: "Sent to the user's conversation; nobody has seen it yet.",
    agent: "Offered to the agent, which has not taken it yet.",
    context: "Offered to the agent, which has not taken it yet.",
  },
  LOCKED: {
    inbox: "Sent to the user's inbox; nobody has seen it yet.",
    floor: "Sent to the user's conversation; nobody has seen it yet.",
    agent: "An agent holds it, and has not finished with it yet.",
    context: "An agent holds it, and has not finished with it yet.",
  },
  DELIVERED: {
    inbox: "Shown to the user.",
    floor: "Shown to the user in the conversation.",
    agent: "The agent was told, to decide what to do about it.",
    context: "The agent was told it as context; the user was not interrupted.",
  },
  ESCALATED: {
    inbox: "Taken from the agent to the user's inbox; nobody has seen it there yet.",
    floor: "Taken from the agent to the user's conversation; nobody has seen it there yet.",
    agent: "Taken from the agent to the user; nobody has seen it yet.",
    context: "Taken from the agent to the user; nobody has seen it yet.",
  },
  FAILED: {
    inbox: "Meant for the user's inbox; nobody saw it in time.",
    floor: "Meant for the user's conversation; nobody saw it in time.",
    agent: "Meant for the agent; it was not told in time.",
    context: "Meant for the agent; it was not told in time.",
  },
  SUPPRESSED: {
    inbox: "Kept back; nobody was told.",
    floor: "Kept back; nobody was told.",
    agent: "Kept back; nobody was told.",
    context: "Kept back; nobody was told.",
  },
};

describe("the sentence about a notification", () => {
  test.each(STATES.flatMap((state) => CHANNELS.map((channel) => [state, channel] as const)))(
    "%s on the channel %s",
    (state, channel) => {
      expect(said(state, channel)).toBe(WANTED[state][channel]);
    },
  );

  test("only of what was delivered does it say that anybody was told or shown it", () => {
    for (const state of STATES.filter((one) => one !== "DELIVERED"))
      for (const channel of CHANNELS)
        for (const effective of [DECIDES, NARRATES])
          expect(said(state, channel, { effective })).not.toMatch(/^(Shown|The agent)/);
  });

  test("what an agent is to tell the user itself", () => {
    const effective = NARRATES;
    expect(said("PENDING", "agent", { effective })).toBe("Waits for the agent, which is to tell the user.");
    expect(said("LOCKED", "agent", { effective })).toBe("An agent holds it, and has not told the user yet.");
    expect(said("DELIVERED", "agent", { effective })).toBe("The agent was told, and told the user.");
  });

  test("what the user did with it, and where it came from", () => {
    expect(said("DELIVERED", "inbox", { action: "rendered" })).toBe("Shown to the user, unread.");
    expect(said("DELIVERED", "inbox", { action: "clicked" })).toBe("Shown to the user and opened.");
    expect(said("DELIVERED", "floor", { action: "dismissed", reason: "deadline" })).toBe(
      "Shown to the user in the conversation and dismissed; it was taken from the agent.",
    );
  });

  test("what the agent has brought up itself was not taken from it", () => {
    const reason = "promoted";
    expect(said("ESCALATED", "floor", { reason })).toBe(
      "Brought by the agent to the user's conversation; nobody has seen it there yet.",
    );
    expect(said("DELIVERED", "floor", { reason, action: "clicked" })).toBe(
      "Shown to the user in the conversation and opened; the agent brought it up.",
    );
    for (const state of STATES)
      for (const channel of CHANNELS) expect(said(state, channel, { reason })).not.toContain("aken from the agent");
  });

  test("speaks to whom it is about", () => {
    const told = { reason: null, action: null, effective: DECIDES };
    expect(outcomeOf({ state: "DELIVERED", channel: "floor", ...told }, "you")).toBe(
      "Shown to you in the conversation.",
    );
    expect(outcomeOf({ state: "DELIVERED", channel: "context", ...told }, "you")).toBe(
      "The agent was told it as context; you were not interrupted.",
    );
    for (const reader of ["you", "other"] as const)
      for (const state of STATES)
        for (const channel of CHANNELS) expect(outcomeOf({ state, channel, ...told }, reader)).not.toMatch(/[{}]/);
  });

  test("which rule kept it back, each in words of its own", () => {
    const sentences = SUPPRESS_REASONS.map((reason) => said("SUPPRESSED", "context", { reason }));
    expect(new Set(sentences).size).toBe(SUPPRESS_REASONS.length);
    expect(sentences).not.toContain("Kept back; nobody was told.");
    expect(said("SUPPRESSED", "context", { reason: "filtered" })).toBe(
      "Kept back: below its subscriber's filter; nobody was told.",
    );
    // These were told, in another form.
    for (const reason of ["superseded", "observed", "folded"] as const)
      expect(said("SUPPRESSED", "context", { reason })).not.toContain("nobody");
  });
});
