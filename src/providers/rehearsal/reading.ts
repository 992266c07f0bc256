/** What the rehearsal model understands of a block of notifications and of the user's words. */
import { InvalidInputError } from "../../domain/errors.js";
import { type JsonObject, takeJson } from "../../domain/json.js";
import { EXPLANATION, plainWords } from "./words.js";

export interface Told {
  readonly id: string;
  /** What it says, in plain words; empty where only its id was found. */
  readonly words: string;
  readonly critical: boolean;
}

export interface Reading {
  readonly notifications: readonly Told[];
  /** Those that the user must be told. */
  readonly tell: readonly Told[];
  /** Of directives; they stand outside the data. */
  readonly commands: readonly Command[];
}

export interface Command {
  readonly name: string;
  readonly input: JsonObject;
  /** Why the input cannot be used. */
  readonly malformed?: string;
}

const NOTHING: Reading = { notifications: [], tell: [], commands: [] };
const FENCED = /<data id=([\w-]+)(?: [^>]*)?>([\s\S]*?)<\/data id=\1>/g;
const HEADING = /^\*\*([^*]+?):?\*\*$/;
const ENTRY = /^- `([\w-]+)`(?: ×\d+)?(?: \((critical),)?/;
const INSTRUCTION = /^ {2}(?:Instruction:|>) (.*)$/;

/** Structure is outside the fences only: what stands inside is data, whatever it looks like. */
export function readBlock(block: string | undefined): Reading {
  if (block === undefined) return NOTHING;
  const contents: string[] = [];
  const outside = block.replace(FENCED, (_, _nonce: string, content: string) => {
    contents.push(content);
    return `<data ${contents.length - 1}>`;
  });
  const told = new Map<string, { id: string; words: string; group: string; critical: boolean }>();
  const commands: Command[] = [];
  let group = "";
  let newest: { words: string } | undefined;
  for (const line of outside.split("\n")) {
    const heading = HEADING.exec(line)?.[1];
    if (heading !== undefined) {
      group = heading;
      newest = undefined;
    }
    const [, id, severity] = ENTRY.exec(line) ?? [];
    if (id !== undefined) {
      const entry = { id, words: "", group, critical: group === "Critical" || severity !== undefined };
      told.set(id, entry);
      newest = entry;
    }
    const fence = /<data (\d+)>/.exec(line)?.[1];
    if (newest?.words === "" && fence !== undefined) newest.words = plainWords(contents[Number(fence)] ?? "");
    const command = commandIn(INSTRUCTION.exec(line)?.[1] ?? "", true);
    if (command !== undefined) commands.push(command);
  }
  const notifications = [...told.values()];
  return {
    notifications,
    tell: notifications.filter(({ group }) => group === "Tell the user"),
    commands,
  };
}

/** One for each line that says `call NAME {json}`; the input may be left out where the line says nothing else. */
export function commandsIn(text: string): readonly Command[] {
  return text.split("\n").flatMap((line) => commandIn(line, false) ?? []);
}

function commandIn(line: string, needsInput: boolean): Command | undefined {
  const found =
    /(?:^|\s)call ([\w.-]+)\s+(\{.*\})\s*$/.exec(line) ?? (needsInput ? null : /^\s*call ([\w.-]+)\s*$/.exec(line));
  if (found === null) return undefined;
  const [, name = "", input = "{}"] = found;
  try {
    return { name, input: takeJson(JSON.parse(input), "input") };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof InvalidInputError)) throw error;
    return { name, input: {}, malformed: error.message };
  }
}

/** What is to be said slowly, word by word. */
export function slowWordsIn(text: string): readonly string[] | undefined {
  const count = /\bsay slowly (\d{1,4})\b/i.exec(text)?.[1];
  if (count !== undefined) return Array.from({ length: Number(count) }, (_, index) => `word-${index + 1} `);
  return /\bexplain\b.*\bin detail\b/i.test(text) ? EXPLANATION : undefined;
}

/** What the system says where a user could have spoken. */
export function isOfTheSystem(text: string): boolean {
  return /^(?:The system opened this turn|Before you end this turn:|You have not acknowledged |The answer was cut off )/.test(
    text,
  );
}

/** Whether the newest of the user's words on it ask for silence. */
export function isSilent(texts: readonly string[]): boolean {
  const newest = texts.findLast((text) => /\b(stay silent|speak again)\b/i.test(text)) ?? "";
  return newest.toLowerCase().lastIndexOf("stay silent") > newest.toLowerCase().lastIndexOf("speak again");
}
