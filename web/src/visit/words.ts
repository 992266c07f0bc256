/** What the visit says, by what has really happened. */
import type { NotificationView } from "tidings/client";
import type { Agent } from "../views/try/agent.js";

export const WELCOME: readonly string[] = [
  "Things happen while nobody is looking: a build ends, a server drops, a deployment is rolled back. Tidings makes sure that the right party, your agent or you, is told once, in the right place, at the right moment.",
  "Two minutes show how. The agent here is a rehearsal: it is offline and needs no key.",
];

export function conversationWords(agent: Agent, notification: NotificationView | undefined): readonly string[] {
  const told =
    agent.kind === "none"
      ? "No agent is hosted here, so nobody takes it from the conversation that it belongs to."
      : "The idle agent was woken: the system has opened a turn, and the agent was told what it has to tell you.";
  if (notification === undefined) return [told];
  if (wasTaken(notification))
    return agent.kind === "none"
      ? [told, "When its time was up, Tidings took it to you instead."]
      : [
          told,
          "It did not say a word. It was reminded once, and kept silent. So Tidings took the matter out of its hands.",
        ];
  if (notification.state === "DELIVERED")
    return [told, "It has told you in its own words, and acknowledged it: there was nothing left to do."];
  return [told];
}

export function inboxWords(agent: Agent, notification: NotificationView | undefined): readonly string[] {
  if (notification !== undefined && !wasTaken(notification))
    return ["The agent has told you itself, so there is nothing of it here: nobody is told twice."];
  return [
    "So it came to you, once. The bell counts it, and it stays unread until you click or dismiss it.",
    agent.kind === "none"
      ? "Had an agent told you, nothing of it would stand here: nobody is told twice."
      : "Had the agent told you, nothing of it would stand here: nobody is told twice.",
  ];
}

function wasTaken({ effective }: NotificationView): boolean {
  return effective.target === "user" && effective.handler === "system";
}
