import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { OpenOptions } from "../../src/index.js";

const PROGRAM = fileURLToPath(new URL("./host.mjs", import.meta.url));

export interface Refusal {
  name: string;
  code: string | undefined;
  retryable: boolean | undefined;
  message: string;
}

/** An error that a host answered. */
export class HostError extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(`${refusal.name} ${refusal.code}: ${refusal.message}`);
    this.refusal = refusal;
  }
}

export interface HostOptions {
  /** The command that ends by running `"$@"`: a shell with limits, a tracer, a namespace. */
  under?: readonly string[];
  uid?: number;
  gid?: number;
}

/** A process with Tidings in it (`host.mjs`); it is gone when the test is over. */
export class Host {
  readonly process: ChildProcess;
  /** Resolves with the signal or the code when the process has ended. */
  readonly ended: Promise<NodeJS.Signals | number | null>;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #sent = 0;

  private constructor({ under = [], uid, gid }: HostOptions) {
    const [program = process.execPath, ...args] = [...under, process.execPath, PROGRAM];
    this.process = spawn(program, args, {
      stdio: ["pipe", "pipe", "inherit"],
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
    });
    this.ended = new Promise((resolve) => {
      this.process.on("close", (code, signal) => {
        for (const { reject } of this.#waiting.values()) reject(new Error(`the host ended: ${signal ?? code}`));
        resolve(signal ?? code);
      });
    });
    this.process.stdin?.on("error", () => {});
    if (this.process.stdout === null) throw new Error("the host has no output");
    createInterface({ input: this.process.stdout }).on("line", (line) => this.#take(line));
  }

  static async start(options: HostOptions = {}): Promise<Host> {
    const host = new Host(options);
    onTestFinished(async () => {
      host.kill("SIGKILL");
      await host.ended;
    });
    await new Promise((resolve, reject) => host.#waiting.set(0, { resolve, reject }));
    return host;
  }

  #take(line: string): void {
    const { id, value, error } = JSON.parse(line) as { id: number; value?: unknown; error?: Refusal };
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new HostError(error));
  }

  command<Value>(command: string, ...args: readonly unknown[]): Promise<Value> {
    this.#sent += 1;
    const id = this.#sent;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.process.stdin?.write(`${JSON.stringify({ id, command, args })}\n`);
    return answer as Promise<Value>;
  }

  open(options: OpenOptions): Promise<{ pid: number; writable: boolean }> {
    return this.command("open", options);
  }

  /** A method of its Tidings. */
  call<Value>(method: string, ...args: readonly unknown[]): Promise<Value> {
    return this.command("call", method, ...args);
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }
}

/** What it was refused with; fails if it was not. */
export async function refusalOf(answer: Promise<unknown>): Promise<Refusal> {
  try {
    await answer;
  } catch (error) {
    if (error instanceof HostError) return error.refusal;
    throw error;
  }
  throw new Error("it was not refused");
}
