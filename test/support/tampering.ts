/** A proxy between a client and a server that knows their messages: some do not arrive, or arrive twice. */
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { WebSocket, WebSocketServer } from "ws";

/** What arrives of a message of the server: it, nothing, or more. */
export type Tamper = (message: string) => readonly string[];

export class TamperingProxy {
  tamper: Tamper = (message) => [message];
  /** WebSockets so far. */
  connections = 0;
  #target = "";
  readonly #server: Server;
  readonly #sockets: WebSocketServer;

  private constructor() {
    this.#sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "tidings.v1" });
    this.#server = createServer((incoming, outgoing) => {
      const { method, url, headers } = incoming;
      const passed = request(new URL(url ?? "/", this.#target), { method, headers: this.#own(headers) }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(outgoing);
      });
      passed.on("error", () => outgoing.destroy());
      incoming.pipe(passed);
    });
    this.#server.on("upgrade", (incoming: IncomingMessage, socket, head) =>
      this.#sockets.handleUpgrade(incoming, socket, head, (client) => this.#join(incoming, client)),
    );
  }

  /** It is gone when the test is over. */
  static async start(url: string): Promise<TamperingProxy> {
    const proxy = new TamperingProxy();
    proxy.#target = url;
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      proxy.#server.close();
      proxy.#server.closeAllConnections();
      for (const socket of proxy.#sockets.clients) socket.terminate();
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #own(headers: IncomingMessage["headers"]): IncomingMessage["headers"] {
    return { ...headers, host: new URL(this.#target).host };
  }

  #join({ url, headers }: IncomingMessage, client: WebSocket): void {
    this.connections += 1;
    const server = new WebSocket(
      new URL(url ?? "/", this.#target.replace("http", "ws")),
      String(headers["sec-websocket-protocol"]).split(/, */),
    );
    const early: string[] = [];
    client.on("message", (data) => {
      if (server.readyState === WebSocket.OPEN) server.send(String(data));
      else early.push(String(data));
    });
    server.on("open", () => {
      for (const message of early) server.send(message);
    });
    server.on("message", (data) => {
      for (const message of this.tamper(String(data))) client.send(message);
    });
    server.on("error", () => client.terminate());
    server.on("close", () => client.terminate());
    client.on("error", () => server.terminate());
    client.on("close", () => server.terminate());
  }
}
