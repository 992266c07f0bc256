/**
 * Requests that are none, or do not come to their end in time. Node would answer and end them by itself, but takes the
 * body of a stream, which is open for as long as its client likes, for one that is late.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { newNonce } from "../platform/secret.js";
import type { Log } from "./log.js";
import type { Pipelines } from "./pipelines.js";

const ANSWERS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};
const TIMEOUT = "ERR_HTTP_REQUEST_TIMEOUT";

export function endBadRequests(server: Server, log: Log, pipelines: Pipelines): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    const begun = pipelines.answering(socket)?.headersSent === true;
    if (error.code === TIMEOUT && begun) return;
    if (socket.writable && !begun) {
      const line = ANSWERS[error.code ?? ""] ?? "400 Bad Request";
      const request_id = newNonce();
      socket.write(`HTTP/1.1 ${line}\r\nConnection: close\r\nX-Request-Id: ${request_id}\r\n\r\n`);
      log.say("debug", `what is no request was refused: ${line}`, {
        request_id,
        status: Number.parseInt(line, 10),
        code: error.code ?? null,
      });
    }
    socket.destroySoon();
  });
}
