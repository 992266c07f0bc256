/** The plane of a running server, with the calls that the library has. */
import type { NewTokenAnswer, NewTokenInput, Tokens } from "../access/tokens.js";
import type { Explanation } from "../delivery/explain.js";
import {
  type ErrorReport,
  InvalidInputError,
  isMiss,
  type Miss,
  OverloadedError,
  TooLargeError,
} from "../domain/errors.js";
import type { EventInput } from "../domain/event.js";
import type { NotificationView, NotificationWithEvents, NotifyInput } from "../domain/notification.js";
import type { TokenView } from "../domain/token.js";
import type { SettingsView, SubscriberList } from "../intake/listing.js";
import type { ApproveInput, McpRegistry } from "../mcp/registry.js";
import type { McpServerView, McpToolView } from "../mcp/views.js";
import { systemClock } from "../platform/clock.js";
import { pause } from "../platform/timers.js";
import type { StartThreadInput, ThreadSummaryView, ThreadView } from "../runtime/conversation.js";
import type { ThreadAnswer, ThreadSummaryAnswer } from "../server/talk.js";
import type { Counts, PruneStep } from "../store/contract.js";
import type {
  AckInput,
  AgentView,
  EmitAnswer,
  EmitOutcome,
  ListAnswer,
  ListInput,
  NotifyAnswer,
  SettingsInput,
  Tidings,
  TidingsView,
} from "../tidings.js";
import type { TidingsClient } from "./client.js";
import {
  RemoteThread,
  RemoteTurns,
  summaryView,
  type ThreadCalls,
  type TurnCalls,
  threadView,
} from "./conversation.js";
import type { ResultOf, RuntimeStatus } from "./methods.js";
import type { ClientOptions } from "./options.js";
import { type CallOptions, type Endpoint, errorOf, RpcClient } from "./rpc.js";

/** What can be asked for of a folder and of a server alike, as one principal. */
export type PlaneView = Pick<
  TidingsView,
  | "ack"
  | "counts"
  | "explain"
  | "list"
  | "read"
  | "redrive"
  | "settings"
  | "startThread"
  | "subscribers"
  | "threads"
  | "updateSettings"
> & {
  thread(thread_id: string): ThreadCalls;
  readonly turns: TurnCalls;
};

/** The same for the host, or an admin's token. */
export type Plane = PlaneView &
  Pick<Tidings, "emit" | "emitMany" | "notify" | "prune"> & {
    readonly tokens: Pick<Tokens, "create" | "list" | "revoke">;
    readonly mcp: Pick<McpRegistry, "list" | "approve">;
    as(user_id: string): PlaneView;
  };

export type FollowOptions = Pick<ClientOptions, "observe" | "opt_out" | "cursor"> & {
  readonly since?: number | undefined;
};

/** So much goes with one request: the server takes a little more. */
const SLICE_EVENTS = 500;
const SLICE_BYTES = 1_000_000;
/** How long a server that has too much to do is asked again and again. */
const OVERLOADED_MS = 60_000;
const RETRY_MS_MIN = 20;

class RemoteView implements PlaneView {
  protected readonly rpc: RpcClient;
  readonly #user_id: string | undefined;

  constructor(rpc: RpcClient, user_id: string | undefined) {
    this.rpc = rpc;
    this.#user_id = user_id;
  }

  ack(input: AckInput): Promise<NotificationView | Miss> {
    return this.rpc.call("notification/ack", this.#as(input));
  }

  list(input: ListInput = {}): Promise<ListAnswer> {
    return this.answer("notification/list", this.#as(input));
  }

  counts(user_id?: string): Promise<Counts> {
    return this.answer("inbox/counts", this.#as(user_id === undefined ? {} : { user_id }));
  }

  read(id: string): Promise<NotificationWithEvents | Miss> {
    return this.rpc.call("notification/read", this.#as({ id }));
  }

  explain(id: string): Promise<Explanation | Miss> {
    return this.rpc.call("notification/explain", this.#as({ id }));
  }

  redrive(id: string): Promise<NotificationView | Miss> {
    return this.rpc.call("notification/redrive", this.#as({ id }));
  }

  settings(user_id?: string): Promise<SettingsView> {
    return this.answer("settings/get", this.#as(user_id === undefined ? {} : { user_id }));
  }

  updateSettings(input: SettingsInput): Promise<SettingsView> {
    return this.answer("settings/update", this.#as(input));
  }

  subscribers(user_id?: string): Promise<SubscriberList> {
    return this.answer("subscriber/list", this.#as(user_id === undefined ? {} : { user_id }));
  }

  async startThread(input: StartThreadInput = {}): Promise<ThreadView> {
    return threadView(await this.answer<ThreadAnswer>("thread/start", this.#as(input)));
  }

  async threads(input: { user_id?: string; after?: string; limit?: number } = {}): Promise<ThreadSummaryView[]> {
    const answer = await this.answer<{ threads: ThreadSummaryAnswer[] }>("thread/list", this.#as(input));
    return answer.threads.map(summaryView);
  }

  thread(thread_id: string): ThreadCalls {
    return new RemoteThread(this.#calls(), thread_id);
  }

  get turns(): TurnCalls {
    return new RemoteTurns(this.#calls());
  }

  #calls() {
    return {
      answer: <Result>(method: string, params: object) => this.answer<Result>(method, this.#as(params)),
      call: <Result>(method: string, params: object) => this.rpc.call<Result>(method, this.#as(params)),
    };
  }

  /** Of a method that has no misses. */
  protected async answer<Result>(method: string, params: object, options: CallOptions = {}): Promise<Result> {
    const result = await this.rpc.call<Result>(method, params, options);
    if (isMiss(result)) throw errorOf({ code: "not_found", message: result.message });
    return result;
  }

  #as(params: object): object {
    return this.#user_id === undefined ? params : { ...params, user_id: this.#user_id };
  }
}

/** The plane of a server. Where that server has too much to do, events wait for their turn. */
export class RemoteTidings extends RemoteView implements Plane {
  readonly tokens: Plane["tokens"];
  readonly mcp: Plane["mcp"];
  readonly #endpoint: Endpoint;

  constructor(endpoint: Endpoint) {
    super(new RpcClient(endpoint), undefined);
    this.#endpoint = endpoint;
    this.tokens = {
      create: (input: NewTokenInput) => this.answer<NewTokenAnswer>("token/create", input),
      list: async (options = {}) => (await this.answer<{ tokens: TokenView[] }>("token/list", options)).tokens,
      revoke: (id: string) => this.rpc.call<TokenView>("token/revoke", { id }),
    };
    this.mcp = {
      list: async () => (await this.answer<{ servers: McpServerView[] }>("mcp/list", {})).servers,
      approve: (input: ApproveInput) => this.rpc.call<McpToolView>("mcp/approve", input),
    };
  }

  emit(event: EventInput): Promise<EmitAnswer> {
    return this.answer("event/emit", event);
  }

  async emitMany(events: readonly EventInput[]): Promise<EmitOutcome[]> {
    const outcomes: EmitOutcome[] = [];
    let slice: EventInput[] = [];
    let bytes = 0;
    for (const event of events) {
      const size = Buffer.byteLength(JSON.stringify(event)) + 1;
      if (slice.length === SLICE_EVENTS || (slice.length > 0 && bytes + size > SLICE_BYTES)) {
        outcomes.push(...(await this.#emitSlice(slice)));
        slice = [];
        bytes = 0;
      }
      if (size > SLICE_BYTES) {
        outcomes.push({ error: await refusalOf(event) });
        continue;
      }
      slice.push(event);
      bytes += size;
    }
    if (slice.length > 0) outcomes.push(...(await this.#emitSlice(slice)));
    return outcomes;
  }

  async #emitSlice(slice: readonly EventInput[]): Promise<EmitOutcome[]> {
    const answers = (await patiently(() => this.rpc.post("/v1/events", slice))) as (
      | EmitAnswer
      | { error: ErrorReport }
    )[];
    return answers.map((answer) => ("error" in answer ? { error: errorOf(answer.error) } : answer));
  }

  notify(input: NotifyInput): Promise<NotifyAnswer> {
    return this.answer("notification/notify", input);
  }

  prune({ older_than_ms }: Parameters<Tidings["prune"]>[0]): Promise<PruneStep> {
    // It takes as long as there is history.
    return this.answer("runtime/prune", { older_than_ms }, { answerMs: Number.POSITIVE_INFINITY });
  }

  /** Whose token it is. */
  async user(): Promise<string> {
    return (await this.#status()).user_id;
  }

  /** What its agent runs on; null if it hosts none. */
  async agent(): Promise<AgentView | null> {
    return (await this.#status()).agent;
  }

  /** Those that can take nothing, as its own environment is; for admin's token. */
  async hooksWithoutSecret(): Promise<NonNullable<RuntimeStatus["hooks_without_secret"]>> {
    return (await this.#status()).hooks_without_secret ?? [];
  }

  #status(): Promise<RuntimeStatus> {
    return this.answer("runtime/status", {});
  }

  /**
   * What happens for the token's user: notifications, and what is said and done in conversations. From a cursor, or from
   * after an entry of the journal; without either from now on.
   */
  async follow({ since, cursor, ...view }: FollowOptions): Promise<TidingsClient> {
    const { journal_id, seq } = await this.answer<ResultOf<"initialize">>("initialize", {});
    // Loaded here: whoever only calls needs none of it.
    const { TidingsClient } = await import("./client.js");
    const from = cursor ?? { journal_id, after_seq: since ?? seq };
    return TidingsClient.connect({ ...this.#endpoint, ...view, cursor: from });
  }

  /** Whether the server has answered anything yet. */
  get isFresh(): boolean {
    return this.rpc.answers === 0;
  }

  as(user_id: string): PlaneView {
    return new RemoteView(this.rpc, user_id);
  }
}

/** What the server would say of an event that is too large to be sent to it. */
async function refusalOf(event: EventInput): Promise<Error> {
  // Loaded here: it is rare, and takes longer to load than an event to send.
  const { parseEvent } = await import("../domain/event.js");
  try {
    parseEvent(event);
  } catch (error) {
    if (error instanceof InvalidInputError) return error;
    throw error;
  }
  return new TooLargeError("the event is too large to be sent");
}

/** Of what the server refused for now, nothing was stored: it is sent again when the server says. */
async function patiently<Value>(send: () => Promise<Value>): Promise<Value> {
  const start = systemClock.monotonic();
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof OverloadedError) || systemClock.monotonic() - start > OVERLOADED_MS) throw error;
      await pause(Math.max(error.retry_after_ms, RETRY_MS_MIN));
    }
  }
}
