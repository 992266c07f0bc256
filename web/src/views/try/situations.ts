/** The situations that Tidings is for, each fired by the methods that anybody uses. */
import {
  IconBatteryOff,
  IconMessageOff,
  IconPlugConnectedX,
  IconTerminal2,
  IconUrgent,
  type TablerIcon,
} from "@tabler/icons-react";
import type { ParamsOf } from "tidings/client";
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
  /** What its conversation is started with. */
  readonly starts?: (agent: Agent) => ParamsOf<"thread/start">;
  readonly fire: (stage: Stage) => Promise<void>;
}

export type SituationKey = "command" | "mcp" | "budget" | "critical" | "silence";

const COLLECTS = "No agent is hosted here: it waits until an agent of yours collects it (agent/collect).";
const NO_PROPS =
  "The rehearsal model has no props on this server: it was started with “--no-props”, or “props = false” is in its “tidings.toml”. Without that it happens for real.";
const TOGETHER = "What comes within two seconds is told together.";
const HANDLE = "nightly-build";
const BUILD = "nightly_build";
const READ = "documents_read";
const COMMAND = ["ls", "/no/such/folder"];
/** What is said first is the title of a conversation: these words fill one, and what follows is for the rehearsal model. */
const RUN = "Please run the nightly build in the background, and tell me how it went when it is over.";
const OPEN = "Please read the handbook to me, and after that the minutes of the last meeting as well.";
/** Without an agent nobody takes it: soon enough to be seen. */
const IMPATIENT_MS = 5_000;

function ownMind({ kind, name }: Agent): string | null {
  return kind === "real"
    ? `The agent runs on ${name}: it answers in its own words, and its tokens are paid for.`
    : null;
}

/** Why it is only reported here, or what is different. */
function without({ kind, props }: Agent, prop: string): string | null {
  if (kind === "none") return COLLECTS;
  return kind === "rehearsal" && !props.includes(prop) ? NO_PROPS : null;
}

type HowItRuns = "prop" | "shell" | "reported";

function howItRuns({ kind, shell, props }: Agent): HowItRuns {
  if (props.includes(BUILD)) return "prop";
  return shell && kind === "real" ? "shell" : "reported";
}

const command: Situation = {
  title: "A background command fails",
  icon: IconTerminal2,
  about: "The agent has started a command that runs in the background. It fails while nobody is looking.",
  expect: (agent) => {
    const first = howItRuns(agent) === "reported" ? "" : "The agent starts a command, which fails. ";
    const then =
      agent.kind === "none"
        ? "The agent of the conversation is to be told, once."
        : "The idle agent is woken and told, once, in its own conversation. It is for the agent: nothing of it comes to your inbox. What the agent says of it you can read there, and in a passing note if you are elsewhere.";
    return first + then;
  },
  real: (agent) => {
    switch (howItRuns(agent)) {
      case "prop":
        return `A command really runs, for a second, and exits with 2: a program of this package, by the tool ${BUILD}. The tool itself reports it.`;
      case "shell":
        return `A command really runs and fails: ${COMMAND.join(" ")}, under the name ${HANDLE}. The tool itself reports it.`;
      case "reported":
        return "No command runs: its failure is reported, as a tool would report it.";
    }
  },
  differs: (agent) => {
    if (agent.kind !== "real") return without(agent, BUILD);
    if (agent.shell) return ownMind(agent);
    return "The agent of this server may run no commands. Start it with “tidings serve --shell” to see a real one fail.";
  },
  fire: async (stage) => {
    const { agent } = stage;
    const how = howItRuns(agent);
    if (how === "reported") {
      if (agent.kind === "rehearsal") {
        await stage.say(RUN);
        await stage.quiet();
      }
      const payload = { tool_name: "shell", handle: HANDLE, exit_code: 2, error_message: "exited with code 2" };
      await stage.emit({ type: "tool.failed", severity: "error", subject: HANDLE, payload });
      return;
    }
    if (how === "prop") await stage.use(RUN, BUILD, { action: "spawn", handle: HANDLE });
    else
      await stage.say(
        `Spawn “${COMMAND.join(" ")}” with the tool shell, handle ${HANDLE}. Do not fetch or await it; just say that it runs.`,
      );
    await stage.untilTold("Waiting for the command to fail", (kind) => kind === "tool.failed", 1);
  },
};

const mcp: Situation = {
  title: "An MCP server drops",
  icon: IconPlugConnectedX,
  about: "A server whose tools the agent uses goes away, and comes back a moment later.",
  expect: ({ kind, props }) => {
    if (props.includes(READ))
      return "The agent reads a document. In the middle of the next call the server dies: the call is answered with an error, and the server is connected again by itself. The agent is told of both, each once, with the result of a call or with your next message, which is sent here as well; nobody is woken. Then it reads on.";
    const when =
      kind === "none"
        ? "the agent is told when it is next active."
        : "the agent is told with your next message, which is sent here as well.";
    return `Two events, one notification. ${TOGETHER} It wakes nobody: ${when}`;
  },
  real: ({ props }) =>
    props.includes(READ)
      ? "All of it: the server documents is a process of this conversation's own, a program of this package. It is asked to kill itself, and does; whoever keeps the connections reports it and starts it again."
      : "No server is lost: two events are reported, as the keeper of the connections would report them.",
  differs: (agent) => without(agent, READ) ?? ownMind(agent),
  fire: async (stage) => {
    const { agent } = stage;
    if (agent.props.includes(READ)) return dropDocuments(stage);
    const payload = { server: "documents", reason: "the connection was closed" };
    await stage.emit({ type: "mcp.disconnected", severity: "warning", subject: "documents", payload });
    const back = { server: "documents", attempts: 2 };
    await stage.emit({ type: "mcp.reconnected", severity: "info", subject: "documents", payload: back });
    if (agent.kind !== "none") await stage.say("Can you still read the documents?");
  },
};

async function dropDocuments(stage: Stage): Promise<void> {
  await stage.use(OPEN, READ, { document: "handbook" });
  await stage.use("And now the minutes, please.", READ, { document: "minutes", die: true }, "failed");
  await stage.untilTold("Waiting for the server to be back", (kind) => kind.startsWith("mcp."), 2);
  await stage.use("Can you read them now?", READ, { document: "minutes" });
}

const CALLS = 4;
/** One call of the model each; then its budget runs low. */
const SMALL_TALK = ["Let us count the calls that this conversation has: one.", "Two.", "Three."];

const budget: Situation = {
  title: "A budget runs low",
  icon: IconBatteryOff,
  about: "What this conversation may use is nearly gone.",
  starts: ({ kind }) => (kind === "none" ? {} : { budgets: { iterations: CALLS } }),
  expect: ({ kind }) =>
    kind === "none"
      ? "Two warnings, one notification, ahead of what is less urgent. The agent is told before it goes on. You hear of it only when a budget is used up."
      : `The conversation has room for ${CALLS} calls of the model. When three of them are made the agent is warned, once, ahead of what is less urgent: with your next message, before it spends the last one. You hear of it only when nothing is left: say one thing more there, and see.`,
  real: ({ kind }) =>
    kind === "none"
      ? "No budget is spent: two warnings are reported, with figures that are made up."
      : "All of it: the conversation is started with this budget, which anybody can set (thread/start), and its agent spends it. What is said for you is small talk.",
  differs: (agent) => (agent.kind === "none" ? COLLECTS : ownMind(agent)),
  fire: async (stage) => {
    if (stage.agent.kind === "none") {
      const tokens = { budget_type: "token", current: 172_000, limit: 200_000, percentage: 86, scope: "thread" };
      await stage.emit({ type: "budget.token.warning", severity: "warning", payload: tokens });
      const time = { budget_type: "timeout", current: 540, limit: 600, percentage: 90, scope: "turn" };
      await stage.emit({ type: "budget.timeout.warning", severity: "warning", payload: time });
      return;
    }
    for (const words of SMALL_TALK) {
      await stage.say(words);
      await stage.quiet();
    }
    await stage.untilTold("Waiting for the warning", (kind) => kind.startsWith("budget.iteration."), 1);
    await stage.say("Please summarise what we have so far.");
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
