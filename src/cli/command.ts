/** What a command is: a row in commands.ts with its name, and a file in commands/ that is loaded when it is used. */
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

/** What is known of a command before it is loaded. */
export interface Listed {
  /** One word, or two: `dead list`. */
  readonly name: string;
  readonly summary: string;
  load(): Promise<Definition>;
}

/** Words for its own help, its options, and what it does. */
export interface Definition {
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

export type Command = Definition & Omit<Listed, "load">;

export async function loadCommand({ name, summary, load }: Listed): Promise<Command> {
  return { name, summary, ...(await load()) };
}

/** Ties the type of a command's `values` to its options. */
export function defineCommand<const O extends Options>(
  definition: Omit<Definition, "options" | "run"> & { readonly options: O; run(call: Call<O>): Promise<ExitCode> },
): Definition {
  return definition;
}
