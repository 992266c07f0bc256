/** The built-in tool that runs commands on this machine, in the background. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { InvalidInputError } from "../../../domain/errors.js";
import { later } from "../../../platform/timers.js";
import { type Handle, HandleError, type Outcome, type StatefulTool } from "../stateful_tool.js";
import { Guard } from "./guard.js";
import { END_OF_INPUT, type ProcessEnd, ProcessGroup, StartError } from "./process_group.js";

/** What the operator allows. */
export interface ShellOptions {
  /** The model writes command lines, which `/bin/sh` reads; without it, a program and its arguments. */
  readonly command_lines?: boolean;
  /** Where commands run; default: where this program does. */
  readonly folder?: string;
  /** The environment variables that they see; default: PATH, HOME, LANG, LC_ALL, TZ, TMPDIR. */
  readonly environment?: readonly string[];
  /** How long one may run. Default 600. */
  readonly time_limit_secs?: number;
  /** How much one may print before it is ended. Default 256 MiB. What is kept of it is far less. */
  readonly output_bytes_max?: number;
  /** How many may run at once. Default 100. */
  readonly processes_max?: number;
  /** How long one may take to end when it is asked to; then it is killed. Default 2,000. */
  readonly kill_after_ms?: number;
}

const ENVIRONMENT = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"] as const;
const TIME_LIMIT_SECS = 600;
const OUTPUT_BYTES_MAX = 268_435_456;
const PROCESSES_MAX = 100;
const KILL_AFTER_MS = 2_000;
const ARGUMENTS_MAX = 1_000;
const ARGUMENT_CHARS_MAX = 32_768;
const INPUT_BACKLOG_MAX = 1_048_576;

const argument = z
  .string()
  .max(ARGUMENT_CHARS_MAX)
  .refine((text) => !text.includes("\0"), "must not hold a NUL character");
const lineSchema = z.strictObject({ command: argument.min(1).describe("A command line for /bin/sh.") });
const argvSchema = z.strictObject({
  argv: z
    .array(argument)
    .min(1)
    .max(ARGUMENTS_MAX)
    .refine(([program = ""]) => program !== "" && !program.startsWith("-"), "must begin with a program")
    .describe("The program and its arguments, as they are: no shell reads them."),
});

type Input = { readonly command: string } | { readonly argv: readonly string[] };

export function shellTool(options: ShellOptions): StatefulTool {
  return new Shell(options);
}

class Shell implements StatefulTool {
  readonly name = "shell";
  readonly description: string;
  readonly input: z.ZodType;
  readonly impact = "external";
  readonly #options: ShellOptions;
  readonly #folder: string;
  readonly #guard = new Guard();
  #running = 0;

  constructor(options: ShellOptions) {
    if (process.platform === "win32") throw new InvalidInputError("agent.shell", "is not for Windows");
    this.#options = options;
    this.#folder = resolve(options.folder ?? ".");
    if (!statSync(this.#folder, { throwIfNoEntry: false })?.isDirectory())
      throw new InvalidInputError("agent.shell.folder", `${JSON.stringify(this.#folder)} is no folder`);
    const lines = options.command_lines === true;
    this.input = lines ? lineSchema : argvSchema;
    const what = lines ? "a command line" : "a program";
    this.description = `Runs ${what} on this machine. Text that ends in \\u0004 closes its input.`;
  }

  async spawn(input: unknown, handle: Handle): Promise<Outcome> {
    const { processes_max = PROCESSES_MAX } = this.#options;
    if (this.#running >= processes_max)
      throw new HandleError(`${processes_max} commands run already`, { transient: true });
    this.#running += 1;
    try {
      return await this.#run(input as Input, handle);
    } finally {
      this.#running -= 1;
    }
  }

  close(): Promise<void> {
    return this.#guard.close();
  }

  async #run(input: Input, handle: Handle): Promise<Outcome> {
    const { output_bytes_max = OUTPUT_BYTES_MAX, time_limit_secs = TIME_LIMIT_SECS } = this.#options;
    const { kill_after_ms = KILL_AFTER_MS } = this.#options;
    let printed = 0;
    let broken: string | null = null;
    let group: ProcessGroup | null = null;
    const breakOff = (reason: string) => {
      broken ??= reason;
      group?.end();
    };
    const output = (text: string) => {
      printed += Buffer.byteLength(text);
      if (printed > output_bytes_max) breakOff(`it printed more than ${output_bytes_max} bytes`);
      else handle.output(text);
    };
    // What is sent before the process is there waits for it.
    let early = "";
    handle.onInput((text) => {
      if (group !== null) return group.write(text, INPUT_BACKLOG_MAX);
      if (early.includes(END_OF_INPUT)) throw new Error("its input is closed");
      if (early.length > INPUT_BACKLOG_MAX) throw new Error("it does not read its input");
      early += text;
    });
    const argv = "argv" in input ? input.argv : ["/bin/sh", "-c", input.command];
    const command = { argv, folder: this.#folder, environment: this.#environment() };
    group = await ProcessGroup.start(command, { output }, this.#guard, kill_after_ms).catch((error: unknown) => {
      const transient = error instanceof StartError && error.transient;
      const reason = error instanceof Error ? error.message : String(error);
      throw new HandleError(`it could not be started: ${reason}`, { transient });
    });
    const running = group;
    const end = () => running.end();
    try {
      if (early !== "") running.write(early, INPUT_BACKLOG_MAX);
    } catch {
      // It is gone already: its end says the rest.
    }
    handle.signal.addEventListener("abort", end, { once: true });
    if (handle.signal.aborted || broken !== null) end();
    const stopTimer = later(time_limit_secs * 1_000, () => breakOff(`it ran longer than ${time_limit_secs} s`));
    try {
      return outcomeOf(await running.over(), broken);
    } finally {
      stopTimer();
      handle.signal.removeEventListener("abort", end);
    }
  }

  #environment(): Record<string, string> {
    const { environment = ENVIRONMENT } = this.#options;
    return Object.fromEntries(
      environment.flatMap((name) => {
        const value = process.env[name];
        return value === undefined ? [] : [[name, value]];
      }),
    );
  }
}

function outcomeOf({ code, signal }: ProcessEnd, broken: string | null): Outcome {
  const data = code === null ? { signal: signal ?? "" } : { exit_code: code };
  if (broken !== null) throw new HandleError(broken, { data });
  if (code === 0) return { result: "exited with code 0", data };
  throw new HandleError(code === null ? `ended by ${signal}` : `exited with code ${code}`, { data });
}
