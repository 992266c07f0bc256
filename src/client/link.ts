/** One connection to a server: frames come, and calls may go. */
import { UnreachableError } from "../domain/errors.js";
import type { Frame } from "./chain.js";
import { jsonOf, type RpcAnswer } from "./rpc.js";

export interface Target {
  readonly url: string;
  readonly token: string;
  /** What is wanted, and from where on. */
  readonly query: URLSearchParams;
}

/** A notification, or the answer to a call. */
export type Incoming = Partial<Frame> & RpcAnswer & { readonly id?: string | number | null };

export interface LinkEvents {
  /** The server has agreed to it. */
  opened(): void;
  took(incoming: Incoming): void;
  /** Once, unless it was ended by us. */
  ended(error: Error): void;
}

export interface Link {
  /** Null where nothing can be said: calls go by other ways. */
  readonly say: ((text: string) => void) | null;
  /** Nothing more is heard of it. `politely`: the server is told. */
  end(politely: boolean): void;
}

export type OpenLink = (target: Target, events: LinkEvents) => Link;

/** The address of a path, with what is wanted. */
export function addressOf({ url, query }: Target, path: string): URL {
  const address = new URL(path, url);
  address.search = query.toString();
  return address;
}

/** Undefined for what is no frame. */
export function frameOf(text: string): Incoming | undefined {
  const value = jsonOf(text);
  return typeof value === "object" && value !== null ? value : undefined;
}

/** What answered says what no Tidings says. */
export function foreignError(url: string, what: string): UnreachableError {
  return new UnreachableError(`${url} answers ${what}; is it a Tidings server?`, { why: "foreign" });
}
