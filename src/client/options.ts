/** How a client is made, and what it says of itself. */
import { InvalidInputError } from "../domain/errors.js";
import type { Cursor, View } from "./methods.js";
import type { ToldName } from "./told.js";

export interface ClientOptions extends Omit<View, "opt_out"> {
  /** Of the server, like `http://127.0.0.1:4747`. */
  readonly url: string;
  readonly token: string;
  /** Default `websocket`. */
  readonly transport?: "websocket" | "ndjson" | undefined;
  /** What is not told. `stream/reset` always is. */
  readonly opt_out?: readonly Exclude<ToldName, "stream/reset">[] | undefined;
  /** Goes on from there; without it, what waits for the user is told first. */
  readonly cursor?: Cursor | null | undefined;
  /** How long it waits before it connects again: at first, and at most. */
  readonly reconnect?: { readonly min_ms?: number; readonly max_ms?: number } | undefined;
  /** After so long without a word from the server the connection is taken for broken. */
  readonly silence_ms?: number | undefined;
}

/**
 * - `connecting`: a connection is being made, or it is being told what was missed
 * - `open`: it is told what happens, as it happens
 * - `waiting`: there is none; another try follows
 * - `closed`: by `close()`, or since the server refuses it for good
 */
export type Status = "connecting" | "open" | "waiting" | "closed";

export interface StatusDetail {
  /** Tries that have failed since it was open. */
  readonly attempt: number;
  /** While it waits: how long. */
  readonly retry_in_ms?: number;
  /** Why it waits, or is closed. */
  readonly error?: Error;
}

export interface NotificationsOptions<Name extends ToldName = ToldName> {
  /** Only these; `stream/reset` in any case, since it says that some are missing. */
  readonly methods?: readonly Name[] | undefined;
  /** So many may wait to be taken; then the iterator ends with a `SlowConsumerError`. Default 10,000. */
  readonly buffer?: number | undefined;
}

/** Where a connection is and whether it is alive is seen by these: they are asked for whatever is wanted. */
const OWN: ReadonlySet<string> = new Set(["inbox/counts", "stream/heartbeat", "stream/reset"]);

/** What the server is asked to tell. */
export function viewOf({ observe = false, conversation = true, opt_out = [] }: ClientOptions) {
  return { observe, conversation, opt_out: opt_out.filter((name) => !OWN.has(name)) };
}

/** The same as a query, and from where on. */
export function queryOf(options: ClientOptions, cursor: Cursor | null): URLSearchParams {
  const { observe, conversation, opt_out } = viewOf(options);
  const query = new URLSearchParams({ observe: String(observe), conversation: String(conversation) });
  if (opt_out.length > 0) query.set("opt_out", opt_out.join(","));
  if (cursor === null) return query;
  query.set("journal_id", cursor.journal_id);
  query.set("after_seq", String(cursor.after_seq));
  if (cursor.after_part !== undefined) query.set("after_part", String(cursor.after_part));
  return query;
}

/** Throws where it cannot be a server's. */
export function mustBeAddress(url: string): void {
  try {
    if (/^https?:$/.test(new URL(url).protocol)) return;
  } catch {
    // It is none at all.
  }
  throw new InvalidInputError("url", "must be the address of a server, like http://127.0.0.1:4747");
}
