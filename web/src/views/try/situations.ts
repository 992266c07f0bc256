/** The situations that Tidings is for, each fired by the methods that anybody uses. */
import {
  IconBatteryOff,
  IconMessageOff,
  IconPlugConnectedX,
  IconTerminal2,
  IconUrgent,
  type TablerIcon,
} from "@tabler/icons-react";
import type { Agent } from "./agent.js";
import type { Stage } from "./stage.js";

export interface Situation {
  readonly title: string;
  readonly icon: TablerIcon;
  readonly about: string;
  /** What will happen, with this agent. */
  readonly expect: (agent: Agent) => string;
  /** What is really done, and what is only reported. */
  readonly real: (agent: Agent) => string;
  /** What is different here from what it would be elsewhere. */
  readonly differs: (agent: Agent) => string | null;
  /** Why it cannot be fired. */
  readonly refuses?: (agent: Agent) => string | null;
  readonly fire: (stage: Stage) => Promise<void>;
}

export type SituationKey = "command" | "mcp" | "budget" | "critical" | "silence";

const COLLECTS = "No agent is hosted here: it waits until an agent of yours collects it (agent/collect).";
const TOGETHER = "What comes within two seconds is told together.";
const HANDLE = "nightly-build";
const COMMAND = ["ls", "/no/such/folder"];
/** What is said first is the title of a conversation: these words fill one, and what follows is for the rehearsal model. */
const RUN = "Please run the nightly build in the background, and tell me how it went when it is over.";
/** Without an agent nobody takes it: soon enough to be seen. */
const IMPATIENT_MS = 5_000;

function ownMind({ kind, name }: Agent): string | null {
  return kind === "real"
    ? `The agent runs on ${name}: it answers in its own words, and its tokens are paid for.`
    : null;
}

const command: Situation = {
  title: "A background command fails",
  icon: IconTerminal2,
  about: "The agent has started a command that runs in the background. It fails while nobody is looking.",
  expect: ({ kind, shell }) => {
    const first = shell && kind !== "none" ? "The agent starts a command, which fails. " : "";
    const then =
      kind === "none"
        ? "The agent of the conversation is to be told, once."
        : "The idle agent is woken and told, once, in its own conversation. It is for the agent: nothing of it comes to your inbox. What the agent says of it you can read there, and in a passing note if you are elsewhere.";
    return first + then;
  },
  real: ({ kind, shell }) =>
    shell && kind !== "none"
      ? `A command really runs and fails: ${COMMAND.join(" ")}, under the name ${HANDLE}. The tool itself reports it.`
      : "No command runs: its failure is reported, as a tool would report it.",
  differs: (agent) => {
    if (agent.kind === "none") return COLLECTS;
    if (agent.shell) return ownMind(agent);
    return "The agent of this server may run no commands. Start it with “tidings serve --shell” to see a real one fail.";
  },
  fire: async (stage) => {
    const { agent } = stage;
    if (!agent.shell || agent.kind === "none") {
      if (agent.kind === "rehearsal") {
        await stage.say(RUN);
        await stage.quiet();
      }
      const payload = { tool_name: "shell", handle: HANDLE, exit_code: 2, error_message: "exited with code 2" };
      await stage.emit({ type: "tool.failed", severity: "error", subject: HANDLE, payload });
      return;
    }
    if (agent.kind === "real") {
      const words = COMMAND.join(" ");
      await stage.say(
        `Spawn “${words}” with the tool shell, handle ${HANDLE}. Do not fetch or await it; just say that it runs.`,
      );
    } else await spawnByRehearsal(stage);
    await stage.until("Waiting for the command to fail", async () => {
      const { notifications } = await stage.client.call("notification/list", { thread_id: stage.thread_id });
      const failed = notifications.filter(({ kind }) => kind === "tool.failed");
      stage.find(failed.map(({ id }) => id));
      return failed.length > 0;
    });
  },
};

/** The operator has said in which form commands are written; what does not fit is refused, and nothing runs. */
async function spawnByRehearsal(stage: Stage): Promise<void> {
  const forms = [{ argv: COMMAND }, { command: COMMAND.join(" ") }];
  let refused = "";
  for (const [index, input] of forms.entries()) {
    const words = index === 0 ? RUN : "Then in the other form, please.";
    await stage.say(`${words}\ncall shell ${JSON.stringify({ action: "spawn", handle: HANDLE, input })}`);
    await stage.quiet();
    const { items } = await stage.client.call("thread/read", { thread_id: stage.thread_id });
    const call = items.findLast((item) => item.type === "tool_call");
    if (call?.status === "completed") return;
    refused = call?.content.output ?? "it was not called";
  }
  throw new Error(`The tool shell refuses to run it: ${refused}`);
}

const mcp: Situation = {
  title: "An MCP server drops",
  icon: IconPlugConnectedX,
  about: "A server whose tools the agent uses goes away, and comes back a moment later.",
  expect: ({ kind }) =>
    `Two events, one notification. ${TOGETHER} It wakes nobody: ${
      kind === "none"
        ? "the agent is told when it is next active."
        : "the agent is told with your next message, which is sent here as well."
    }`,
  real: () => "No server is lost: two events are reported, as the keeper of the connections would report them.",
  differs: (agent) => (agent.kind === "none" ? COLLECTS : ownMind(agent)),
  fire: async (stage) => {
    const payload = { server: "documents", reason: "the connection was closed" };
    await stage.emit({ type: "mcp.disconnected", severity: "warning", subject: "documents", payload });
    const back = { server: "documents", attempts: 2 };
    await stage.emit({ type: "mcp.reconnected", severity: "info", subject: "documents", payload: back });
    if (stage.agent.kind !== "none") await stage.say("Can you still read the documents?");
  },
};

const budget: Situation = {
  title: "A budget runs low",
  icon: IconBatteryOff,
  about: "The tokens and the time that this conversation may use are nearly gone.",
  expect: ({ kind }) =>
    `Two warnings, one notification, ahead of what is less urgent. ${
      kind === "none"
        ? "The agent is told before it goes on."
        : "The agent is told with your next message, before it goes on spending."
    } You hear of it only when a budget is used up.`,
  real: () => "No budget is spent: two warnings are reported, with figures that are made up.",
  differs: (agent) => (agent.kind === "none" ? COLLECTS : ownMind(agent)),
  fire: async (stage) => {
    const tokens = { budget_type: "token", current: 172_000, limit: 200_000, percentage: 86, scope: "thread" };
    await stage.emit({ type: "budget.token.warning", severity: "warning", payload: tokens });
    const time = { budget_type: "timeout", current: 540, limit: 600, percentage: 90, scope: "turn" };
    await stage.emit({ type: "budget.timeout.warning", severity: "warning", payload: time });
    if (stage.agent.kind !== "none") await stage.say("Please summarise what we have so far.");
  },
};

const critical: Situation = {
  title: "Something critical in mid-answer",
  icon: IconUrgent,
  about: "The agent is in the middle of a long answer when the disk runs full.",
  expect: () =>
    "The answer is cut off, and what was said of it is kept. The system opens a turn in which the agent is told at once, speaks of it first, and goes on with what you had asked.",
  real: () => "No disk is full: that is reported, as a monitor would. The answer is really cut off.",
  differs: ownMind,
  refuses: ({ kind }) =>
    kind === "none"
      ? "No agent is hosted here, so there is no answer to cut off. Start the server without “--provider none”: the rehearsal model needs no key."
      : null,
  fire: async (stage) => {
    const what = stage.agent.kind === "rehearsal" ? "I get to hear of things here" : "a web page gets to my screen";
    await stage.say(`Please explain in detail how ${what}.`);
    await stage.speaking();
    await stage.notify({
      content: "The disk of the build machine is full: nothing can be written any more.",
      severity: "critical",
      kind: "host.disk.full",
    });
  },
};

const silence: Situation = {
  title: "The agent keeps quiet about what you must know",
  icon: IconMessageOff,
  about: "A deployment was rolled back, and the agent is to tell you. It has been asked to stay silent, and does.",
  expect: ({ kind }) =>
    kind === "none"
      ? "Nobody takes it. After five seconds it is shown to you instead, and waits until you have seen it."
      : "The agent is told, and reminded once. When its turn ends without a word to you, the notification is taken from it and shown to you instead, and waits until you have seen it.",
  real: () => "Nothing was deployed: that is reported, as a pipeline would. Who is told, and when, is real.",
  differs: (agent) => {
    if (agent.kind === "none") return "No agent is hosted here: instead of one that keeps quiet there is none at all.";
    const mind = ownMind(agent);
    return mind === null ? null : `${mind} It may tell you after all.`;
  },
  fire: async (stage) => {
    if (stage.agent.kind === "rehearsal") {
      await stage.say("Please stay silent for now: I am in a meeting.");
      await stage.quiet();
    }
    await stage.notify({
      content: "The deployment of the shop was rolled back: two health checks have failed.",
      severity: "error",
      kind: "deploy.rolled_back",
      target: "user",
      handler: "agent",
      ...(stage.agent.kind === "none" ? { ttl_ms: IMPATIENT_MS } : {}),
    });
  },
};

/** In the order in which they are offered. */
export const SITUATIONS: Readonly<Record<SituationKey, Situation>> = { command, mcp, budget, critical, silence };
