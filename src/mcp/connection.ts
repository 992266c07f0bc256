/** One connection to a server, from its first word to its last. */
import type { Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import { LOG_LEVELS, type LogLevel } from "../config/mcp.js";
import type { JsonObject } from "../domain/json.js";
import { pause } from "../platform/timers.js";
import type { Guard } from "../runtime/handles/shell/guard.js";
import { httpTransport, LOST } from "./http.js";
import { MCP_LIMITS, MCP_TIMES } from "./limits.js";
import { resultSchema, resultText } from "./results.js";
import type { ServerSettings } from "./settings.js";
import { StdioTransport } from "./stdio.js";
import { shortWords, wordsOf } from "./words.js";

/** What a server says by itself. */
export interface Hearing {
  toolsChanged(): void;
  resourceUpdated(uri: string): void;
  logged(level: LogLevel, words: string): void;
}

/** `failed`: it cannot be reached; why is why the connection is over. */
export type Pong = "answered" | "missed" | "failed";

/** The server has answered that it cannot, or will not. */
export class ToolFailure extends Error {}

/** The call, or its answer, did not get through; of the server itself that says nothing yet. */
export class LostCall extends Error {}

const pageSchema = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const logSchema = z.looseObject({
  level: z.enum(LOG_LEVELS),
  logger: z.string().optional(),
  data: z.unknown().optional(),
});
const uriSchema = z.looseObject({ uri: z.string() });
const anySchema = z.looseObject({});

/** Loaded when a server is there: most programs have none. */
const sdk = () => import("@modelcontextprotocol/client");
type Sdk = Awaited<ReturnType<typeof sdk>>;

export class Connection {
  readonly #sdk: Sdk;
  readonly #settings: ServerSettings;
  readonly #client: Client;
  readonly #gone = new AbortController();
  readonly #doubts = new Set<() => void>();
  #transport: StdioTransport | InstanceType<Sdk["StreamableHTTPClientTransport"]> | null = null;
  #reason: string | null = null;
  #plainReason: string | null = null;
  #closing: Promise<void> | null = null;

  private constructor(loaded: Sdk, settings: ServerSettings, client: Client) {
    this.#sdk = loaded;
    this.#settings = settings;
    this.#client = client;
  }

  /** Rejects with the reason if the server is not there, does not answer, or speaks something else. */
  static async open(
    settings: ServerSettings,
    guard: Guard,
    hearing: Hearing,
    version: string,
    signal: AbortSignal,
  ): Promise<Connection> {
    const loaded = await sdk();
    const client = new loaded.Client({ name: "tidings", version }, { capabilities: {} });
    const connection = new Connection(loaded, settings, client);
    await connection.#open(guard, hearing, signal);
    return connection;
  }

  /** Aborted when it is over. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Why it is over. */
  get reason(): string {
    return this.#reason ?? "it is connected";
  }

  /** The same without the server's own words. */
  get plainReason(): string {
    return this.#plainReason ?? this.reason;
  }

  get pid(): number | null {
    return this.#transport instanceof StdioTransport ? this.#transport.pid : null;
  }

  /** Calls `listener` when something may be wrong: a ping will tell. */
  onDoubt(listener: () => void): void {
    this.#doubts.add(listener);
  }

  /** One that is lost on the way is sent once more: a connection that was kept may have been closed by then. */
  async ping(again = true): Promise<Pong> {
    try {
      await this.#client.ping({ timeout: this.#settings.ping_timeout_ms });
      return "answered";
    } catch (error) {
      if (this.#gone.signal.aborted) return "failed";
      if (this.#isLost(error)) {
        if (again) return this.ping(false);
        this.#over(wordsOf(error));
        return "failed";
      }
      const { SdkError, SdkErrorCode, ProtocolError } = this.#sdk;
      // Whoever refuses it has heard it.
      if (error instanceof ProtocolError) return "answered";
      if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult) return "answered";
      if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) return "missed";
      this.#over(wordsOf(error));
      return "failed";
    }
  }

  /** All tools that the server lists, as they come; no further than one beyond what is taken. */
  async listTools(): Promise<readonly unknown[]> {
    if (this.#client.getServerCapabilities()?.tools === undefined) return [];
    const tools: unknown[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MCP_LIMITS.pages; page += 1) {
      const params = cursor === undefined ? {} : { cursor };
      const timeout = this.#settings.connect_timeout_ms;
      const answer = await this.#client.request({ method: "tools/list", params }, pageSchema, { timeout });
      tools.push(...answer.tools.slice(0, MCP_LIMITS.toolsKnown));
      const next = answer.nextCursor;
      if (next === undefined || next === cursor || tools.length >= MCP_LIMITS.toolsKnown) break;
      cursor = next;
    }
    return tools;
  }

  /** What the tool answers. Throws `ToolFailure` with the server's words, or another error if there was no answer. */
  async call(tool: string, input: JsonObject, signal: AbortSignal): Promise<string> {
    // Whoever waits for it has a time limit, and says so by the signal.
    const timeout = this.#settings.call_timeout_ms + MCP_TIMES.killAfterMs;
    const params = { name: tool, arguments: input };
    try {
      const result = await this.#client.request({ method: "tools/call", params }, resultSchema, { timeout, signal });
      if (result.isError === true) throw new ToolFailure(resultText(result));
      return resultText(result);
    } catch (error) {
      if (this.#isLost(error)) throw new LostCall(wordsOf(error), { cause: error });
      if (error instanceof this.#sdk.ProtocolError) throw new ToolFailure(wordsOf(error));
      if (error instanceof this.#sdk.SdkHttpError) this.#doubt();
      throw error;
    }
  }

  /** Ends it; resolves when nothing of it is left. */
  close(reason: string): Promise<void> {
    this.#over(reason, true);
    return this.#closing ?? Promise.resolve();
  }

  async #open(guard: Guard, hearing: Hearing, signal: AbortSignal): Promise<void> {
    const { way, connect_timeout_ms: timeout, resources, log_level } = this.#settings;
    const client = this.#client;
    let opened = false;
    client.onclose = () => {
      const transport = this.#transport;
      if (!(transport instanceof StdioTransport)) {
        // Before that, whoever opens it knows better why.
        if (opened) this.#over("it was closed");
        return;
      }
      if (this.#reason === null) this.#plainReason = transport.plainReason || null;
      this.#over(transport.reason);
    };
    // What cannot be understood is passed over, whatever it is.
    client.onerror = () => undefined;
    client.setNotificationHandler("notifications/tools/list_changed", () => hearing.toolsChanged());
    client.setNotificationHandler("notifications/resources/updated", { params: uriSchema }, ({ uri }) => {
      if (resources.includes(uri)) hearing.resourceUpdated(uri);
    });
    client.setNotificationHandler("notifications/message", { params: logSchema }, ({ level, logger, data }) => {
      if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(log_level)) return;
      hearing.logged(level, shortWords(`${logger === undefined ? "" : `${logger}: `}${textOf(data)}`));
    });
    try {
      if (way.kind === "stdio") {
        const parse = (value: unknown) => this.#sdk.parseJSONRPCMessage(value);
        this.#transport = new StdioTransport({ way, guard, parse });
      } else {
        const Transport = this.#sdk.StreamableHTTPClientTransport;
        this.#transport = httpTransport({ way, Transport, doubted: () => this.#doubt() });
      }
      await client.connect(this.#transport, { timeout, signal });
      opened = true;
      const able = client.getServerCapabilities();
      if (able?.logging !== undefined)
        await client
          .request({ method: "logging/setLevel", params: { level: log_level } }, anySchema, { timeout, signal })
          .catch(this.#unless);
      if (able?.resources?.subscribe === true)
        for (const uri of resources)
          await client
            .request({ method: "resources/subscribe", params: { uri } }, anySchema, { timeout, signal })
            .catch(this.#unless);
    } catch (error) {
      const gone = this.#reason;
      await this.close(gone ?? wordsOf(error));
      throw new Error(this.reason);
    }
  }

  /** What a server refuses, it does without. */
  readonly #unless = (error: unknown): void => {
    if (!(error instanceof this.#sdk.ProtocolError) || this.#isLost(error)) throw error;
  };

  #isLost(error: unknown): boolean {
    return error instanceof this.#sdk.ProtocolError && error.code === LOST;
  }

  #doubt(): void {
    for (const listener of this.#doubts) listener();
  }

  /** `polite`: the server is there, and is told. */
  #over(reason: string, polite = false): void {
    if (this.#reason !== null) return;
    this.#reason = reason === "" ? "the connection was closed" : reason;
    this.#closing = this.#letGo(polite);
    this.#gone.abort();
  }

  async #letGo(polite: boolean): Promise<void> {
    const transport = this.#transport;
    if (polite && transport !== null && !(transport instanceof StdioTransport)) {
      const waited = new AbortController();
      const ended = transport.terminateSession().catch(() => undefined);
      await Promise.race([ended, pause(MCP_TIMES.closeMs, waited.signal)]).finally(() => waited.abort());
    }
    await this.#client.close().catch(() => undefined);
    await transport?.close().catch(() => undefined);
  }
}

function textOf(data: unknown): string {
  if (typeof data === "string") return data.slice(0, 4 * MCP_LIMITS.wordsChars);
  try {
    return JSON.stringify(data) ?? "";
  } catch {
    return "(it cannot be shown)";
  }
}
