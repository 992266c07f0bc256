/** A pass-through in front of a server: what goes by is recorded as it is, byte for byte. */
import { createServer, request as forward, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { type Fixture, type FixtureResponse, LLMock, type MockServerOptions } from "@copilotkit/aimock";
import { onTestFinished } from "vitest";

export interface RecordedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Recorder {
  readonly url: string;
  /** In the order in which they were complete. */
  readonly requests: readonly RecordedRequest[];
  /** How many answers the client has left before their end. */
  readonly abandoned: () => number;
}

/** Passes everything on to `target` until the test is over; `headers` are added to what is answered. */
export async function recordBefore(target: string, headers: Record<string, string> = {}): Promise<Recorder> {
  const requests: RecordedRequest[] = [];
  let abandoned = 0;
  const server = createServer((incoming, answer) => {
    const pieces: Buffer[] = [];
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => {
      const body = Buffer.concat(pieces);
      const path = incoming.url ?? "/";
      requests.push({ path, headers: incoming.headers, body: body.toString("utf8") });
      const onward = forward(
        new URL(path, target),
        { method: incoming.method, headers: { ...incoming.headers, host: new URL(target).host } },
        (response) => {
          answer.writeHead(response.statusCode ?? 502, { ...response.headers, ...headers });
          response.pipe(answer);
          response.on("error", () => answer.destroy());
          response.on("aborted", () => answer.destroy());
        },
      );
      onward.on("error", () => answer.destroy());
      answer.on("close", () => {
        if (answer.writableFinished) return;
        abandoned += 1;
        onward.destroy();
      });
      onward.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    abandoned: () => abandoned,
  };
}

export interface ModelServer {
  /** Without a path: the OpenAI SDK wants `/v1` behind it, the Anthropic SDK nothing. */
  readonly url: string;
  readonly recorder: Recorder;
  /** What is answered next, in this order; then "All right." for ever. */
  readonly answers: FixtureResponse[];
  /** What each answer has beside its own headers, from now on. */
  readonly headers: Record<string, string>;
}

/** A server that speaks the protocols of the model providers, behind a recorder. */
export async function modelServer(
  options: MockServerOptions = {},
  stream: Pick<Fixture, "latency" | "chunkSize" | "truncateAfterChunks" | "disconnectAfterMs"> = {},
): Promise<ModelServer> {
  const mock = new LLMock({ port: 0, host: "127.0.0.1", ...options });
  const answers: FixtureResponse[] = [];
  mock.addFixture({ match: {}, response: () => answers.shift() ?? { content: "All right." }, ...stream });
  await mock.start();
  onTestFinished(() => mock.stop());
  const headers: Record<string, string> = {};
  const recorder = await recordBefore(mock.url, headers);
  return { url: recorder.url, recorder, answers, headers };
}
