/** The server: one Tidings, HTTP and WebSocket in front of it, and an orderly end. */
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { type StoreError, UnreachableError } from "../domain/errors.js";
import { isoTime } from "../domain/time.js";
import { systemClock } from "../platform/clock.js";
import { every, pause } from "../platform/timers.js";
import { Turns } from "../platform/turns.js";
import { type AgentView, type OpenOptions, Tidings } from "../tidings.js";
import { Access, type Caller } from "./access.js";
import { Addresses } from "./addresses.js";
import { endBadRequests } from "./bad_requests.js";
import { readCalls } from "./calls.js";
import { Connection, type ConnectionParts } from "./connection.js";
import { Dispatcher } from "./dispatcher.js";
import { FiguresPage } from "./figures.js";
import { Gate, hostInUrl } from "./gate.js";
import { Http, type HttpParts } from "./http.js";
import { Hub } from "./hub.js";
import { Hooks } from "./ingest/hooks.js";
import { Ingest } from "./ingest/ingest.js";
import { checkLimits, DEFAULT_HOST, DEFAULT_PORT, SERVER_LIMITS, type ServerLimits } from "./limits.js";
import { Log, type OnDefect } from "./log.js";
import type { Runtime } from "./method.js";
import { Metrics } from "./metrics.js";
import { ownToken } from "./own_token.js";
import { Pipelines } from "./pipelines.js";
import { RateLimit } from "./rate.js";
import { Requests } from "./requests.js";
import { Rest } from "./rest.js";
import { removeServerFile, writeServerFile } from "./server_file.js";
import { StdioTransport } from "./stdio.js";
import { Admission } from "./stream_request.js";
import { Streams } from "./streams.js";
import { CLOSE } from "./transport.js";
import { readWithoutUpgrade, Upgrade, wantsWebSocket } from "./upgrade.js";
import { WHOLE_VIEW } from "./view.js";
import { Waits } from "./waits.js";
import { WebApp } from "./web_app.js";

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
  /** The server's own token, admin's; without it the one that is kept in the data folder. */
  token?: string;
  /** The kept one is replaced: whoever has it is shut out. */
  new_token?: boolean;
  /** A token that opens `/metrics` and nothing else; without it admin's alone does. */
  metrics_token?: string;
  limits?: Partial<ServerLimits>;
  version?: string;
  /** Where the server says what happens; without it only to those who ask over the wire. */
  log?: Log;
  /** A defect, or a failure that concerns nobody in particular. */
  onDefect?: (error: unknown) => void;
}

const HANG_UP_MS = 20;

/** What the process that serves may do itself. */
interface Own {
  readonly connections: ConnectionParts;
  readonly caller: Caller;
  readonly rest: Rest;
  readonly log: Log;
}

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
  readonly #own: Own;
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
    own: Own;
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
    this.#own = parts.own;
  }

  /** Opens the folder as its one writer, listens, and says where in `server.json`. */
  static async start(options: ServeOptions): Promise<TidingsServer> {
    const { data, host = DEFAULT_HOST, port = DEFAULT_PORT, version = "" } = options;
    const ownLimits = checkLimits(options.limits ?? {});
    const log = options.log ?? new Log({ level: "error", write: () => {} });
    const onDefect: OnDefect = (error, fields) => {
      log.defect(error, fields);
      options.onDefect?.(error);
    };
    const onProblem = (line: string) => {
      log.say("warn", line);
      options.onProblem?.(line);
    };
    let fail: (error: StoreError) => void = () => {};
    const failed = new Promise<StoreError>((resolve) => {
      fail = resolve;
    });
    const tidings = await Tidings.open({ ...openOptions({ ...options, onProblem }), onFailure: fail });
    try {
      const token = options.token ?? ownToken(data, options.new_token ?? false);
      const limits = { ...SERVER_LIMITS, ...tidings.serverLimits, ...ownLimits };
      const server = createServer({
        maxHeaderSize: limits.headerBytes,
        keepAliveTimeout: limits.keepAliveMs,
        headersTimeout: Math.min(limits.headersMs, limits.requestMs),
        requestTimeout: limits.requestMs,
        connectionsCheckingInterval: Math.min(5_000, limits.headersMs),
      });
      const sockets = new Set<Socket>();
      const addresses = new Addresses(limits.connectionsPerAddress);
      // One for all of them: there may be thousands.
      function leave(this: Socket): void {
        sockets.delete(this);
        addresses.leave(this);
      }
      server.on("connection", (socket) => {
        // One that is read again, without the upgrade that it asked for.
        if (sockets.has(socket)) return;
        sockets.add(socket);
        socket.on("close", leave);
        addresses.take(socket);
      });
      const bound = await listen(server, host, port);
      const state = { ready: true };
      const metrics = new Metrics();
      const turns = new Turns();
      const hub = new Hub({ tidings, limits, onDefect, metrics, turns });
      const rate = new RateLimit(systemClock, limits.ratePerSecond, limits.rateBurst, () => metrics.limited.add());
      const startedMs = systemClock.wall();
      const waits = new Waits(limits.waits, limits.waitsPerUser);
      const rest = new Rest(tidings, log);
      const runtime: Runtime = {
        tidings,
        version,
        started_at: isoTime(startedMs),
        connections: () => hub.size,
        canResume: (cursor) => hub.canResume(cursor),
        waits,
        events: metrics.events,
        log,
        rest,
      };
      const dispatcher = new Dispatcher(runtime, rate, limits, onDefect);
      const connections = { dispatcher, limits, clock: systemClock, turns, audience: hub, log, onDefect };
      const access = new Access(tidings, token);
      const ingest = new Ingest(limits, rate, metrics.events);
      const ready = () => state.ready;
      const admission = new Admission(hub, limits, rate, ready);
      const requests = new Requests(log, metrics, systemClock);
      const parts: HttpParts = {
        gate: new Gate({
          host,
          port: bound,
          allowHosts: options.allow_hosts ?? [],
          allowOrigins: options.allow_origins ?? [],
        }),
        addresses,
        access,
        dispatcher,
        streams: new Streams(connections, hub, admission, requests),
        ingest,
        hooks: new Hooks({ tidings, ingest, clock: systemClock, log, limits, env: process.env }),
        requests,
        metrics,
        figures: new FiguresPage({
          ...{ tidings, metrics, ingest, clock: systemClock, version, started_at: startedMs, ready },
          connections: () => hub.size,
          resuming: () => hub.resuming,
          mostWaiting: () => hub.mostWaiting,
          token: options.metrics_token ?? null,
        }),
        web: new WebApp(),
        log,
        limits,
        refusals: new RateLimit(systemClock, limits.refusalsPerSecond, limits.refusalsBurst),
        version,
        ready,
        onDefect,
      };
      parts.hooks.checkSecrets();
      const http = new Http(parts);
      const upgrade = new Upgrade(parts, http, hub, connections, admission);
      const pipelines = new Pipelines(limits.requestsWaiting);
      server.on("request", (request, response) =>
        pipelines.take(request, response, () => void http.handle(request, response)),
      );
      endBadRequests(server, log, pipelines);
      server.on("upgrade", (request, socket, head) => {
        // What is being answered on it would be cut in two.
        if (pipelines.answering(socket) !== undefined) socket.destroy();
        else if (wantsWebSocket(request)) void upgrade.handle(request, socket, head);
        else readWithoutUpgrade(server, request, socket, head);
      });
      // A connection that could not be taken, for want of descriptors: those that are there go on.
      server.on("error", (error) => onDefect(error));
      const url = `http://${hostInUrl(shownHost(host))}:${bound}`;
      writeServerFile(data, { url, token, pid: process.pid });
      log.say("info", "ready", { url, pid: process.pid, version, agent: tidings.agent?.model ?? null });
      const own = { connections, caller: access.own(), rest, log };
      const made = { url, token, failed, tidings, server, hub, http, folder: data, limits, state, sockets, own };
      return new TidingsServer(made);
    } catch (error) {
      await tidings.close();
      throw error;
    }
  }

  /**
   * Calls as lines of `input`, answers and what happens as lines of `output`, for whoever has started this process: the
   * same as its own token may do. Resolves when the input is at its end and all calls are answered.
   */
  async converse(input: Readable, output: Writable): Promise<void> {
    const { connections, caller } = this.#own;
    const transport = new StdioTransport(output);
    const connection = new Connection(transport, caller, WHOLE_VIEW, connections);
    void this.#hub.add(connection);
    const ended = new Promise<void>((resolve) => input.on("close", resolve).on("end", resolve));
    try {
      await readCalls(input.iterator({ destroyOnReturn: false }), connection, this.#limits.messageBytes);
    } catch {
      // It broke off: as good as its end.
      connection.close(CLOSE.done, "");
    }
    // One that does not read what it is told is told no more; others are served for as long as it keeps this process.
    input.resume();
    await ended;
  }

  /** Takes nothing new, ends what is under way, commits what waits, and lets the folder go. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  async #drain(): Promise<void> {
    const { rest, log } = this.#own;
    this.#state.ready = false;
    log.say("info", "closing", { connections: this.#hub.size });
    removeServerFile(this.#folder, this.token);
    rest.end();
    const drained = this.#hub.drain();
    this.#http.end();
    // Whoever has just read the file still gets in: a connection that comes as the door closes would be reset.
    await pause(this.#limits.drainDelayMs);
    this.#http.shut();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const stopHangingUp = every(HANG_UP_MS, async () => this.#hangUp());
    const given_up = new AbortController();
    const whole = await Promise.race([
      Promise.all([closed, drained]).then(() => true),
      pause(this.#limits.drainMs, given_up.signal).then(() => false),
    ]);
    given_up.abort();
    stopHangingUp();
    this.#hub.close();
    if (!whole) log.say("warn", `requests were cut off that were still under way after ${this.#limits.drainMs} ms`);
    this.#server.closeAllConnections();
    await this.#tidings.close();
    log.say("info", "closed");
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
