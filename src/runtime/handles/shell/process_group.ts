/** A command in a group of processes of its own: all that it starts is ended with it. */
import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { later, pause } from "../../../platform/timers.js";
import type { Guard } from "./guard.js";

export interface Command {
  readonly argv: readonly string[];
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

export interface Listening {
  output(text: string, from: "stdout" | "stderr"): void;
}

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Waits for the word, so that nothing runs before the guard knows of it, then becomes the command. What the model has written
 * is no part of this text: it comes in the arguments.
 */
const GATE = 'read -r word <&3 || exit 125; exec 3<&-; exec "$@"';
/** In what is written to it: nothing follows. */
export const END_OF_INPUT = "\u0004";
const LOOK_MS = 20;
/** How long what is ended may still have something to say. */
const DRAIN_MS = 500;
/** How long a group that was killed may take to be gone. */
const GONE_MS = 1_000;

/** Why a command could not be started. */
export class StartError extends Error {
  /** It may be possible another time. */
  readonly transient: boolean;

  constructor(message: string, transient: boolean, cause: unknown) {
    super(message, { cause });
    this.name = "StartError";
    this.transient = transient;
  }
}

/** What the machine has none left of. */
const SCARCE: Readonly<Record<string, string>> = {
  EMFILE: "the host has no file descriptors left",
  ENFILE: "the machine has no file descriptors left",
  EAGAIN: "there may be no more processes",
  ENOMEM: "there is no memory left",
};

function startError(error: unknown, folder: string): StartError {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const scarce = SCARCE[code];
  if (scarce !== undefined) return new StartError(`${scarce} (${code})`, true, error);
  const gone = !statSync(folder, { throwIfNoEntry: false })?.isDirectory();
  if (gone) return new StartError(`its working folder ${JSON.stringify(folder)} is not there any more`, false, error);
  return new StartError(message, false, error);
}

export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #guard: Guard;
  readonly #kill_after_ms: number;
  readonly #exited: Promise<ProcessEnd>;
  readonly #closed: Promise<void>;
  #stopKill: () => void = () => undefined;
  #ending = false;

  private constructor(child: ChildProcess, guard: Guard, kill_after_ms: number) {
    this.#child = child;
    this.#guard = guard;
    this.#kill_after_ms = kill_after_ms;
    this.#exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    this.#closed = new Promise((resolve) => child.once("close", () => resolve()));
  }

  /** Rejects with a `StartError` if it cannot be started. */
  static async start(
    command: Command,
    listening: Listening,
    guard: Guard,
    kill_after_ms: number,
  ): Promise<ProcessGroup> {
    try {
      return await ProcessGroup.#start(command, listening, guard, kill_after_ms);
    } catch (error) {
      throw startError(error, command.folder);
    }
  }

  static async #start(
    { argv, folder, environment }: Command,
    listening: Listening,
    guard: Guard,
    kill_after_ms: number,
  ): Promise<ProcessGroup> {
    const child = spawn("/bin/sh", ["-c", GATE, "sh", ...argv], {
      detached: true,
      cwd: folder,
      env: { ...environment },
      stdio: ["pipe", "pipe", "pipe", "pipe"],
    });
    const spawned = new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.on("error", reject);
    });
    const group = new ProcessGroup(child, guard, kill_after_ms);
    const gate = group.#streams[3] as Writable | null | undefined;
    for (const stream of [child.stdin, gate]) stream?.on("error", () => undefined);
    for (const from of ["stdout", "stderr"] as const) listen(child[from], from, listening);
    await spawned;
    try {
      await guard.add(group.#id);
    } catch (error) {
      group.#signal("SIGKILL");
      group.#letGo();
      throw error;
    }
    gate?.end("go\n");
    return group;
  }

  /** Of the command, which leads its group. */
  get pid(): number {
    return this.#id;
  }

  /** Text for its input; an end of transmission closes it. */
  write(text: string, backlogMax: number): void {
    const { stdin } = this.#child;
    if (stdin === null || !stdin.writable) throw new Error("its input is closed");
    if (stdin.writableLength > backlogMax) throw new Error("it does not read its input");
    const end = text.indexOf(END_OF_INPUT);
    if (end < 0) stdin.write(text);
    else stdin.end(text.slice(0, end));
  }

  /** Ends it: it is asked to, and a while later it is made to. */
  end(): void {
    if (this.#ending) return;
    this.#ending = true;
    this.#signal("SIGTERM");
    this.#stopKill = later(this.#kill_after_ms, () => this.#signal("SIGKILL"));
  }

  /** Resolves when it and all that it has started are gone. */
  async over(): Promise<ProcessEnd> {
    const end = await this.#exited;
    // What it has left behind in its group is ended with it.
    if (this.#isAlive()) {
      this.end();
      await this.#gone();
    }
    this.#stopKill();
    const drained = new AbortController();
    await Promise.race([this.#closed, pause(DRAIN_MS, drained.signal)]);
    drained.abort();
    this.#letGo();
    await this.#guard.remove(this.#id);
    return end;
  }

  /** Where there were no file descriptors for them there are none, whatever the types say. */
  get #streams(): readonly (Readable | Writable | null | undefined)[] {
    return this.#child.stdio ?? [];
  }

  #letGo(): void {
    for (const stream of this.#streams) stream?.destroy();
  }

  get #id(): number {
    return this.#child.pid ?? 0;
  }

  async #gone(): Promise<void> {
    const looks = Math.ceil((this.#kill_after_ms + GONE_MS) / LOOK_MS);
    for (let look = 0; look < looks && this.#isAlive(); look += 1) await pause(LOOK_MS);
  }

  #isAlive(): boolean {
    return this.#signal(0);
  }

  /** Whether there was anybody to hear it. */
  #signal(signal: NodeJS.Signals | 0): boolean {
    if (this.#id <= 1) return false;
    try {
      process.kill(-this.#id, signal);
      return true;
    } catch {
      return false;
    }
  }
}

function listen(stream: Readable | null | undefined, from: "stdout" | "stderr", listening: Listening): void {
  stream?.setEncoding("utf8");
  stream?.on("error", () => undefined);
  stream?.on("data", (text: string) => listening.output(text, from));
}
