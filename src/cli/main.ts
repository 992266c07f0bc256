#!/usr/bin/env node
import { VERSION } from "../platform/version.js";
/** The command line: finds the command, runs it, and turns what went wrong into words and an exit code. */
import { parseLine, valuesOf } from "./arguments.js";
import type { Command, Listed } from "./command.js";
import { COMMANDS } from "./commands.js";
import { EXIT, type ExitCode, exitCodeOf, reportOf, UsageError } from "./exit.js";
import { showCommandHelp, showGroup, showHelp } from "./help.js";
import { didYouMean } from "./nearest.js";
import type { Values } from "./options.js";
import { Output } from "./output.js";
import { COMMON_OPTIONS, PROGRAM_OPTIONS, settingsOf } from "./settings.js";
import { oneLine } from "./text.js";

async function run(line: readonly string[], output: Output): Promise<ExitCode> {
  const asked = line[0] === "help" ? [...line.slice(1), "--help"] : line;
  const { command, typed, words, tokens } = await parseLine(asked, COMMANDS);
  const wants = (name: string) => tokens.some((token) => token.name === name);
  if (command === undefined) {
    if (typed.length === 0) valuesOf(tokens, PROGRAM_OPTIONS, "tidings");
    return withoutCommand(typed, wants, output);
  }
  if (wants("help")) {
    await showCommandHelp(command, output);
    return EXIT.ok;
  }
  const values = valuesOf(tokens, { ...COMMON_OPTIONS, ...command.options }, `tidings ${command.name}`);
  if (command.folderOnly === true) refuseServer(command, values, output);
  const settings = settingsOf(values as Values<typeof COMMON_OPTIONS>, process.env);
  return command.run({ values: values as Values<Command["options"]>, words, settings, output });
}

/** A command that looks into a data folder must not seem to look into a server. */
function refuseServer({ name }: Command, values: Readonly<Record<string, unknown>>, output: Output): void {
  const typed = ["server", "token"].find((option) => values[option] !== undefined);
  if (typed !== undefined)
    throw new UsageError(`${name} works on a data folder, see --data: it takes no --${typed}`, `--${typed}`);
  if (process.env["TIDINGS_SERVER"])
    output.remark(`tidings: ${name} works on a data folder, see --data; TIDINGS_SERVER is not asked`);
}

async function withoutCommand(
  typed: readonly string[],
  wants: (option: string) => boolean,
  output: Output,
): Promise<ExitCode> {
  const [first] = typed;
  const group = COMMANDS.filter((command) => command.name.startsWith(`${first} `));
  const help = wants("help");
  if (first === undefined && wants("version")) {
    await output.line(VERSION);
    return EXIT.ok;
  }
  if (first === undefined) {
    await showHelp(COMMANDS, output);
    return EXIT.ok;
  }
  if (group.length > 0 && help) {
    await showGroup(group, output);
    return EXIT.ok;
  }
  throw unknownCommand(typed, group);
}

function unknownCommand(typed: readonly string[], group: readonly Listed[]): UsageError {
  const [first = "", second] = typed;
  const names = group.map((command) => command.name);
  if (group.length > 0 && second === undefined)
    return new UsageError(`${first} needs one more word: ${names.join(" or ")}. See \`tidings ${first} --help\`.`);
  const meant = group.length > 0 ? `${first} ${second}` : first;
  const hint = group.length > 0 ? didYouMean(meant, names) : probablyMeant(first, second);
  return new UsageError(`unknown command ${JSON.stringify(meant)}${hint || "."} See \`tidings --help\`.`);
}

/** Both words, where a command of two is near them; else the first. */
function probablyMeant(first: string, second: string | undefined): string {
  const names = COMMANDS.map((command) => command.name);
  const both = names.filter((name) => name.includes(" "));
  const heads = both.map((name) => name.slice(0, name.indexOf(" ")));
  return (
    (second === undefined ? "" : didYouMean(`${first} ${second}`, both)) || didYouMean(first, [...heads, ...names])
  );
}

async function tell(error: unknown, output: Output): Promise<void> {
  const report = reportOf(error);
  if (output.json) {
    await output.value({ error: report });
    return;
  }
  output.remark(`tidings: ${oneLine(report.message)}`);
  if (report.code === "internal" && error instanceof Error)
    output.remark(`This is a defect in Tidings; please report it with these lines.\n${error.stack}`);
}

async function main(line: readonly string[]): Promise<void> {
  // Whoever reads has enough (`| head`): that is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(EXIT.ok);
  });
  // A remark that nobody can read any more is no reason to end what is remarked upon, least of all a server.
  process.stderr.on("error", () => {});
  const end = line.indexOf("--");
  const output = new Output((end === -1 ? line : line.slice(0, end)).includes("--json"));
  try {
    process.exitCode = await run(line, output);
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    await tell(error, output);
  }
}

await main(process.argv.slice(2));
