/**
 * Calls: over the connection that is open, or by a request of their own where there is none. What was sent over a
 * connection that broke was done, or not: only what reads is sent again.
 */
import { type Miss, TidingsError, TooLargeError, UnreachableError } from "../domain/errors.js";
import { later } from "../platform/timers.js";
import { IS_READ } from "./methods.js";
import { type RpcAnswer, type RpcClient, resultOf } from "./rpc.js";

export interface AskOptions {
  /** How long the answer may take; without it half a minute. */
  readonly timeout_ms?: number | undefined;
  /** Ends the waiting; what was asked for may be done, or not. */
  readonly signal?: AbortSignal | undefined;
}

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly reads: boolean;
  /** Nobody waits for it any more. */
  readonly over: AbortSignal;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

const ANSWER_MS = 30_000;
/** A server takes 64 over one connection, and messages of 64 KiB. */
const SENT_MAX = 60;
const BYTES_MAX = 60_000;
/** They are about a connection, and this one has its own. */
const BY_REQUEST: ReadonlySet<string> = new Set(["initialize", "stream/resume"]);
const FOLLOWS = "runtime/logStream";

export class Calls {
  readonly #url: string;
  readonly #rpc: RpcClient;
  #say: ((text: string) => void) | null = null;
  #id = 0;
  /** For the connection that is open, or the next one. */
  #queued: Call[] = [];
  readonly #sent = new Map<number, Call>();
  #followsLog = false;
  /** Whether connections of this kind can be spoken on at all. */
  #speaks = true;
  #closed: Error | undefined;

  constructor(url: string, rpc: RpcClient) {
    this.#url = url;
    this.#rpc = rpc;
  }

  ask<Result>(method: string, params: object, { timeout_ms, signal }: AskOptions): Promise<Result | Miss> {
    const over = new AbortController();
    return new Promise<Result | Miss>((resolve, reject) => {
      if (this.#closed !== undefined) throw this.#closed;
      signal?.throwIfAborted();
      this.#id += 1;
      const named = params as Call["params"];
      const id = this.#id;
      const call: Call = { id, method, params: named, reads: isRead(method), over: over.signal, resolve, reject };
      const limit = timeout_ms ?? ANSWER_MS + (Number(named["wait_ms"]) || 0);
      const late = () => reject(new UnreachableError(`${this.#url} ${lateWords(limit)}`, { why: "late" }));
      const cancel = Number.isFinite(limit) ? later(limit, late) : () => {};
      const giveUp = () => reject(signal?.reason);
      signal?.addEventListener("abort", giveUp);
      over.signal.addEventListener("abort", () => {
        cancel();
        signal?.removeEventListener("abort", giveUp);
        this.#sent.delete(id);
        this.#pump();
      });
      this.#dispatch(call);
    }).finally(() => over.abort());
  }

  /** A connection is open; null: nothing can be said on it. */
  attach(say: ((text: string) => void) | null): void {
    this.#say = say;
    this.#speaks = say !== null;
    const waiting = this.#queued;
    this.#queued = [];
    if (this.#followsLog && this.#speaks)
      this.ask(FOLLOWS, { follow: true, limit: 0 }, { timeout_ms: Number.POSITIVE_INFINITY }).catch(() => {});
    for (const call of waiting) this.#dispatch(call);
  }

  /** It broke. */
  detach(error: Error): void {
    this.#say = null;
    const queued = this.#queued;
    const sent = [...this.#sent.values()];
    this.#sent.clear();
    this.#queued = [...sent, ...queued].filter(({ reads }) => reads);
    const lost = `${this.#url} did not answer before the connection broke; what it was asked to do may be done, or not`;
    for (const { reads, reject } of sent) if (!reads) reject(new UnreachableError(lost, { why: "lost", cause: error }));
    for (const { reads, reject } of queued)
      if (!reads) reject(new UnreachableError(`${this.#url} was not asked: the connection broke`, { cause: error }));
  }

  /** Nothing more is asked. */
  close(error: Error): void {
    this.#closed = error;
    this.#say = null;
    for (const { reject } of [...this.#sent.values(), ...this.#queued]) reject(error);
    this.#sent.clear();
    this.#queued = [];
  }

  /** An answer came over the connection. */
  take(id: number, answer: RpcAnswer): void {
    const call = this.#sent.get(id);
    if (call === undefined) return;
    this.#sent.delete(id);
    try {
      const result = resultOf(answer);
      if (call.method === FOLLOWS && call.params["follow"] === true) this.#followsLog = true;
      call.resolve(result);
    } catch (error) {
      // An answer may be larger by itself than over a connection.
      if (error instanceof TooLargeError && call.reads) void this.#request(call);
      else call.reject(error);
    }
    this.#pump();
  }

  #dispatch(call: Call): void {
    if (call.over.aborted) return;
    const follows = call.method === FOLLOWS && call.params["follow"] === true;
    if (this.#say === null && !(follows && this.#speaks)) void this.#request(call);
    else if (BY_REQUEST.has(call.method) || isLarge(call)) void this.#request(call);
    else {
      this.#queued.push(call);
      this.#pump();
    }
  }

  #pump(): void {
    while (this.#say !== null && this.#sent.size < SENT_MAX) {
      const call = this.#queued.shift();
      if (call === undefined) return;
      if (call.over.aborted) continue;
      this.#sent.set(call.id, call);
      this.#say(textOf(call));
    }
  }

  async #request(call: Call): Promise<void> {
    try {
      const { method, params, over } = call;
      call.resolve(await this.#rpc.call(method, params, { signal: over, answerMs: Number.POSITIVE_INFINITY }));
    } catch (error) {
      const isGone = error instanceof UnreachableError && error.why !== "foreign";
      if (isGone && call.reads && this.#say === null && this.#closed === undefined) this.#queued.push(call);
      else call.reject(this.#closed ?? error);
    }
  }
}

function isRead(method: string): boolean {
  return (IS_READ as Readonly<Record<string, boolean>>)[method] === true;
}

function textOf({ id, method, params }: Call): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

function isLarge(call: Call): boolean {
  const text = textOf(call);
  return text.length * 3 > BYTES_MAX && new TextEncoder().encode(text).length > BYTES_MAX;
}

function lateWords(limit: number): string {
  return `did not answer within ${limit / 1_000} s; what it was asked to do may be done, or not`;
}

/** What a client that was closed answers with. */
export function closedError(): TidingsError {
  return new TidingsError("closed", "the client was closed");
}
