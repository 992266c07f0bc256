/** A Tidings with a hosted agent and one thread, by the library's door; what became of things is asked at its exits. */
import { onTestFinished } from "vitest";
import { z } from "zod";
import { payloadProblem } from "../../src/domain/payloads.js";
import {
  type AgentInput,
  isMiss,
  type JournalEntry,
  type Model,
  type Notification,
  type NotifyInput,
  type OpenOptions,
  Tidings,
  type Tool,
  type TurnView,
} from "../../src/index.js";
import type { Message, ModelEvent, ModelRequest } from "../../src/providers/index.js";
import { ModelError, openModel } from "../../src/providers/index.js";
import { eventually, temporaryFolder } from "./folder.js";

export const CHAT = "chat";

const OWN_SOURCES: readonly string[] = ["agent", "tools", "tidings"];

export type Entry<Type extends JournalEntry["type"]> = Extract<JournalEntry, { type: Type }>;

export class Agent {
  readonly tidings: Tidings;
  readonly data: string;
  #canary: Agent | undefined;

  constructor(tidings: Tidings, data: string) {
    this.tidings = tidings;
    this.data = data;
  }

  get chat() {
    return this.tidings.thread(CHAT);
  }

  get counters() {
    const { agentCounters } = this.tidings;
    if (agentCounters === null) throw new Error("no agent is hosted");
    return agentCounters;
  }

  /** A turn from its message to its end. */
  async converse(content: string): Promise<TurnView> {
    return this.tidings.turns.ended((await this.chat.say(content)).turn_id);
  }

  /** To the thread, unless it says otherwise; answers its id. */
  async notify(content: string, more: Partial<NotifyInput> = {}): Promise<string> {
    const { id } = await this.tidings.notify({ content, thread_id: CHAT, ...more });
    return id;
  }

  mustNarrate(content: string, more: Partial<NotifyInput> = {}): Promise<string> {
    return this.notify(content, { target: "user", handler: "agent", ...more });
  }

  critical(content: string, more: Partial<NotifyInput> = {}): Promise<string> {
    return this.notify(content, { severity: "critical", ...more });
  }

  decides(content: string, more: Partial<NotifyInput> = {}): Promise<string> {
    return this.notify(content, { target: "agent", handler: "agent", ...more });
  }

  async read(id: string): Promise<Notification> {
    const view = await this.tidings.read(id);
    if (isMiss(view)) throw new Error(view.message);
    return view;
  }

  /** Its state, and the reason if there is one. */
  async state(id: string): Promise<string> {
    const { state, reason } = await this.read(id);
    return reason === null ? state : `${state} ${reason}`;
  }

  becomes(id: string, wanted: string): Promise<string> {
    return eventually(
      () => this.state(id),
      (state) => state === wanted,
    );
  }

  /** The whole journal, up to now. */
  async journal(): Promise<JournalEntry[]> {
    const { last_seq } = await this.tidings.facts();
    const entries: JournalEntry[] = [];
    if (last_seq === 0) return entries;
    for await (const entry of this.tidings.watch({ after: 0 })) {
      entries.push(entry);
      if (entry.seq >= last_seq) break;
    }
    return entries;
  }

  async entries<Type extends JournalEntry["type"]>(type: Type): Promise<Entry<Type>[]> {
    return (await this.journal()).filter((entry): entry is Entry<Type> => entry.type === type);
  }

  /** The payloads of the events of a type. */
  async events(type: string): Promise<Record<string, unknown>[]> {
    return (await this.entries("event")).flatMap(({ event }) => (event.type === type ? [event.payload] : []));
  }

  /** Every state that it went through, in order. */
  async path(id: string): Promise<string[]> {
    const journal = await this.journal();
    return journal.flatMap(({ changes }) =>
      changes.flatMap(({ notification_id, path }) => (notification_id === id ? path : [])),
    );
  }

  /** Its way in words. */
  async story(id: string): Promise<string> {
    const explanation = await this.tidings.explain(id);
    if (isMiss(explanation)) throw new Error(explanation.message);
    return explanation.story.map(({ text }) => text).join("\n");
  }

  /** All turns of the thread that were begun, oldest first, as they are now. */
  async turns(thread_id: string = CHAT): Promise<TurnView[]> {
    const begun = (await this.entries("turn")).filter((entry) => entry.thread_id === thread_id);
    const ids = new Set(begun.map(({ turn_id }) => turn_id));
    const views = await Promise.all([...ids].map((id) => this.tidings.turns.read(id)));
    return views.flatMap((view) => (isMiss(view) ? [] : [view]));
  }

  /** Waits until so many turns were, and none is live. */
  turnsOver(count: number, thread_id: string = CHAT): Promise<TurnView[]> {
    return eventually(
      () => this.turns(thread_id),
      (turns) => turns.length >= count && turns.every(({ state }) => state !== "active" && state !== "queued"),
    );
  }

  /** What the user sees of the thread: who says what, and what the system shows. */
  async seen(): Promise<string[]> {
    const { items } = await this.chat.read();
    return items.map((item) => {
      switch (item.type) {
        case "notice":
          return `notice: ${item.content.notification.content}`;
        case "message":
          return `${item.role}: ${item.content.text}`;
        case "tool_call":
          return `call: ${item.content.name}`;
        default:
          return item.type;
      }
    });
  }

  /** What waits for the user, by its words. */
  async shown(user_id?: string): Promise<string[]> {
    const { items } = await this.tidings.inbox(100, user_id);
    return items.map(({ notification }) => notification.content);
  }

  /**
   * Waits until somebody who came just now, elsewhere, and has to wait as long as anybody, was woken and told: whoever is not
   * woken by then is not woken.
   */
  async lullaby(): Promise<void> {
    this.#canary ??= await openAgent();
    const id = await this.#canary.decides("canary");
    await this.#canary.becomes(id, "DELIVERED");
  }

  /** The audit finds nothing; and what the product itself has emitted has the payloads that its types have. */
  async problems(): Promise<unknown[]> {
    const events = (await this.entries("event")).filter(({ event }) => OWN_SOURCES.includes(event.source));
    const misfits = events.flatMap(({ event }) => payloadProblem(event.type, event.payload) ?? []);
    return [...(await this.tidings.audit()).problems, ...misfits];
  }
}

export interface AgentTestOptions extends OpenOptions {
  agent?: AgentInput;
}

/** Opens a Tidings with a hosted agent, on a folder of its own unless one is given, and its thread. */
export async function openAgent(options: AgentTestOptions = {}): Promise<Agent> {
  const data = options.data ?? (await temporaryFolder());
  const tidings = await Tidings.open({ agent: { provider: "rehearsal" }, watch: false, ...options, data });
  onTestFinished(() => tidings.close());
  await tidings.startThread({ thread_id: CHAT });
  return new Agent(tidings, data);
}

/** Never. */
export const NEVER = new Promise<void>(() => undefined);

/** A promise, and who keeps it. */
export interface Latch {
  readonly opened: Promise<void>;
  open(): void;
}

export function latch(): Latch {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** A tool without input. */
export function tool(name: string, run: Tool["run"], more: Partial<Tool> = {}): Tool {
  return { name, description: `The tool ${name}.`, input: z.object({}), run, ...more };
}

/** The next words of the agent that the user sees. */
export function speaking(tidings: Tidings, options: { internal?: boolean } = {}): Promise<string> {
  return new Promise((resolve) => {
    const stop = tidings.onProgress((progress) => {
      if (progress.type !== "text") return;
      stop();
      resolve(progress.delta);
    }, options);
  });
}

export interface Recorded extends Model {
  /** What the model was sent, call by call. */
  readonly requests: ModelRequest[];
  /** The messages of a call, counted from the end. */
  last(back?: number): readonly Message[];
}

type Stream = (request: ModelRequest, number: number) => AsyncIterable<ModelEvent>;

function recorded(name: string, stream: Stream): Recorded {
  const requests: ModelRequest[] = [];
  return {
    provider: "test",
    model: name,
    requests,
    form: () => "system",
    last: (back = 1) => requests.at(-back)?.messages ?? [],
    stream: (request) => {
      requests.push({ ...request, messages: structuredClone(request.messages) });
      return stream(request, requests.length);
    },
  };
}

/** The rehearsal model, and a record of what it was sent. */
export async function recordedRehearsal(): Promise<Recorded> {
  const model = await openModel({ provider: "rehearsal", model: "rehearsal" });
  return recorded("recorded", (request) => model.stream(request));
}

export interface Answer {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly input?: unknown; readonly malformed?: string }[];
  /** Waited for before the provider has begun to answer. */
  readonly before?: Promise<void>;
  /** Waited for after it has; the text comes before. */
  readonly until?: Promise<void>;
  readonly usage?: { input: number; output: number };
  /** Thrown before the provider has begun to answer. */
  readonly fails?: Error;
}

/** A model that answers what it is told to: the first that is asked for with each call; then "All right." for ever. */
export function scripted(script: readonly (Answer | ((request: ModelRequest) => Answer))[]): Recorded {
  let calls = 0;
  return recorded("scripted", async function* (request, number): AsyncGenerator<ModelEvent> {
    const next = script[number - 1] ?? { text: "All right." };
    const answer = typeof next === "function" ? next(request) : next;
    await unlessAborted(request.signal, answer.before);
    if (answer.fails !== undefined) throw answer.fails;
    yield { type: "started" };
    if (answer.text !== undefined) yield { type: "text", delta: answer.text };
    await unlessAborted(request.signal, answer.until);
    for (const { name, input = {}, malformed } of answer.calls ?? []) {
      const call = { id: `call_${++calls}`, name, input: input as Record<string, never> };
      yield malformed === undefined ? { type: "call", call } : { type: "call", call, malformed };
    }
    const usage = answer.usage ?? { input: 1, output: 1 };
    yield { type: "end", reason: (answer.calls ?? []).length > 0 ? "calls" : "end", usage };
  });
}

async function unlessAborted(signal: AbortSignal, until: Promise<void> | undefined): Promise<void> {
  if (until !== undefined && !signal.aborted) {
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    await Promise.race([until, aborted]);
  }
  if (signal.aborted) throw new ModelError("aborted", "aborted");
}

/** Which call of the model was the first to tell this, counted from one; 0: none. */
export function toldInCall(model: Recorded, id: string): number {
  return model.requests.findIndex(({ messages }) => messages.some((message) => blockOf(message).includes(id))) + 1;
}

/** The text of the block that a message brings; empty without one. */
export function blockOf(message: Message | undefined): string {
  return message === undefined || message.role === "assistant" ? "" : (message.block?.text ?? "");
}

/** All that a model was ever told, in one text. */
export function told(model: Recorded): string {
  return model.last().map(blockOf).join("\n");
}
