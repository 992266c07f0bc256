/** Streams over HTTP: `/rpc/stream`, whose client may speak while it listens, and `/sse`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller } from "./access.js";
import { readCalls } from "./calls.js";
import { Connection, type ConnectionParts } from "./connection.js";
import { type Framing, HttpStream, NDJSON, SERVER_SENT_EVENTS } from "./http_stream.js";
import type { Hub } from "./hub.js";
import type { Requests } from "./requests.js";
import { type Admission, askedOf } from "./stream_request.js";
import { WHOLE_VIEW } from "./view.js";

export class Streams {
  readonly #parts: ConnectionParts;
  readonly #hub: Hub;
  readonly #admission: Admission;
  readonly #requests: Requests;

  constructor(parts: ConnectionParts, hub: Hub, admission: Admission, requests: Requests) {
    this.#parts = parts;
    this.#hub = hub;
    this.#admission = admission;
    this.#requests = requests;
  }

  /** What happens, as lines. */
  listen(caller: Caller, request: IncomingMessage, response: ServerResponse): void {
    this.#open(caller, request, response, NDJSON);
  }

  serverSentEvents(caller: Caller, request: IncomingMessage, response: ServerResponse): void {
    this.#open(caller, request, response, SERVER_SENT_EVENTS);
  }

  /** The same, and calls in the body are answered as they come. It ends when the body does, and all are answered. */
  async converse(caller: Caller, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const connection = this.#open(caller, request, response, NDJSON);
    try {
      // Left early, the rest of the body must not take the answers with it.
      const body = request.iterator({ destroyOnReturn: false });
      await readCalls(body, connection, this.#parts.limits.messageBytes);
    } catch {
      // It broke off in the middle of the body: nobody is there to be answered.
      response.destroy();
    }
  }

  #open(caller: Caller, request: IncomingMessage, response: ServerResponse, framing: Framing): Connection {
    const { limits, clock } = this.#parts;
    const { view, cursor } = askedOf(request, WHOLE_VIEW);
    this.#admission.take(caller);
    const transport = new HttpStream(response, framing, limits, clock);
    const connection = new Connection(transport, caller, view, this.#parts, this.#requests.idOf(request));
    void this.#hub.add(connection, cursor);
    return connection;
  }
}
