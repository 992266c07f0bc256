/** One call of a stateful tool while it runs or waits. */
import { InvalidInputError } from "../../domain/errors.js";
import type { HandleDetail, HandleState } from "../../domain/handle.js";
import type { ThreadId, UserId } from "../../domain/ids.js";
import { type JsonObject, jsonText, takeJson } from "../../domain/json.js";
import { LIMITS } from "../../domain/limits.js";
import { copied } from "../../domain/text.js";
import { answerText } from "../answer_text.js";
import { type Deferred, deferred } from "../deferred.js";
import type { ToolFiles } from "../workspace/tool_files.js";
import { OutputLog } from "./output_log.js";
import { type Handle, HandleError, type StatefulTool } from "./stateful_tool.js";

export interface Spawned {
  readonly id: string;
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
  readonly tool: StatefulTool;
  readonly files: ToolFiles;
}

/** What it is doing now. */
export interface LiveState {
  readonly state: Extract<HandleState, "running" | "waiting">;
  readonly question: string | null;
}

/** How it came to its end. */
export interface Ending {
  readonly state: Extract<HandleState, "stopped" | "failed">;
  readonly detail: HandleDetail;
}

const WORDS_CHARS_MAX = 32_768;
/** Of an answer that is none. */
const SHOWN_CHARS = 100;
const UNKEPT = "its data cannot be kept";

export class LiveHandle {
  readonly id: string;
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
  readonly tool: StatefulTool;
  readonly #files: ToolFiles;
  readonly log = new OutputLog();
  /** Resolves when what has come of it is on disk. */
  readonly over: Deferred<void> = deferred();
  /** The entry that says that it waits; null while it does not. */
  waiting_generation: number | null = null;
  /** Resolves when what it waits for is on disk. */
  recorded: Promise<void> = Promise.resolve();
  settled = false;
  /** The entry that says what has come of it; null while there is none. */
  over_generation: number | null = null;
  /** Whoever ends it knows that it ends. */
  quiet = false;
  readonly #abort = new AbortController();
  readonly #asked: (handle: LiveHandle) => void;
  #question: { readonly text: string; readonly answer: Deferred<string> } | null = null;
  #input: ((text: string) => void) | null = null;

  /** `asked`: what it is doing has changed. */
  constructor({ id, thread_id, user_id, tool, files }: Spawned, asked: (handle: LiveHandle) => void) {
    this.id = id;
    this.thread_id = thread_id;
    this.user_id = user_id;
    this.tool = tool;
    this.#files = files;
    this.#asked = asked;
  }

  get now(): LiveState {
    if (this.#question === null) return { state: "running", question: null };
    return { state: "waiting", question: this.#question.text };
  }

  /** Runs the tool to its end, whichever that is. */
  async run(input: unknown): Promise<Ending> {
    try {
      const { result, data } = outcomeOf(await this.tool.spawn(input, this.#control()));
      // What took no notice of its end has come to nothing all the same.
      if (this.#abort.signal.aborted) return this.#failed(this.#abort.signal.reason);
      return { state: "stopped", detail: { result: words(result), ...this.#said(), ...taken(data) } };
    } catch (error) {
      return this.#failed(this.#abort.signal.aborted ? this.#abort.signal.reason : error);
    }
  }

  /** It is wanted no more: it is asked to end, and this is why. */
  abort(reason: string): void {
    this.#abort.abort(new HandleError(reason));
    this.#question?.answer.reject(new HandleError(reason));
  }

  /** What it has come to, if it takes no notice. */
  left(): Ending {
    return this.#failed(this.#abort.signal.reason);
  }

  /** Text from the agent: an answer if it waits for one. Throws where it takes none. */
  apply(text: string): "answered" | "sent" {
    const question = this.#question;
    if (question !== null) {
      this.#question = null;
      question.answer.resolve(text);
      return "answered";
    }
    if (this.#input === null) throw new HandleError("it asked nothing, and takes no input");
    this.#input(text);
    return "sent";
  }

  #failed(error: unknown): Ending {
    let message = wordsOf(error);
    let transient = false;
    let data: Pick<HandleDetail, "data"> = {};
    try {
      const known = error instanceof HandleError ? error : null;
      transient = known?.transient === true;
      data = taken(known?.data);
    } catch (wrong) {
      message += `\n(${wordsOf(wrong)})`;
    }
    return { state: "failed", detail: { error: { message, transient }, ...this.#said(), ...data } };
  }

  #said(): Pick<HandleDetail, "output"> {
    const { text } = this.log;
    return text === "" ? {} : { output: text };
  }

  #control(): Handle {
    return {
      id: this.id,
      thread_id: this.thread_id,
      user_id: this.user_id,
      signal: this.#abort.signal,
      files: this.#files,
      output: (text) => this.log.add(String(text)),
      ask: (text) => this.#ask(words(text)),
      onInput: (listener) => {
        this.#input = listener;
      },
    };
  }

  #ask(text: string): Promise<string> {
    const answer = deferred<string>();
    // Whoever asks may be at something else when there is to be no answer.
    answer.promise.catch(() => undefined);
    if (this.#abort.signal.aborted) answer.reject(this.#abort.signal.reason);
    else if (this.settled) answer.reject(new HandleError("it has stopped"));
    else if (this.#question !== null) answer.reject(new HandleError("one question at a time"));
    else {
      this.#question = { text, answer };
      this.#asked(this);
    }
    return answer.promise;
  }
}

/** Its words, and what it says beside them. */
function outcomeOf(answer: unknown): { readonly result: string; readonly data?: unknown } {
  if (typeof answer !== "object") return { result: answerText(answer) };
  if (answer === null || !("result" in answer))
    throw new HandleError(
      `it answered ${answerText(answer).slice(0, SHOWN_CHARS).toWellFormed()}; it must answer text, or an object with \`result\``,
    );
  return { result: answerText(answer.result), data: "data" in answer ? answer.data : undefined };
}

/** What a tool says beside its words, as it can be kept: nobody has it any more, and it has a bound. */
function taken(data: unknown): Pick<HandleDetail, "data"> {
  if (data === undefined) return {};
  let copy: JsonObject;
  try {
    copy = takeJson(data, "data");
  } catch (error) {
    throw new HandleError(`${UNKEPT}: ${error instanceof InvalidInputError ? error.reason : wordsOf(error)}`);
  }
  if (Buffer.byteLength(jsonText(copy)) > LIMITS.payloadBytes)
    throw new HandleError(`${UNKEPT}: is larger than ${LIMITS.payloadBytes} bytes`);
  return Object.keys(copy).length === 0 ? {} : { data: copy };
}

/** Of whatever was thrown. */
function wordsOf(error: unknown): string {
  try {
    return words(error instanceof Error ? error.message : error);
  } catch {
    return "it failed with something that there are no words for";
  }
}

function words(text: unknown): string {
  const whole = String(text);
  if (whole.length <= WORDS_CHARS_MAX) return whole.toWellFormed();
  return `${copied(whole.slice(0, WORDS_CHARS_MAX)).toWellFormed()}\n(cut off here: it had ${whole.length} characters)`;
}
