/** What begins with a slash: said to Tidings, and not to the agent. */
import { isMiss } from "../../domain/errors.js";
import { showExplanation } from "../commands/explain.js";
import { didYouMean } from "../nearest.js";
import type { Output } from "../output.js";
import { ageOf, showCard, showMiss } from "../show.js";
import { ago, counted, oneLine, pad } from "../text.js";
import type { Talk } from "./talk.js";

export interface ChatContext {
  readonly talk: Talk;
  readonly output: Output;
  /** The notification that was seen last. */
  latest(): string | null;
  /** Ends the conversation. */
  leave(): void;
}

const INBOX_LIMIT = 10;
const THREADS_LIMIT = 20;

interface SlashCommand {
  readonly usage: string;
  readonly summary: string;
  run(context: ChatContext, word: string | undefined): Promise<void> | void;
}

const COMMANDS: Readonly<Record<string, SlashCommand>> = {
  inbox: { usage: "/inbox", summary: "what you have not read yet", run: showInbox },
  explain: { usage: "/explain [ID]", summary: "the whole way of a notification; of the one seen last", run: explain },
  threads: { usage: "/threads", summary: "your conversations", run: showThreads },
  pause: {
    usage: "/pause",
    summary: "let the agent rest: what you say waits",
    run: async ({ talk }) => void (await talk.thread.pause()),
  },
  resume: {
    usage: "/resume",
    summary: "let it go on",
    run: async ({ talk }) => void (await talk.thread.resume()),
  },
  help: { usage: "/help", summary: "these lines", run: showHelp },
  quit: { usage: "/quit", summary: "leave; the conversation stays", run: ({ leave }) => leave() },
};

/** Whether this is for Tidings; two slashes are one, and for the agent. */
export function isCommand(line: string): boolean {
  return line.startsWith("/") && !line.startsWith("//");
}

/** What the agent is told of a line. */
export function messageIn(line: string): string {
  return line.startsWith("//") ? line.slice(1) : line;
}

export async function runCommand(line: string, context: ChatContext): Promise<void> {
  const [name = "", word] = line.slice(1).trim().split(/\s+/);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command !== undefined) {
    await command.run(context, word);
    return;
  }
  const hint = didYouMean(name, Object.keys(COMMANDS)) || ".";
  context.output.remark(`there is no /${oneLine(name)}${hint} /help shows what there is; // begins a message with /`);
}

async function showHelp({ output }: ChatContext): Promise<void> {
  if (output.json) return;
  const rows = Object.values(COMMANDS);
  const columns = Math.max(...rows.map(({ usage }) => usage.length));
  for (const { usage, summary } of rows) await output.line(`  ${pad(usage, columns)}  ${summary}`);
}

async function showInbox({ talk, output }: ChatContext): Promise<void> {
  const user_id = await talk.remote.user();
  const { notifications } = await talk.remote.list({ user_id, unread: true, limit: INBOX_LIMIT });
  if (output.json) {
    await output.value({ inbox: notifications });
    return;
  }
  const { unread, cap } = await talk.remote.counts(user_id);
  const many = unread >= cap ? `${cap} or more` : String(unread);
  await output.line(output.style("bold", notifications.length === 0 ? "Nothing unread." : `${many} unread`));
  for (const notification of notifications) await showCard(notification, output);
}

async function explain({ talk, output, latest }: ChatContext, word: string | undefined): Promise<void> {
  const id = word ?? latest();
  if (id === null) {
    output.remark("/explain needs an ID: nothing was shown here yet");
    return;
  }
  const answer = await talk.remote.explain(id);
  if (output.json) await output.value({ explanation: answer });
  else if (isMiss(answer)) showMiss(answer, output);
  else await showExplanation(answer, output);
}

async function showThreads({ talk, output }: ChatContext): Promise<void> {
  const threads = await talk.remote.threads({ limit: THREADS_LIMIT });
  if (output.json) {
    await output.value({ threads });
    return;
  }
  await output.line(output.style("bold", counted(threads.length, "conversation")));
  for (const { thread_id, state, created_at } of threads) {
    const here = thread_id === talk.thread.id ? "  this one" : "";
    await output.line(`  ${oneLine(thread_id)}  ${pad(state, 6)}  begun ${ago(ageOf(created_at))}${here}`);
  }
}
