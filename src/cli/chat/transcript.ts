/** A conversation in words: messages as they are made, tool calls, what the system shows, what the agent was told. */
import type { Told } from "../../client/told.js";
import type { NotificationView } from "../../domain/notification.js";
import type { ThreadItem } from "../../runtime/thread_items.js";
import { GO_ON } from "../../runtime/words.js";
import type { Output, Style } from "../output.js";
import { mark } from "../show.js";
import { cut, harmless, oneLine } from "../text.js";

/** Where it is written to. */
export interface Page {
  /** At the cursor, which may be within a line. */
  write(text: string): void;
}

export interface TranscriptOptions {
  readonly page: Page;
  readonly output: Output;
  /** Whether answers are shown as they come, or when they are whole. */
  readonly streams: boolean;
  /** Whether somebody here has said this. */
  isOurs(words: string): boolean;
  /** The user is shown a notification. */
  shown?(notification: NotificationView): void;
}

const AGENT = "agent › ";
const YOU = "you › ";
const WIDEST = 160;
const INPUT_COLUMNS = 60;
const RESULT_COLUMNS_MIN = 24;

export class Transcript {
  readonly #options: TranscriptOptions;
  readonly #output: Output;
  /** What stands in the line that is not ended: an answer, or the item of a call. Null at the start of a line. */
  #line: string | null = null;
  /** What was streamed and is not yet known to be whole, by turn. */
  readonly #streamed = new Map<string, string>();
  /** Words for a running turn: when it takes them up, they are a message that was seen already. */
  readonly #steers: string[] = [];
  /** The revisions of notices that were shown. */
  readonly #revisions = new Map<string, number>();
  #held: Told[] | null = null;
  /** The notification that was shown or told of last. */
  latest: string | null = null;

  constructor(options: TranscriptOptions) {
    this.#options = options;
    this.#output = options.output;
  }

  /** From now on nothing is shown, until `release`. */
  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const told of held) this.take(told);
  }

  take(told: Told): void {
    if (this.#held === null) this.#show(told);
    else this.#held.push(told);
  }

  #show(told: Told): void {
    switch (told.method) {
      case "turn/progress":
        if (this.#options.streams) this.#stream(told.params.turn_id, told.params.delta);
        return;
      case "item/created":
        this.item(itemOf(told));
        return;
      case "item/updated":
        this.#changed(itemOf(told));
        return;
      case "turn/interrupted": {
        const { turn_id, message, continued_by } = told.params;
        const why = harmlessLine(message);
        this.note(continued_by === null ? "the turn was stopped" : `the turn was cut off: ${why}; the agent goes on`);
        this.#streamed.delete(turn_id);
        return;
      }
      case "turn/failed":
        this.line(this.#output.style("red", `✖ the turn failed: ${harmlessLine(told.params.message)}`));
        this.#streamed.delete(told.params.turn_id);
        return;
      case "turn/completed":
        this.endLine();
        this.#streamed.delete(told.params.turn_id);
        return;
      case "thread/paused":
        this.note("the agent rests; /resume wakes it");
        return;
      case "thread/resumed":
        this.note("the agent goes on");
        return;
      case "thread/closed":
        this.note("the conversation is closed");
        return;
      case "notification/created": {
        const { notification } = told.params;
        this.latest = notification.id;
        this.note(`in your inbox: ${harmlessLine(notification.content)}`);
      }
    }
  }

  /** An item as it is now. */
  item(item: ThreadItem): void {
    switch (item.type) {
      case "message":
        this.#message(item);
        return;
      case "tool_call":
        this.#call(item);
        return;
      case "notice":
        this.#notice(item.content.notification);
        return;
      case "observation":
        this.latest = item.content.notification_id;
        this.note(`told the agent: ${harmlessLine(item.content.text)}`);
        return;
      // Whoever said it here has seen it already.
      case "queued":
        return;
      case "steer":
        this.#said(item.content.text);
        this.#steers.push(item.content.text);
    }
  }

  #changed(item: ThreadItem): void {
    if (item.type === "notice") this.#notice(item.content.notification);
    if (item.type === "tool_call") this.#call(item);
  }

  #message({ role, status, content, turn_id }: ThreadItem & { type: "message" }): void {
    const { text } = content;
    if (role === "system") {
      // Words for the model. What it is told of is shown for itself, in the words of the notification.
      if (text === GO_ON) this.note("the answer was cut off by an error of the provider; the agent goes on");
      return;
    }
    if (role === "user") {
      const at = this.#steers.indexOf(text);
      if (at >= 0) this.#steers.splice(at, 1);
      else this.#said(text);
      return;
    }
    this.#answer(turn_id ?? "", text);
    if (status === "interrupted") this.note("… it was cut off here");
  }

  /** By somebody else who speaks in this conversation, or before. */
  #said(text: string): void {
    if (!this.#options.isOurs(text)) this.line(`${this.#output.style("green", YOU)}${harmless(text)}`);
  }

  #stream(turn_id: string, delta: string): void {
    const before = this.#streamed.get(turn_id) ?? "";
    this.#streamed.set(turn_id, before + delta);
    // Nothing is shown of an answer before its first word.
    if ((before + delta).trim() !== "") this.#speak(turn_id, before.trim() === "" ? before + delta : delta);
  }

  /** The whole of it: what was not streamed of it is shown now. */
  #answer(turn_id: string, text: string): void {
    const streamed = this.#streamed.get(turn_id) ?? "";
    if (streamed.startsWith(text)) this.#streamed.set(turn_id, streamed.slice(text.length));
    else {
      this.#streamed.delete(turn_id);
      const rest = text.startsWith(streamed) ? text.slice(streamed.length) : text;
      if (rest === text) this.endLine();
      this.#speak(turn_id, rest);
    }
    this.endLine();
  }

  #speak(turn_id: string, text: string): void {
    if (this.#line !== turn_id) {
      this.endLine();
      this.#options.page.write(this.#output.terminal ? this.#output.style("cyan", AGENT) : "");
      this.#line = turn_id;
    }
    this.#options.page.write(harmless(text));
  }

  #call({ item_id, status, content }: ThreadItem & { type: "tool_call" }): void {
    const { name, input, output } = content;
    const asked = cut(harmlessLine(JSON.stringify(input)), INPUT_COLUMNS);
    const head = `⚙ ${harmlessLine(name)} ${asked}`;
    if (output === null) {
      // Where nobody waits for it, it is shown with its result.
      if (!this.#options.streams) return;
      this.endLine();
      this.#options.page.write(this.#output.style("gray", head));
      this.#line = item_id;
      return;
    }
    const first = harmlessLine(output.trim().split("\n", 1)[0]) || "(nothing)";
    const room = Math.max(RESULT_COLUMNS_MIN, this.#output.columns(WIDEST) - head.length - 3);
    const result = this.#output.style(status === "failed" ? "red" : "gray", ` → ${cut(first, room)}`);
    if (this.#line === item_id) this.#options.page.write(`${result}\n`);
    else this.line(`${this.#output.style("gray", head)}${result}`);
    this.#line = null;
  }

  #notice(notification: NotificationView): void {
    const { id, revision, severity, content } = notification;
    if ((this.#revisions.get(id) ?? 0) >= revision) return;
    this.#revisions.set(id, revision);
    this.latest = id;
    this.line(`[${mark(severity, this.#output)} ${harmlessLine(content)}]`);
    this.#options.shown?.(notification);
  }

  /** A remark beside the conversation. */
  note(text: string, style: Style = "gray"): void {
    this.line(this.#output.style(style, cut(text, this.#output.columns(WIDEST))));
  }

  line(text: string): void {
    this.endLine();
    this.#options.page.write(`${text}\n`);
  }

  endLine(): void {
    if (this.#line === null) return;
    this.#line = null;
    this.#options.page.write("\n");
  }
}

/** As `thread/read` has it; the wire's `type` says what happened to it. */
function itemOf({ params }: Told<"item/created" | "item/updated">): ThreadItem {
  return { ...params, type: params.item_type } as ThreadItem;
}

function harmlessLine(text: unknown): string {
  return oneLine(String(text ?? ""));
}
