/**
 * The rehearsal model: offline, and the same answer to the same conversation always. It reads what it is sent as a
 * model does, and shows it, so that everything around a model can be tried without one. See docs/PROVIDERS.md.
 */
import { pause } from "../../platform/timers.js";
import { callsSoFar } from "../calls.js";
import {
  type BlockForm,
  type Message,
  type Model,
  ModelError,
  type ModelEvent,
  type ModelRequest,
  type ToolResult,
} from "../model.js";
import {
  type Command,
  commandsIn,
  isOfTheSystem,
  isSilent,
  type Reading,
  readBlock,
  slowWordsIn,
  type Told,
} from "./reading.js";
import { aboutItself } from "./words.js";

const ACKNOWLEDGE = "acknowledge_notifications";
const WORD_MS = 50;
const OUTPUT_SHOWN = 200;

interface Answer {
  /** Said at once: what cannot wait. */
  readonly first: string;
  /** Said one by one, with a pause before each. */
  readonly slow: readonly string[];
  readonly text: string;
  readonly commands: readonly Command[];
}

export class RehearsalModel implements Model {
  readonly provider = "rehearsal";
  readonly model: string;

  constructor(model: string) {
    this.model = model;
  }

  form(): BlockForm {
    return "system";
  }

  async *stream(request: ModelRequest): AsyncGenerator<ModelEvent, void, undefined> {
    const { signal, messages } = request;
    const goOn = () => {
      if (signal.aborted) throw new ModelError("aborted", "the rehearsal was aborted");
    };
    goOn();
    const { first, slow, text, commands } = answerTo(request);
    yield { type: "started" };
    const room = request.max_tokens ?? Number.POSITIVE_INFINITY;
    let said = "";
    const words = [
      ...pieces(first).map((word) => ({ word, isSlow: false })),
      ...slow.map((word) => ({ word, isSlow: true })),
      ...pieces(text).map((word) => ({ word, isSlow: false })),
    ];
    for (const { word, isSlow } of words) {
      if (isSlow) await pause(WORD_MS, signal);
      goOn();
      if (tokens(said + word) > room) return yield { type: "end", reason: "length", usage: usage(request, said) };
      said += word;
      yield { type: "text", delta: word };
    }
    let number = callsSoFar(messages);
    for (const { name, input, malformed } of commands) {
      goOn();
      number += 1;
      const call = { id: `rehearsal_${number}`, name, input };
      yield malformed === undefined ? { type: "call", call } : { type: "call", call, malformed };
    }
    goOn();
    yield { type: "end", reason: commands.length > 0 ? "calls" : "end", usage: usage(request, said) };
  }
}

function answerTo(request: ModelRequest): Answer {
  const { messages } = request;
  const newest = messages.at(-1);
  if (newest === undefined || newest.role === "assistant")
    throw new ModelError("bad_request", "rehearsal: the conversation must not end with the assistant");
  const asked = newest.role === "user" ? newest.text : "";
  const commands = commandsIn(asked);
  const slow = slowWordsIn(asked);
  if (isSilent(messages.flatMap((message) => (message.role === "user" ? [message.text] : []))))
    return { first: "", slow: slow ?? [], text: "", commands };
  const reading = readBlock(newest.block?.text);
  const told = toldLines(reading);
  const lines = [
    ...(newest.role === "tools" ? newest.results.flatMap(resultLine) : []),
    ...(newest.role === "user" && commands.length === 0 && slow === undefined ? readLines(asked, told) : []),
    ...told,
  ];
  const all = [...commands, ...reading.commands, ...acknowledgement(reading, request)];
  const isCritical = reading.notifications.some(({ critical }) => critical);
  const cut = isCritical && newest.role === "user" && slow === undefined ? cutOffBefore(messages) : undefined;
  if (cut === undefined) return { first: "", slow: slow ?? [], text: lines.join("\n"), commands: all };
  const goesOn = cut.slow === undefined ? `You had asked, and I was cut off: ${quoted(cut.asked)}` : "Now I go on: ";
  return { first: [...lines, goesOn].join("\n"), slow: cut.slow ?? [], text: "", commands: all };
}

/** At the end of a sentence; what ends one itself needs no second full stop. */
function quoted(text: string): string {
  return /[.!?…]$/.test(text) ? `"${text}"` : `"${text}".`;
}

function readLines(asked: string, told: readonly string[]): readonly string[] {
  if (isOfTheSystem(asked) && told.length > 0) return [];
  const about = aboutItself(asked);
  if (about !== undefined) return [about];
  return [`I read: ${quoted(asked)}`, ...(told.length === 0 ? ["There are no notifications."] : [])];
}

/** What cannot wait comes first, then what the user must be told. */
function toldLines({ notifications, tell }: Reading): readonly string[] {
  const others = notifications.filter((told) => !tell.includes(told));
  const critical = others.filter((told) => told.critical);
  const rest = others.filter((told) => !told.critical);
  return [
    ...(critical.length > 0 ? [`This cannot wait: ${listed(critical)}.`] : []),
    ...tell.map((told) => `You should know: ${said(told)}.`),
    ...(rest.length > 0 ? [`I was told${rest.length > 1 ? ` of ${rest.length} things` : ""}: ${listed(rest)}.`] : []),
  ];
}

function listed(told: readonly Told[]): string {
  return told.map(said).join("; ");
}

function said({ words }: Told): string {
  return words === "" ? "something of which I have no words" : words;
}

/** Its own acknowledgements are not worth a word, unless they were refused. */
function resultLine({ name, output, is_error }: ToolResult): readonly string[] {
  if (name === ACKNOWLEDGE && !is_error) return [];
  return [`${name} ${is_error ? "failed" : "answered"}: ${output.slice(0, OUTPUT_SHOWN)}`];
}

function acknowledgement({ tell }: Reading, { tools }: ModelRequest): readonly Command[] {
  if (tell.length === 0 || !tools.some(({ name }) => name === ACKNOWLEDGE)) return [];
  return [{ name: ACKNOWLEDGE, input: { acknowledged_ids: tell.map(({ id }) => id) } }];
}

/** What was asked before the newest message and not answered in full, and what is left of a slow answer to it. */
function cutOffBefore(messages: readonly Message[]) {
  const asked: string[] = [];
  const answers: string[] = [];
  for (const message of messages.slice(0, -1).reverse()) {
    if (message.role === "tools" || (message.role === "assistant" && message.truncated !== true)) break;
    if (message.role === "user") asked.unshift(message.text);
    else answers.unshift(message.text);
  }
  if (asked.length === 0) return undefined;
  const text = asked.find((words) => slowWordsIn(words) !== undefined) ?? asked[0] ?? "";
  const slow = slowWordsIn(text);
  if (slow === undefined) return { asked: text, slow };
  return { asked: text, slow: slow.slice(answers.reduce((so_far, answer) => spoken(slow, so_far, answer), 0)) };
}

/** How many of the words are spoken after this answer too, which may have said other things before it went on. */
function spoken(words: readonly string[], before: number, answer: string): number {
  const heard = answer.trim().split(/\s+/);
  for (let after = Math.min(words.length, before + heard.length); after > before; after -= 1) {
    const tail = heard.slice(before - after);
    if (tail.every((word, index) => word === words[before + index]?.trim())) return after;
  }
  return before;
}

function pieces(text: string): readonly string[] {
  return text === "" ? [] : text.split(/(?<=\s)/);
}

function tokens(text: string): number {
  return Math.ceil(text.length / 4);
}

function usage({ system, messages }: ModelRequest, said: string) {
  return { input: tokens(system + JSON.stringify(messages)), output: tokens(said) };
}
