/** The server: one Tidings, HTTP and WebSocket in front of it, and an orderly end. */
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { newTokenText } from "../access/tokens.js";
import { type StoreError, UnreachableError } from "../domain/errors.js";
import { isoTime } from "../domain/time.js";
import { systemClock } from "../platform/clock.js";
import { every, pause } from "../platform/timers.js";
import { type AgentView, type OpenOptions, Tidings } from "../tidings.js";
import { Access } from "./access.js";
import { Dispatcher } from "./dispatcher.js";
import { Gate, hostInUrl } from "./gate.js";
import { Http, type HttpParts } from "./http.js";
import { Hub } from "./hub.js";
import { Ingest } from "./ingest.js";
import { DEFAULT_HOST, DEFAULT_PORT, SERVER_LIMITS, type ServerLimits } from "./limits.js";
import { RateLimit } from "./rate.js";
import { removeServerFile, writeServerFile } from "./server_file.js";
import { readWithoutUpgrade, Upgrade, wantsWebSocket } from "./upgrade.js";
import { Waits } from "./waits.js";

export interface ServeOptions extends Omit<OpenOptions, "mode" | "onFailure"> {
  data: string;
  /** Default 127.0.0.1: this machine only. */
  host?: string;
  /** Default 4747; 0 takes a free one. */
  port?: number;
  /** Names under which it is reached beside its own, for a proxy in front. */
  allow_hosts?: readonly string[];
  /** Pages from elsewhere that may speak to it. */
  allow_origins?: readonly string[];
  /** The server's own token, admin's; without it a new one for each start. */
  token?: string;
  limits?: Partial<ServerLimits>;
  version?: string;
  /** A defect, or a failure that concerns nobody in particular. */
  onDefect?: (error: unknown) => void;
}

/** From taking the file away to taking no more connections. */
const GRACE_MS = 50;
const HANG_UP_MS = 20;

export class TidingsServer {
  readonly url: string;
  readonly token: string;
  /** What the hosted agent runs on; null if none is hosted. */
  readonly agent: AgentView | null;
  /** Resolves when the storage has failed: nothing is taken any more, and the process should end. */
  readonly failed: Promise<StoreError>;
  readonly #tidings: Tidings;
  readonly #server: Server;
  readonly #hub: Hub;
  readonly #http: Http;
  readonly #folder: string;
  readonly #limits: ServerLimits;
  readonly #state: { ready: boolean };
  readonly #sockets: ReadonlySet<Socket>;
  #closing: Promise<void> | undefined;

  private constructor(parts: {
    url: string;
    token: string;
    failed: Promise<StoreError>;
    tidings: Tidings;
    server: Server;
    hub: Hub;
    http: Http;
    folder: string;
    limits: ServerLimits;
    state: { ready: boolean };
    sockets: ReadonlySet<Socket>;
  }) {
    this.url = parts.url;
    this.token = parts.token;
    this.failed = parts.failed;
    this.agent = parts.tidings.agent;
    this.#tidings = parts.tidings;
    this.#server = parts.server;
    this.#hub = parts.hub;
    this.#http = parts.http;
    this.#folder = parts.folder;
    this.#limits = parts.limits;
    this.#state = parts.state;
    this.#sockets = parts.sockets;
  }

  /** Opens the folder as its one writer, listens, and says where in `server.json`. */
  static async start(options: ServeOptions): Promise<TidingsServer> {
    const { data, host = DEFAULT_HOST, port = DEFAULT_PORT, version = "" } = options;
    const limits = { ...SERVER_LIMITS, ...options.limits };
    const onDefect = options.onDefect ?? (() => {});
    const token = options.token ?? newTokenText();
    let fail: (error: StoreError) => void = () => {};
    const failed = new Promise<StoreError>((resolve) => {
      fail = resolve;
    });
    const tidings = await Tidings.open({ ...openOptions(options), onFailure: fail });
    try {
      const server = createServer({
        headersTimeout: Math.min(limits.headersMs, limits.requestMs),
        requestTimeout: limits.requestMs,
        connectionsCheckingInterval: Math.min(5_000, limits.headersMs),
      });
      const sockets = new Set<Socket>();
      server.on("connection", (socket) => {
        sockets.add(socket);
        socket.on("close", () => sockets.delete(socket));
      });
      const bound = await listen(server, host, port);
      const state = { ready: true };
      const hub = new Hub(tidings, limits, onDefect);
      const rate = new RateLimit(systemClock, limits.ratePerSecond, limits.rateBurst);
      const started_at = isoTime(systemClock.wall());
      const waits = new Waits(limits.waits, limits.waitsPerUser);
      const runtime = { tidings, version, started_at, connections: () => hub.size, waits };
      const parts: HttpParts = {
        gate: new Gate({
          host,
          port: bound,
          allowHosts: options.allow_hosts ?? [],
          allowOrigins: options.allow_origins ?? [],
        }),
        access: new Access(tidings, token),
        dispatcher: new Dispatcher(runtime, rate, limits.callsPerBatch, onDefect),
        ingest: new Ingest(limits, rate),
        limits,
        refusals: new RateLimit(systemClock, limits.refusalsPerSecond, limits.refusalsBurst),
        version,
        ready: () => state.ready,
        onDefect,
      };
      const http = new Http(parts);
      const upgrade = new Upgrade(parts, http, hub, systemClock);
      server.on("request", (request, response) => void http.handle(request, response));
      server.on("upgrade", (request, socket, head) => {
        if (wantsWebSocket(request)) void upgrade.handle(request, socket, head);
        else readWithoutUpgrade(server, request, socket, head);
      });
      // A connection that could not be taken, for want of descriptors: those that are there go on.
      server.on("error", onDefect);
      const url = `http://${hostInUrl(shownHost(host))}:${bound}`;
      writeServerFile(data, { url, token, pid: process.pid });
      const made = { url, token, failed, tidings, server, hub, http, folder: data, limits, state, sockets };
      return new TidingsServer(made);
    } catch (error) {
      await tidings.close();
      throw error;
    }
  }

  /** Takes nothing new, ends what is under way, commits what waits, and lets the folder go. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  async #drain(): Promise<void> {
    this.#state.ready = false;
    removeServerFile(this.#folder, this.token);
    this.#hub.close();
    this.#http.end();
    // Whoever has just read the file still gets in: a connection that comes as the door closes would be reset.
    await pause(GRACE_MS);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const stopHangingUp = every(HANG_UP_MS, async () => this.#hangUp());
    const given_up = new AbortController();
    await Promise.race([closed, pause(this.#limits.drainMs, given_up.signal)]);
    given_up.abort();
    stopHangingUp();
    this.#server.closeAllConnections();
    await this.#tidings.close();
  }

  /** Ends connections that are kept for a next request, and those that browsers open before they have a first one. */
  #hangUp(): void {
    this.#server.closeIdleConnections();
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy();
  }
}

/** Without what is the server's alone. */
function openOptions(options: ServeOptions): OpenOptions {
  const { data, subscribers, subscribers_folder, config_file, watch, onProblem } = options;
  const { policy, wait_ms, bytes_max, clock, agent } = options;
  const files = { subscribers, subscribers_folder, config_file, watch, onProblem };
  const given = { data, ...files, policy, wait_ms, bytes_max, clock, agent };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen(port, host, () => {
      server.removeAllListeners("error");
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const where = `${hostInUrl(host)}:${port}`;
  switch (error.code) {
    case "EADDRINUSE":
      return new UnreachableError(`${where} is taken by another program; choose another --port, or 0 for a free one`);
    case "EACCES":
      return new UnreachableError(`${where} may not be used by this user; choose a --port of 1024 or more`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new UnreachableError(`${hostInUrl(host)} is no address of this machine; see --host`);
    default:
      return error;
  }
}

/** An address that a browser can open. */
function shownHost(host: string): string {
  return host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
}
