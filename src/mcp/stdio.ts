/**
 * A server that is a program of this machine, in a group of processes of its own: all that it starts ends with it, and with this
 * process, however that ends.
 */
import { statSync } from "node:fs";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { pause } from "../platform/timers.js";
import type { Guard } from "../runtime/handles/shell/guard.js";
import { ProcessGroup } from "../runtime/handles/shell/process_group.js";
import { MCP_LIMITS, MCP_TIMES } from "./limits.js";
import { Lines } from "./lines.js";
import type { Way } from "./settings.js";
import { shortWords, wordsOf } from "./words.js";

export interface StdioOptions {
  readonly way: Extract<Way, { kind: "stdio" }>;
  readonly guard: Guard;
  /** A message, checked; throws if it is none. */
  readonly parse: (value: unknown) => JSONRPCMessage;
}

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #options: StdioOptions;
  readonly #lines = new Lines();
  #group: ProcessGroup | null = null;
  #over: Promise<void> = Promise.resolve();
  #printed = "";
  #broken: string | null = null;
  #end = "";
  #killed = false;

  constructor(options: StdioOptions) {
    this.#options = options;
  }

  /** Why it is gone, in its own words as far as it said any. */
  get reason(): string {
    // One that was killed has said nothing of that.
    if (this.#broken === null && this.#killed) return this.#end;
    const said = shortWords(this.#printed, MCP_LIMITS.stderrChars).split("\n").slice(-3).join(" | ");
    return shortWords([this.plainReason, said].filter((part) => part !== "").join(": "));
  }

  /** The same without its words, in which there may be what somebody has asked of it. */
  get plainReason(): string {
    return shortWords(this.#broken ?? this.#end);
  }

  get pid(): number | null {
    return this.#group?.pid ?? null;
  }

  async start(): Promise<void> {
    const { way, guard } = this.#options;
    if (process.platform === "win32") throw new Error("a server that is a program is not for Windows; give an url");
    if (!statSync(way.folder, { throwIfNoEntry: false })?.isDirectory())
      throw new Error(`its folder ${JSON.stringify(way.folder)} is no folder`);
    const environment = Object.fromEntries(
      way.environment.flatMap((name) => {
        const value = process.env[name];
        return value === undefined ? [] : [[name, value]];
      }),
    );
    const command = { argv: way.argv, folder: way.folder, environment };
    const output = (text: string, from: "stdout" | "stderr") => {
      if (from === "stdout") this.#read(text);
      else this.#printed = `${this.#printed}${text}`.slice(-MCP_LIMITS.stderrChars);
    };
    this.#group = await ProcessGroup.start(command, { output }, guard, MCP_TIMES.killAfterMs);
    this.#over = this.#group.over().then(({ code, signal }) => {
      this.#killed = code === null;
      this.#end = code === null ? `it was ended by ${signal}` : `it ended with code ${code}`;
      this.onclose?.();
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#group === null) throw new Error("it was not started");
    this.#group.write(`${JSON.stringify(message)}\n`, MCP_LIMITS.backlogBytes);
  }

  /** Its input is closed first: a server that is well ends by itself. Resolves when nothing of it runs any more. */
  async close(): Promise<void> {
    if (this.#group === null) return;
    const waited = new AbortController();
    try {
      this.#group.write("\u0004", MCP_LIMITS.backlogBytes);
      await Promise.race([this.#over, pause(MCP_TIMES.closeMs, waited.signal)]);
    } catch {
      // It reads nothing any more.
    }
    waited.abort();
    this.#group.end();
    await this.#over;
  }

  #read(text: string): void {
    if (this.#broken !== null) return;
    try {
      for (const line of this.#lines.take(text)) if (line.trim() !== "") this.#message(line);
    } catch (error) {
      // No message can be found any more in what follows.
      this.#broken = wordsOf(error);
      this.#group?.end();
    }
  }

  /** A line that is no message is passed over: some servers print what belongs elsewhere. */
  #message(line: string): void {
    try {
      this.onmessage?.(this.#options.parse(JSON.parse(line)));
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
