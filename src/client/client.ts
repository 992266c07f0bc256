/**
 * A client of a running server: calls, and what the server tells by itself, over connections that come and go. What is
 * told is told once and in order, or a `stream/reset` says that something is missing.
 */
import { AccessError, InvalidInputError, OverloadedError, UnreachableError } from "../domain/errors.js";
import { backoff } from "../platform/backoff.js";
import { systemClock } from "../platform/clock.js";
import { later } from "../platform/timers.js";
import { type AskOptions, Calls, closedError } from "./calls.js";
import { Chain, type Frame } from "./chain.js";
import type { Incoming, Link, OpenLink } from "./link.js";
import type { Cursor, MethodName, ParamsOf, ResultOf, ServerInfo } from "./methods.js";
import { openNdjson } from "./ndjson_link.js";
import {
  type ClientOptions,
  mustBeAddress,
  type NotificationsOptions,
  queryOf,
  type Status,
  type StatusDetail,
  viewOf,
} from "./options.js";
import { Reader } from "./reader.js";
import { RpcClient, resultOf } from "./rpc.js";
import type { Told, ToldName } from "./told.js";
import { openWebSocket } from "./web_socket_link.js";

const RECONNECT = { min_ms: 250, max_ms: 30_000 };
/** Three heartbeats of a server that nobody has told otherwise. */
const SILENCE_MS = 45_000;
/** For a connection to be made, and for a request to say why it was not. */
const CONNECT_MS = 15_000;
/** Whoever was held up itself has not heard yet what has come meanwhile. */
const GRACE_MS = 1_000;
const BUFFER_MAX = 10_000;
/** What is kept for the first who listens; if more comes before, the rest is asked for again. */
const UNHEARD_MAX = 1_000;
const INITIALIZE = "initialize";

type Listener = (told: Told) => void;
type StatusListener = (status: Status, detail: StatusDetail) => void;

/** What was told before anybody listened. */
interface Unheard {
  readonly told: Told[];
  /** Where a client stands that was told nothing of it. */
  before: Cursor | null;
  /** Where it stands that was told what is kept: the rest is asked for from there. */
  upTo: Cursor | null;
  /** There was more than is kept. */
  lost: boolean;
}

export class TidingsClient {
  readonly #options: ClientOptions;
  readonly #rpc: RpcClient;
  readonly #calls: Calls;
  readonly #chain: Chain;
  readonly #openLink: OpenLink;
  readonly #unwanted: ReadonlySet<string>;
  readonly #listeners = new Set<Listener>();
  readonly #readers = new Set<Reader>();
  readonly #statusListeners = new Set<StatusListener>();
  #status: Status = "connecting";
  #server: ServerInfo | null = null;
  #link: Link | null = null;
  /** The server has agreed to the link. */
  #isOpen = false;
  #attempt = 0;
  /** Something was missing, and nothing has come since. */
  #gapped = false;
  #cancelTimer: () => void = () => {};
  #cancelWatch: () => void = () => {};
  #heardAt = 0;
  /** What the first who listens will be told; undefined after that. */
  #unheard: Unheard | undefined;
  #hasListened = false;
  /** The server has agreed by a request, and has not told yet where it begins. */
  #agreedBy: ServerInfo | undefined;

  /** Begins to connect, and goes on until it is closed. */
  constructor(options: ClientOptions) {
    mustBeAddress(options.url);
    this.#options = options;
    this.#rpc = new RpcClient(options);
    this.#calls = new Calls(options.url, this.#rpc);
    this.#chain = new Chain(options.cursor ?? null, (told) => this.#tell(told));
    this.#unheard = { told: [], before: options.cursor ?? null, upTo: options.cursor ?? null, lost: false };
    this.#openLink = options.transport === "ndjson" ? openNdjson : openWebSocket;
    this.#unwanted = new Set(options.opt_out);
    this.#dial();
  }

  /** Resolves when the server has agreed; throws why it has not. */
  static async connect(options: ClientOptions): Promise<TidingsClient> {
    const client = new TidingsClient(options);
    await new Promise<void>((resolve, reject) => {
      const stop = client.onStatus((status, { error }) => {
        if (status === "connecting") return;
        stop();
        if (status === "open") resolve();
        else reject(error);
      });
    }).catch((error: unknown) => {
      client.close();
      throw error;
    });
    return client;
  }

  get status(): Status {
    return this.#status;
  }

  /** What runs there, and whose token it is; null until it has agreed for the first time. */
  get server(): ServerInfo | null {
    return this.#server;
  }

  /** Where it stands after what it has told last; null before it knows. */
  get cursor(): Cursor | null {
    const unheard = this.#unheard;
    return unheard === undefined || unheard.told.length === 0 ? this.#chain.cursor : unheard.before;
  }

  /** The answer; a miss is one. Throws what went wrong. */
  call<Name extends MethodName>(
    method: Name,
    ...[params, options]: Record<never, never> extends ParamsOf<Name>
      ? [params?: ParamsOf<Name>, options?: AskOptions]
      : [params: ParamsOf<Name>, options?: AskOptions]
  ): Promise<ResultOf<Name>> {
    return this.#calls.ask<unknown>(method, params ?? {}, options ?? {}) as Promise<ResultOf<Name>>;
  }

  /** Each thing as it is told, in order. Returns the function that ends it. */
  listen(listener: (told: Told) => void): () => void {
    // Each call is a listener of its own, also of the same function.
    const own: Listener = (told) => listener(told);
    this.#listeners.add(own);
    this.#heard();
    return () => {
      this.#listeners.delete(own);
    };
  }

  /** The same, to be taken one by one. */
  notifications<Name extends ToldName = ToldName>({
    methods,
    buffer = BUFFER_MAX,
  }: NotificationsOptions<Name> = {}): AsyncIterableIterator<Told<Name | "stream/reset">, undefined, undefined> {
    const wanted = methods === undefined ? undefined : new Set<string>([...methods, "stream/reset"]);
    const reader = new Reader(buffer, this.cursor, wanted, (one) => this.#readers.delete(one));
    if (this.#status === "closed") reader.end();
    else this.#readers.add(reader);
    this.#heard();
    return reader as AsyncIterableIterator<Told<Name | "stream/reset">, undefined, undefined>;
  }

  onStatus(listener: (status: Status, detail: StatusDetail) => void): () => void {
    const own: StatusListener = (status, detail) => listener(status, detail);
    this.#statusListeners.add(own);
    return () => {
      this.#statusListeners.delete(own);
    };
  }

  /** Does not wait any longer for the next try. */
  retryNow(): void {
    if (this.#status === "waiting") this.#dial();
  }

  /** Iterators end; calls that are under way throw. */
  close(): void {
    this.#finish(undefined);
  }

  #dial(): void {
    this.#cancelTimer();
    this.#say("connecting", {});
    if (this.#isClosed) return;
    this.#chain.begin();
    this.#isOpen = false;
    this.#agreedBy = undefined;
    const { url, token } = this.#options;
    const link: Link = this.#openLink(
      { url, token, query: queryOf(this.#options, this.#chain.cursor) },
      {
        opened: () => {
          if (this.#link === link) this.#agree(link);
        },
        took: (incoming) => {
          if (this.#link === link) this.#take(incoming);
        },
        ended: (error) => {
          if (this.#link === link) void this.#lost(error);
        },
      },
    );
    this.#link = link;
    this.#heardAt = systemClock.monotonic();
    this.#watch();
  }

  get #isClosed(): boolean {
    return this.#status === "closed";
  }

  /** Asks who is there. Over a connection that is answered when all that was missed has been told. */
  #agree(link: Link): void {
    this.#isOpen = true;
    this.#heardAt = systemClock.monotonic();
    this.#watch();
    const params = viewOf(this.#options);
    if (link.say !== null) {
      link.say(JSON.stringify({ jsonrpc: "2.0", id: INITIALIZE, method: INITIALIZE, params }));
      return;
    }
    this.#rpc.call<ServerInfo>(INITIALIZE, params).then(
      (server) => {
        if (this.#link !== link) return;
        // From where on it listens is known by what it is told first.
        if (this.#chain.cursor === null) this.#agreedBy = server as ServerInfo;
        else this.#agreed(server as ServerInfo);
      },
      (error: unknown) => {
        if (this.#link === link) this.#again(error as Error);
      },
    );
  }

  #agreed(server: ServerInfo): void {
    this.#server = server;
    this.#agreedBy = undefined;
    if (!this.#gapped) this.#attempt = 0;
    this.#calls.attach(this.#link?.say ?? null);
    this.#say("open", {});
  }

  #take(incoming: Incoming): void {
    this.#heardAt = systemClock.monotonic();
    const { id, method, params } = incoming;
    if (method !== undefined) {
      this.#follow({ method, params: params ?? {} });
      if (this.#agreedBy !== undefined && this.#chain.cursor !== null) this.#agreed(this.#agreedBy);
    } else if (id === INITIALIZE) {
      try {
        const server = resultOf<ServerInfo>(incoming) as ServerInfo;
        this.#chain.caughtUp();
        this.#agreed(server);
      } catch (error) {
        this.#again(error as Error);
      }
    } else if (typeof id === "number") this.#calls.take(id, incoming);
  }

  #follow(frame: Frame): void {
    if (this.#chain.take(frame)) this.#gapped = false;
    else {
      this.#gapped = true;
      this.#again(new UnreachableError("something that was told has not come", { why: "lost" }));
    }
  }

  #tell(told: Told): void {
    if (this.#isClosed) return;
    const isWanted = !this.#unwanted.has(told.method);
    if (this.#unheard !== undefined) keep(this.#unheard, told, isWanted);
    else if (isWanted) this.#hand(told);
  }

  #hand(told: Told): void {
    for (const listener of [...this.#listeners]) hand(() => listener(told));
    for (const reader of [...this.#readers]) reader.tell(told);
  }

  /** Somebody listens, and is told after it has had the time to say what else it has to say. */
  #heard(): void {
    if (this.#unheard === undefined || this.#hasListened) return;
    this.#hasListened = true;
    void Promise.resolve().then(() => {
      const unheard = this.#unheard;
      this.#unheard = undefined;
      for (const told of unheard?.told ?? []) if (!this.#isClosed) this.#hand(told);
      if (unheard?.lost !== true || unheard.upTo === null || this.#isClosed) return;
      this.#chain.goBack(unheard.upTo);
      if (this.#link !== null) this.#again(new UnreachableError("nobody listened at first", { why: "lost" }));
    });
  }

  /** The connection is of no use any more. */
  #again(error: Error): void {
    this.#link?.end(false);
    void this.#lost(error);
  }

  async #lost(error: Error): Promise<void> {
    const wasOpen = this.#isOpen;
    this.#link = null;
    this.#isOpen = false;
    this.#cancelWatch();
    this.#calls.detach(error);
    const why = wasOpen ? error : await this.#whyRefused(error);
    if (this.#isClosed) return;
    if (isFinal(why)) {
      this.#finish(why);
      return;
    }
    const { min_ms, max_ms } = { ...RECONNECT, ...this.#options.reconnect };
    const least = why instanceof OverloadedError ? why.retry_after_ms : 0;
    const retry_in_ms = Math.max(backoff(this.#attempt, min_ms, max_ms), least);
    this.#attempt += 1;
    this.#cancelTimer = later(retry_in_ms, () => this.#dial(), true);
    this.#say("waiting", { retry_in_ms, error: why });
  }

  /** A WebSocket does not say why it was refused: a request does. */
  async #whyRefused(error: Error): Promise<Error> {
    if (this.#openLink !== openWebSocket) return error;
    const { cursor } = this.#chain;
    const within = { answerMs: CONNECT_MS };
    try {
      await this.#rpc.call(INITIALIZE, viewOf(this.#options), within);
      if (this.#server === null && cursor !== null) await this.#rpc.call("stream/resume", cursor, within);
      return error;
    } catch (why) {
      return why instanceof UnreachableError || !(why instanceof Error) ? error : why;
    }
  }

  /** Ends a connection on which nothing is heard. `again`: it was looked at before, and nothing was heard since. */
  #watch(again = false): void {
    this.#cancelWatch();
    const silenceMs = this.#options.silence_ms ?? SILENCE_MS;
    const limit = this.#isOpen ? silenceMs : Math.min(silenceMs, CONNECT_MS);
    const left = this.#heardAt + limit - systemClock.monotonic();
    if (left > 0) this.#cancelWatch = later(left, () => this.#watch(), true);
    else if (!again) this.#cancelWatch = later(GRACE_MS, () => this.#watch(true), true);
    else {
      const words = this.#isOpen ? "has said nothing for too long" : "does not answer";
      this.#again(new UnreachableError(`${this.#options.url} ${words}`, { why: "lost" }));
    }
  }

  #finish(error: Error | undefined): void {
    if (this.#isClosed) return;
    this.#cancelTimer();
    this.#cancelWatch();
    this.#link?.end(true);
    this.#link = null;
    this.#calls.close(error ?? closedError());
    this.#say("closed", error === undefined ? {} : { error });
    for (const reader of [...this.#readers]) reader.end(error);
  }

  #say(status: Status, detail: Omit<StatusDetail, "attempt">): void {
    this.#status = status;
    const whole = { attempt: this.#attempt, ...detail };
    for (const listener of [...this.#statusListeners]) hand(() => listener(status, whole));
  }
}

/** What waited when it connected is kept as a whole: it has no place from which it could be asked for again. */
function keep(unheard: Unheard, told: Told, isWanted: boolean): void {
  if (unheard.lost) return;
  const { params, cursor } = told;
  const hasPlace = unheard.upTo !== null && !("waiting" in params);
  if (isWanted && hasPlace && unheard.told.length >= UNHEARD_MAX) {
    unheard.lost = true;
    return;
  }
  if (isWanted) unheard.told.push(told);
  else if (unheard.told.length === 0) unheard.before = cursor;
  unheard.upTo = cursor;
}

/** To connect again would be answered in the same way. */
function isFinal(error: Error): boolean {
  return error instanceof AccessError || error instanceof InvalidInputError;
}

/** Whoever throws harms nobody else, and is heard of. */
function hand(task: () => void): void {
  try {
    task();
  } catch (error) {
    void Promise.reject(error);
  }
}
