/** What a server tells its client by itself, as it happens: a WebSocket that is read. */
import type { RawData, WebSocket } from "ws";
import { UnreachableError } from "../domain/errors.js";
import { type Endpoint, errorOf } from "./rpc.js";

/** A notification of JSON-RPC. */
export interface Told {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface SubscribeOptions {
  /** Also what the agent was told. */
  readonly observe?: boolean;
}

interface Frame {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Told["params"];
  readonly error?: { readonly message: string; readonly data?: Parameters<typeof errorOf>[0] };
}

const INITIALIZE = "initialize";

/** From when it is open to when it is closed; what was there before is not told. */
export class Subscription {
  /** Resolves when nothing more comes, with why; undefined if it was closed by us. */
  readonly ended: Promise<UnreachableError | undefined>;
  readonly #socket: WebSocket;
  #closed = false;

  private constructor(socket: WebSocket, url: string) {
    this.#socket = socket;
    this.ended = new Promise((resolve) => {
      socket.on("close", (_code, reason) => {
        const why = reason.toString() || "the connection is gone";
        resolve(this.#closed ? undefined : new UnreachableError(`${url} tells no more: ${why}`, { why: "lost" }));
      });
    });
  }

  /** Resolves when the server has agreed: what happens from then on is told. */
  static async open(
    { url, token }: Endpoint,
    { observe = false }: SubscribeOptions,
    tell: (told: Told) => void,
  ): Promise<Subscription> {
    // Loaded here: whoever only calls needs no package.
    const { WebSocket } = await import("ws");
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}/ws`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const subscription = new Subscription(socket, url);
    let agreed = false;
    await new Promise<void>((resolve, reject) => {
      const params = { observe, conversation: true };
      socket.on("open", () =>
        socket.send(JSON.stringify({ jsonrpc: "2.0", id: INITIALIZE, method: "initialize", params })),
      );
      socket.on("error", (error) => reject(new UnreachableError(`${url} does not answer: ${error.message}`)));
      socket.on("unexpected-response", (_request, response) => {
        reject(new UnreachableError(`${url} refuses the WebSocket with ${response.statusCode}`, { why: "foreign" }));
        socket.terminate();
      });
      socket.on("close", () => reject(new UnreachableError(`${url} closed the WebSocket at once`)));
      socket.on("message", (data) => {
        const { id, method, params: told, error } = JSON.parse(textOf(data)) as Frame;
        if (method !== undefined && agreed) tell({ method, params: told ?? {} });
        if (id !== INITIALIZE) return;
        agreed = true;
        if (error === undefined) resolve();
        else reject(errorOf({ code: "internal", ...error.data, message: error.message }));
      });
    }).catch((error: unknown) => {
      subscription.close();
      throw error;
    });
    return subscription;
  }

  close(): void {
    this.#closed = true;
    this.#socket.close();
  }
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString();
  return (data instanceof ArrayBuffer ? Buffer.from(data) : data).toString();
}
