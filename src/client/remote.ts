/** The plane of a running server, with the calls that the library has. */
import type { NewTokenAnswer, NewTokenInput, Tokens } from "../access/tokens.js";
import type { Explanation } from "../delivery/explain.js";
import { type ErrorReport, isMiss, type Miss } from "../domain/errors.js";
import type { EventInput } from "../domain/event.js";
import type { NotificationView, NotificationWithEvents, NotifyInput } from "../domain/notification.js";
import type { TokenView } from "../domain/token.js";
import type { Counts, PruneStep } from "../store/contract.js";
import type {
  AckInput,
  EmitAnswer,
  EmitOutcome,
  ListAnswer,
  ListInput,
  NotifyAnswer,
  Tidings,
  TidingsView,
} from "../tidings.js";
import { type Endpoint, errorOf, RpcClient } from "./rpc.js";

/** What can be asked for of a folder and of a server alike, as one principal. */
export type PlaneView = Pick<TidingsView, "ack" | "counts" | "explain" | "list" | "read" | "redrive">;

/** The same for the host, or an admin's token. */
export type Plane = PlaneView &
  Pick<Tidings, "emit" | "emitMany" | "notify" | "prune"> & {
    readonly tokens: Pick<Tokens, "create" | "list" | "revoke">;
    as(user_id: string): PlaneView;
  };

/** So many events go with one request. */
const SLICE = 500;

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

  /** Of a method that has no misses. */
  protected async answer<Result>(method: string, params: object): Promise<Result> {
    const result = await this.rpc.call<Result>(method, params);
    if (isMiss(result)) throw errorOf({ code: "not_found", message: result.message });
    return result;
  }

  #as(params: object): object {
    return this.#user_id === undefined ? params : { ...params, user_id: this.#user_id };
  }
}

export class RemoteTidings extends RemoteView implements Plane {
  readonly tokens: Plane["tokens"];

  constructor(endpoint: Endpoint) {
    super(new RpcClient(endpoint), undefined);
    this.tokens = {
      create: (input: NewTokenInput) => this.answer<NewTokenAnswer>("token/create", input),
      list: async (options = {}) => (await this.answer<{ tokens: TokenView[] }>("token/list", options)).tokens,
      revoke: (id: string) => this.rpc.call<TokenView>("token/revoke", { id }),
    };
  }

  emit(event: EventInput): Promise<EmitAnswer> {
    return this.answer("event/emit", event);
  }

  async emitMany(events: readonly EventInput[]): Promise<EmitOutcome[]> {
    const outcomes: EmitOutcome[] = [];
    for (let start = 0; start < events.length; start += SLICE) {
      const answers = await this.rpc.post("/v1/events", events.slice(start, start + SLICE));
      for (const answer of answers as (EmitAnswer | { error: ErrorReport })[])
        outcomes.push("error" in answer ? { error: errorOf(answer.error) } : answer);
    }
    return outcomes;
  }

  notify(input: NotifyInput): Promise<NotifyAnswer> {
    return this.answer("notification/notify", input);
  }

  prune({ older_than_ms }: Parameters<Tidings["prune"]>[0]): Promise<PruneStep> {
    return this.answer("runtime/prune", { older_than_ms });
  }

  as(user_id: string): PlaneView {
    return new RemoteView(this.rpc, user_id);
  }
}
