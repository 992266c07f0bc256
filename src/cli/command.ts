/** What a command is: its name and words for the help, its options, and what it does. One file each in commands/. */
import type { JsonObject } from "../domain/json.js";
import type { ExitCode } from "./exit.js";
import type { Output } from "./output.js";
import type { Settings } from "./settings.js";

interface Described {
  readonly summary: string;
  /** What holds without it, for the help. */
  readonly preset?: string;
}

/** How an option is written, and what it becomes. */
export type Option = Described &
  (
    | { readonly kind: "flag"; readonly short?: string }
    | { readonly kind: "text"; readonly value: string }
    | { readonly kind: "choice"; readonly value: string; readonly choices: readonly string[] }
    | { readonly kind: "integer"; readonly value: string; readonly min: number; readonly max?: number }
    /** A number and a unit: `30d`; in milliseconds. */
    | { readonly kind: "duration"; readonly value: string }
    | { readonly kind: "json"; readonly value: string }
  );

/** By their names, without the dashes. */
export type Options = Readonly<Record<string, Option>>;

type ValueOf<O extends Option> = O extends { kind: "flag" }
  ? boolean
  : O extends { kind: "choice"; choices: readonly (infer Choice)[] }
    ? Choice | undefined
    : O extends { kind: "integer" | "duration" }
      ? number | undefined
      : O extends { kind: "json" }
        ? JsonObject | undefined
        : string | undefined;

export type Values<O extends Options> = { readonly [Name in keyof O]: ValueOf<O[Name]> };

/** One call of a command. */
export interface Call<O extends Options = Options> {
  readonly values: Values<O>;
  /** The arguments that are not options. */
  readonly words: readonly string[];
  readonly settings: Settings;
  readonly output: Output;
}

export interface Command {
  /** One word, or two: `dead list`. */
  readonly name: string;
  readonly summary: string;
  /** Its arguments, as the help shows them after the name. */
  readonly usage: string;
  /** Paragraphs for its own help page. */
  readonly about: readonly string[];
  readonly options: Options;
  readonly examples: readonly string[];
  run(call: Call): Promise<ExitCode>;
}

/** Ties the type of a command's `values` to its options. */
export function defineCommand<const O extends Options>(
  command: Omit<Command, "options" | "run"> & { readonly options: O; run(call: Call<O>): Promise<ExitCode> },
): Command {
  return command;
}
