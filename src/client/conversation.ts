/** Conversations with the agent of a running server, with the calls that the library has. */
import type { Miss } from "../domain/errors.js";
import type {
  Conversation,
  InterruptAnswer,
  ReadOptions,
  ThreadPage,
  ThreadSummaryView,
  ThreadView,
  Turns,
  TurnView,
} from "../runtime/conversation.js";
import type { ThreadAnswer, ThreadSummaryAnswer } from "../server/talk.js";

export type ThreadCalls = Pick<
  Conversation,
  "id" | "say" | "steer" | "deliver" | "pause" | "resume" | "close" | "read" | "turns"
>;
export type TurnCalls = Pick<Turns, "interrupt" | "update" | "remove">;

/** A call that answers, or that may answer with a miss. */
export interface Calls {
  answer<Result>(method: string, params: object): Promise<Result>;
  call<Result>(method: string, params: object): Promise<Result | Miss>;
}

export class RemoteThread implements ThreadCalls {
  readonly id: ThreadCalls["id"];
  readonly #calls: Calls;

  constructor(calls: Calls, id: string) {
    this.#calls = calls;
    this.id = id as ThreadCalls["id"];
  }

  async say(content: string): Promise<TurnView> {
    return turnView(await this.#ask("turn/start", { input: content }));
  }

  async steer(
    content: string,
    { expected_turn_id }: { expected_turn_id?: string | undefined } = {},
  ): Promise<TurnView> {
    return turnView(await this.#ask("turn/steer", { input: content, expected_turn_id }));
  }

  async deliver(content: string): Promise<{ turn: TurnView; how: "started" | "queued" | "steered" }> {
    const answer = await this.#ask<TurnView & { how: "started" | "queued" | "steered" }>("turn/deliver", {
      input: content,
    });
    return { turn: turnView(answer), how: answer.how };
  }

  async pause(): Promise<ThreadView> {
    return threadView(await this.#ask("thread/pause"));
  }

  async resume(): Promise<ThreadView> {
    return threadView(await this.#ask("thread/resume"));
  }

  async close(): Promise<ThreadView> {
    return threadView(await this.#ask("thread/close"));
  }

  async turns(): Promise<TurnView[]> {
    return (await this.#ask<{ turns: TurnView[] }>("queue/list")).turns;
  }

  async read(options: ReadOptions = {}): Promise<ThreadPage> {
    const page = await this.#ask<Omit<ThreadPage, "thread"> & { thread: ThreadAnswer }>("thread/read", options);
    return { ...page, thread: threadView(page.thread) };
  }

  #ask<Result>(method: string, params: object = {}): Promise<Result> {
    return this.#calls.answer(method, { thread_id: this.id, ...params });
  }
}

export class RemoteTurns implements TurnCalls {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  async interrupt(turn_id: string, { content }: { content?: string | undefined } = {}): Promise<InterruptAnswer> {
    const { state, turn, unconsumed, successor } = await this.#calls.answer<
      Omit<InterruptAnswer, "outcome"> & { state: InterruptAnswer["outcome"] }
    >("turn/interrupt", { turn_id, input: content });
    return { turn, outcome: state, unconsumed, successor: successor === null ? null : turnView(successor) };
  }

  update(turn_id: string, content: string): Promise<TurnView | Miss> {
    return this.#calls.call("queue/update", { turn_id, input: content });
  }

  remove(turn_id: string): Promise<TurnView | Miss> {
    return this.#calls.call("queue/remove", { turn_id });
  }
}

type TurnAnswer = TurnView & { started_at?: unknown; accepted_items?: unknown; how?: unknown };

/** Without what the wire says beside. */
function turnView({ started_at: _, accepted_items: __, how: ___, ...view }: TurnAnswer): TurnView {
  return view;
}

export function summaryView(answer: ThreadSummaryAnswer): ThreadSummaryView {
  const { session_id: _, started_at: __, ...summary } = answer;
  return { ...summary, ...threadView(answer) };
}

export function threadView({ thread_id, user_id, state, created_at, budgets }: ThreadAnswer): ThreadView {
  return { thread_id, user_id, state: state === "running" ? "open" : state, created_at, budgets };
}
