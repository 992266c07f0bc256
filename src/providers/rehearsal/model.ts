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
import { type Command, commandsIn, isSilent, type Reading, readBlock, slowWordsIn, type Told } from "./reading.js";

const ACKNOWLEDGE = "acknowledge_notifications";
const WORD_MS = 50;
const OUTPUT_SHOWN = 200;

interface Answer {
  readonly text: string;
  /** Said one by one, with a pause before each, before the text. */
  readonly slow: readonly string[];
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
    const { text, slow, commands } = answerTo(request);
    yield { type: "started" };
    const room = request.max_tokens ?? Number.POSITIVE_INFINITY;
    let said = "";
    for (const [index, word] of [...slow, ...pieces(text)].entries()) {
      if (index < slow.length) await pause(WORD_MS, signal);
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
    return { text: "", slow: slowWords(slow, 0), commands };
  const reading = readBlock(newest.block?.text);
  const unfinished = reading.critical && newest.role === "user" ? unfinishedBefore(messages) : undefined;
  const lines = [
    ...(newest.role === "tools" ? newest.results.flatMap(resultLine) : []),
    ...(newest.role === "user" && commands.length === 0 && slow === undefined ? [`I read: "${asked}".`] : []),
    ...toldLines(reading, newest, commands.length > 0 || slow !== undefined),
    ...(unfinished !== undefined && unfinished.slow === undefined
      ? [`You had asked, and I was cut off: "${unfinished.asked}".`]
      : []),
  ];
  const words = slow === undefined ? slowWords(unfinished?.slow, unfinished?.said ?? 0) : slowWords(slow, 0);
  return {
    text: lines.join("\n"),
    slow: words,
    commands: [...commands, ...reading.commands, ...acknowledgement(reading, request)],
  };
}

function toldLines({ notifications, tell }: Reading, newest: Message, busy: boolean): readonly string[] {
  const narrated = tell.map((told) => `You should know: ${named(told)}.`);
  const rest = notifications.filter(({ id }) => !tell.some((told) => told.id === id));
  if (rest.length > 0) return [...narrated, `I was told of ${rest.length}: ${rest.map(named).join("; ")}.`];
  if (tell.length > 0 || newest.role === "tools" || busy) return narrated;
  return ["There are no notifications."];
}

function named({ id, words }: Told): string {
  return words === "" ? id : `${words} (${id})`;
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

/** What was asked before the newest message and not answered in full. */
function unfinishedBefore(messages: readonly Message[]) {
  const asked: string[] = [];
  let said = 0;
  let cut = false;
  for (const message of messages.slice(0, -1).reverse()) {
    if (message.role === "tools" || (message.role === "assistant" && message.truncated !== true)) break;
    if (message.role === "user") asked.unshift(message.text);
    else said += message.text.match(/\bword-\d+/g)?.length ?? 0;
    cut = true;
  }
  if (!cut || asked.length === 0) return undefined;
  const text = asked.find((words) => slowWordsIn(words) !== undefined) ?? asked[0] ?? "";
  return { asked: text, slow: slowWordsIn(text), said };
}

function slowWords(count: number | undefined, said: number): readonly string[] {
  return Array.from({ length: Math.max(0, (count ?? 0) - said) }, (_, index) => `word-${said + index + 1} `);
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
