/** What a command is: its name and words for the help, its options, and what it does. One file each in commands/. */
import type { ExitCode } from "./exit.js";
import type { Options, Values } from "./options.js";
import type { Output } from "./output.js";
import type { Settings } from "./settings.js";

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
  /** Words that its options take, with what they mean. */
  readonly terms?: { readonly heading: string; readonly rows: readonly (readonly [string, string])[] };
  readonly options: Options;
  readonly examples: readonly string[];
  /** It works on a data folder itself, and never through a server. */
  readonly folderOnly?: boolean;
  run(call: Call): Promise<ExitCode>;
}

/** Ties the type of a command's `values` to its options. */
export function defineCommand<const O extends Options>(
  command: Omit<Command, "options" | "run"> & { readonly options: O; run(call: Call<O>): Promise<ExitCode> },
): Command {
  return command;
}
