/** A server at an address, over streamable HTTP, and what becomes of the connections to it. */
import type { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { later } from "../platform/timers.js";
import { MCP_LIMITS } from "./limits.js";
import type { Way } from "./settings.js";
import { wordsOf } from "./words.js";

export interface HttpOptions {
  readonly way: Extract<Way, { kind: "http" }>;
  readonly Transport: typeof StreamableHTTPClientTransport;
  /** A connection was cut: something may be wrong. What was asked for by it, and not answered, fails with `LOST`. */
  readonly doubted: () => void;
}

/** The code of a request that did not get through, or whose answer did not. */
export const LOST = -32_900;

/** Of the stream on which the server speaks first; what was cut in the middle of an answer is not taken up again. */
const REOPENING = {
  initialReconnectionDelay: 1_000,
  maxReconnectionDelay: 30_000,
  reconnectionDelayGrowFactor: 2,
  // For as long as the server is there.
  maxRetries: Number.MAX_SAFE_INTEGER,
};

/** Throws if a header's variable is not set. */
export function httpTransport({ way, Transport, doubted }: HttpOptions): StreamableHTTPClientTransport {
  const watched = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const id = init?.method === "POST" ? askedBy(init.body) : undefined;
    const broke = (error: unknown) => {
      if (init?.signal?.aborted === true) return;
      // Nobody else's request is lost by it.
      if (id !== undefined)
        transport.onmessage?.({ jsonrpc: "2.0", id, error: { code: LOST, message: wordsOf(error) } });
      doubted();
    };
    let response: Response;
    try {
      response = await fetch(url, init);
    } catch (error) {
      broke(error);
      throw error;
    }
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    return new Response(watchedBody(body, isStream(headers), broke), { status, statusText, headers });
  };
  const transport = new Transport(new URL(way.url), {
    fetch: watched,
    requestInit: { headers: headersOf(way) },
    reconnectionOptions: REOPENING,
    // A server may say how soon; not that it be all the time.
    reconnectionScheduler: (reopen, delayMs) => later(Math.max(delayMs, REOPENING.initialReconnectionDelay), reopen),
  });
  return transport;
}

/** The id of the request that is sent; undefined where no answer is waited for. */
function askedBy(body: unknown): string | number | undefined {
  if (typeof body !== "string") return undefined;
  const { id, method }: { id?: string | number; method?: string } = JSON.parse(body);
  return method === undefined ? undefined : id;
}

function headersOf({ headers_env }: HttpOptions["way"]): Record<string, string> {
  return Object.fromEntries(
    [...headers_env].map(([name, variable]) => {
      const value = process.env[variable];
      if (value === undefined || value.trim() === "")
        throw new Error(`the environment variable ${variable}, for its header ${name}, is not set`);
      return [name, value.trim()];
    }),
  );
}

/** As it comes, and no message in it larger than the limit. */
function watchedBody(
  body: ReadableStream<Uint8Array>,
  stream: boolean,
  broke: (error: unknown) => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  let bytes = 0;
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        bytes = stream ? sinceMessageEnd(bytes, value) : bytes + value.byteLength;
        if (bytes > MCP_LIMITS.messageChars) {
          void reader.cancel().catch(() => undefined);
          throw new Error(`it sent a message of more than ${MCP_LIMITS.messageChars} bytes`);
        }
        controller.enqueue(value as Uint8Array<ArrayBuffer>);
      } catch (error) {
        broke(error);
        controller.error(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function isStream(headers: Headers): boolean {
  return headers.get("content-type")?.includes("text/event-stream") === true;
}

/** An empty line ends a message of a stream of events. */
function sinceMessageEnd(before: number, piece: Uint8Array): number {
  const text = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
  const end = Math.max(text.lastIndexOf("\n\n"), text.lastIndexOf("\r\n\r\n"), text.lastIndexOf("\r\r"));
  return end < 0 ? before + piece.byteLength : piece.byteLength - end;
}
