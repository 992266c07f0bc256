/** What has become of a notification, in a sentence that says no more than what happened. */
import type { NotificationView } from "tidings/client";

type State = NotificationView["state"];
type Channel = NotificationView["channel"];
type Action = NonNullable<NotificationView["action"]>;

export type Told = Pick<NotificationView, "state" | "channel" | "reason" | "action" | "effective">;

const NOBODY_IN_TIME = "nobody saw it in time";
const NOBODY_TOLD = "kept back; nobody was told";

/** What can be said from these two alone; some cells never come to pass, and are true all the same. */
const OUTCOMES: Readonly<Record<State, Readonly<Record<Channel, string>>>> = {
  PENDING: {
    inbox: "is to be shown in {user's} inbox; it has not been yet",
    floor: "is to be shown to {user} in the conversation; it has not been yet",
    agent: "waits for the agent, which is to decide what to do about it",
    context: "waits for the agent's next turn; nobody is woken for it",
  },
  DISPATCHED: {
    inbox: "sent to {user's} inbox; nobody has seen it yet",
    floor: "sent to {user's} conversation; nobody has seen it yet",
    agent: "offered to the agent, which has not taken it yet",
    context: "offered to the agent, which has not taken it yet",
  },
  LOCKED: {
    inbox: "sent to {user's} inbox; nobody has seen it yet",
    floor: "sent to {user's} conversation; nobody has seen it yet",
    agent: "an agent holds it, and has not finished with it yet",
    context: "an agent holds it, and has not finished with it yet",
  },
  DELIVERED: {
    inbox: "shown to {user}",
    floor: "shown to {user} in the conversation",
    agent: "the agent was told, to decide what to do about it",
    context: "the agent was told it as context; {user} was not interrupted",
  },
  ESCALATED: {
    inbox: "taken from the agent to {user's} inbox; nobody has seen it there yet",
    floor: "taken from the agent to {user's} conversation; nobody has seen it there yet",
    agent: "taken from the agent to {user}; nobody has seen it yet",
    context: "taken from the agent to {user}; nobody has seen it yet",
  },
  FAILED: {
    inbox: `meant for {user's} inbox; ${NOBODY_IN_TIME}`,
    floor: `meant for {user's} conversation; ${NOBODY_IN_TIME}`,
    agent: "meant for the agent; it was not told in time",
    context: "meant for the agent; it was not told in time",
  },
  SUPPRESSED: { inbox: NOBODY_TOLD, floor: NOBODY_TOLD, agent: NOBODY_TOLD, context: NOBODY_TOLD },
};

/** The agent has brought it to the user itself: by its own words, or by what it did. */
const PROMOTED: Readonly<Partial<Record<State, Readonly<Record<Channel, string>>>>> = {
  ESCALATED: {
    inbox: "brought by the agent to {user's} inbox; nobody has seen it there yet",
    floor: "brought by the agent to {user's} conversation; nobody has seen it there yet",
    agent: "brought by the agent to {user}; nobody has seen it yet",
    context: "brought by the agent to {user}; nobody has seen it yet",
  },
};

/** The agent is to say it in its own words: where more than the channel is known. */
const NARRATED: Readonly<Partial<Record<State, string>>> = {
  PENDING: "waits for the agent, which is to tell {user}",
  LOCKED: "an agent holds it, and has not told {user} yet",
  DELIVERED: "the agent was told, and told {user}",
};

const KEPT_BACK: Readonly<Partial<Record<NonNullable<NotificationView["reason"]>, string>>> = {
  filtered: "kept back: below its subscriber's filter; nobody was told",
  muted: "kept back: its subscriber is switched off; nobody was told",
  superseded: "kept back: a newer one took its place",
  observed: "kept back: the agent had seen it by itself",
  folded: "kept back: told in a summary with others",
  expired: "kept back: no agent wanted it in time; nobody was told",
};

const SEEN: Readonly<Record<Action, string>> = {
  rendered: ", unread",
  clicked: " and opened",
  dismissed: " and dismissed",
};

/** Whom it is about: whoever reads it is spoken to. */
const SPOKEN: Readonly<Record<"you" | "other", readonly (readonly [string, string])[]>> = {
  you: [
    ["{user} was", "you were"],
    ["{user's}", "your"],
    ["{user}", "you"],
  ],
  other: [
    ["{user's}", "the user's"],
    ["{user}", "the user"],
  ],
};

export function outcomeOf(view: Told, reader: "you" | "other"): string {
  const words = SPOKEN[reader].reduce((text, [name, spoken]) => text.replaceAll(name, spoken), wordsOf(view));
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

function wordsOf({ state, channel, reason, action, effective }: Told): string {
  const isPromoted = reason === "promoted";
  const plain = (isPromoted ? PROMOTED[state]?.[channel] : undefined) ?? OUTCOMES[state][channel];
  if (state === "SUPPRESSED") return (reason === null ? undefined : KEPT_BACK[reason]) ?? plain;
  if (channel === "agent" && effective.target === "user") return NARRATED[state] ?? plain;
  if (state !== "DELIVERED" || channel === "agent" || channel === "context") return plain;
  // A reason says why it came from an agent.
  const before = isPromoted ? "; the agent brought it up" : reason === null ? "" : "; it was taken from the agent";
  return `${plain}${action === null ? "" : SEEN[action]}${before}`;
}
