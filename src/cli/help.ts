import { VERSION } from "../platform/version.js";
import type { Command, Listed } from "./command.js";
import { EXIT_MEANINGS } from "./exit.js";
import type { Option, Options } from "./options.js";
import type { Output } from "./output.js";
import { COMMON_OPTIONS } from "./settings.js";
import { pad, wrap } from "./text.js";

const WIDEST = 100;
const ABOUT = [
  "Something happens while nobody is looking. Tidings tells the right party, the agent or its user, once, in the " +
    "right place, at the right moment, and loses nothing.",
];

/** `tidings --help`. */
export async function showHelp(commands: readonly Listed[], output: Output): Promise<void> {
  const page = new Page(output);
  page.title(`tidings ${VERSION}`, "the notification plane for AI agents");
  page.paragraphs(ABOUT);
  page.heading("Usage");
  page.row("tidings COMMAND [options]", "");
  page.heading("Commands");
  page.rows(commands.map((command) => [command.name, command.summary]));
  page.heading("Options of every command");
  page.rows(optionRows(COMMON_OPTIONS));
  page.heading("Exit codes");
  page.rows(EXIT_MEANINGS.map(([code, meaning]) => [String(code), meaning]));
  page.paragraphs([
    "`tidings COMMAND --help` tells more about one of them; `tidings tour` shows them at work in a few seconds.",
  ]);
  await page.print();
}

/** `tidings dead --help`: the commands that begin with this word. */
export async function showGroup(commands: readonly Listed[], output: Output): Promise<void> {
  const page = new Page(output);
  page.heading("Commands");
  page.rows(commands.map((command) => [`tidings ${command.name}`, command.summary]));
  await page.print();
}

/** `tidings COMMAND --help`. */
export async function showCommandHelp(command: Command, output: Output): Promise<void> {
  const page = new Page(output);
  page.title(`tidings ${command.name}`, command.summary);
  page.heading("Usage");
  page.row(`tidings ${command.name} ${command.usage}`.trimEnd(), "");
  page.paragraphs(command.about);
  if (Object.keys(command.options).length > 0) {
    page.heading("Options");
    page.rows(optionRows(command.options));
  }
  if (command.terms !== undefined) {
    page.heading(command.terms.heading);
    page.rows(command.terms.rows);
  }
  page.heading("Options of every command");
  const { server: _server, token: _token, ...ofFolders } = COMMON_OPTIONS;
  const common = Object.entries<Option>(command.folderOnly === true ? ofFolders : COMMON_OPTIONS);
  // One of its own takes the place of the common one.
  page.rows(optionRows(Object.fromEntries(common.filter(([name]) => !Object.hasOwn(command.options, name)))));
  page.heading("Examples");
  for (const example of command.examples) page.row(example, "");
  await page.print();
}

function optionRows(options: Options): [string, string][] {
  return Object.entries(options).map(([name, option]) => [optionHead(name, option), optionWords(option)]);
}

function optionHead(name: string, option: Option): string {
  if (option.kind !== "flag") return `--${name} ${option.value}`;
  return option.short === undefined ? `--${name}` : `-${option.short}, --${name}`;
}

function optionWords(option: Option): string {
  const choices = option.kind === "choice" ? `: ${option.choices.join(", ")}` : "";
  const notes = [option.env, option.preset === undefined ? undefined : `default ${option.preset}`];
  const said = notes.filter((note) => note !== undefined).join(", ");
  return `${option.summary}${choices}${said === "" ? "" : ` (${said})`}`;
}

class Page {
  readonly #output: Output;
  readonly #width: number;
  readonly #lines: string[] = [];

  constructor(output: Output) {
    this.#output = output;
    this.#width = Math.min(output.width, WIDEST);
  }

  title(name: string, words: string): void {
    this.#lines.push(`${this.#output.style("bold", name)}: ${words}`);
  }

  heading(text: string): void {
    this.#lines.push("", this.#output.style("bold", text));
  }

  paragraphs(paragraphs: readonly string[]): void {
    for (const paragraph of paragraphs) this.#lines.push("", ...wrap(paragraph, this.#width));
  }

  rows(rows: readonly (readonly [string, string])[]): void {
    const head = Math.max(...rows.map(([name]) => name.length));
    for (const [name, words] of rows) this.row(name, words, head);
  }

  row(name: string, words: string, head = name.length): void {
    const indent = " ".repeat(2 + head + 2);
    const [first = "", ...more] = wrap(words, Math.max(20, this.#width - indent.length));
    this.#lines.push(`  ${this.#output.style("cyan", pad(name, head))}  ${first}`.trimEnd());
    for (const line of more) this.#lines.push(`${indent}${line}`);
  }

  async print(): Promise<void> {
    await this.#output.line(this.#lines.join("\n").replace(/^\n/, ""));
  }
}
