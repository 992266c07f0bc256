/** Lines of JSON over HTTP: those of the response are read while those of the request are written. */
import { TidingsError, UnreachableError } from "../domain/errors.js";
import { addressOf, foreignError, frameOf, type Link, type LinkEvents, type Target } from "./link.js";
import { causeOf, jsonOf, reportedError, resultOf } from "./rpc.js";

const TYPE = "application/x-ndjson";
/** A server sends no line that is near it. */
const LINE_MAX = 16_777_216;

export function openNdjson(target: Target, events: LinkEvents): Link {
  const gone = new AbortController();
  const lines = canSpeak() ? new Lines() : null;
  const over = () => gone.signal.aborted;
  let words = "does not answer";
  const finish = (error: Error) => {
    if (over()) return;
    gone.abort();
    events.ended(error);
  };
  const read = async () => {
    const response = await fetch(addressOf(target, "/rpc/stream"), {
      method: lines === null ? "GET" : "POST",
      headers: { authorization: `Bearer ${target.token}`, ...(lines === null ? {} : { "content-type": TYPE }) },
      // As Node has it, "half" is the name of what is whole.
      ...(lines === null ? {} : { body: lines.body, duplex: "half" as const }),
      signal: gone.signal,
    });
    if (response.status !== 200 || response.body === null)
      throw reportedError(jsonOf(await response.text())) ?? foreignError(target.url, String(response.status));
    if (over()) return;
    words = "tells no more";
    events.opened();
    for await (const line of linesOf(response.body)) {
      if (over()) return;
      const incoming = frameOf(line);
      if (incoming === undefined) throw foreignError(target.url, "what is no JSON");
      // The last line says why it is the last.
      if (incoming.id === null && incoming.error !== undefined) resultOf(incoming);
      events.took(incoming);
    }
    throw new Error("the connection has ended");
  };
  read().catch((error: unknown) =>
    finish(
      error instanceof TidingsError
        ? error
        : new UnreachableError(`${target.url} ${words}: ${causeOf(error)}`, { why: "lost", cause: error }),
    ),
  );
  return {
    say: lines === null ? null : (text) => lines.say(text),
    end() {
      lines?.end();
      gone.abort();
    },
  };
}

/** What is written while the response is read. */
class Lines {
  readonly body: ReadableStream<Uint8Array>;
  readonly #encoder = new TextEncoder();
  #out: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor() {
    this.body = new ReadableStream({
      start: (out) => {
        this.#out = out;
      },
      cancel: () => {
        this.#out = undefined;
      },
    });
    // Without a first piece nothing of the request would be sent.
    this.say("");
  }

  say(text: string): void {
    this.#out?.enqueue(this.#encoder.encode(`${text}\n`));
  }

  end(): void {
    this.#out?.close();
    this.#out = undefined;
  }
}

/** The body of a request can be written while its response is read: not in browsers. */
function canSpeak(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node !== undefined;
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const text = rest + decoder.decode(value, { stream: true });
    let start = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      if (end > start) yield text.slice(start, end);
      start = end + 1;
    }
    rest = text.slice(start);
    if (rest.length > LINE_MAX) throw new Error("a line has no end");
  }
}
