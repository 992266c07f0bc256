/** From the rows of a notification to its words: its subscriber's own, or, where those fail, general ones. */
import { encode } from "@toon-format/toon";
import { cleanText } from "../domain/clean.js";
import type { Event, NewEvent } from "../domain/event.js";
import type { Json } from "../domain/json.js";
import { LIMITS } from "../domain/limits.js";
import { isoTime } from "../domain/time.js";
import type { Row, Words } from "../store/contract.js";
import type { LoadedSubscriber } from "./subscribers/load.js";
import { TemplateError } from "./template/error.js";

/** Where a template failed. */
export interface TemplateFailure {
  readonly template: string;
  /** Null if no single line is at fault. */
  readonly line: number | null;
  readonly reason: string;
}

/** Words, and what is wrong with the template if they are not its own. */
export interface TriedWords extends Words {
  readonly error: TemplateFailure | null;
}

/** Of a subscriber's file. A template that fails is no reason to lose an event. */
export function wordsOf(subscriber: LoadedSubscriber, rows: readonly Row[], now: number): Words {
  const { content, degraded } = tryWordsOf(subscriber, rows, now);
  return { content, degraded };
}

export function tryWordsOf(subscriber: LoadedSubscriber, rows: readonly Row[], now: number): TriedWords {
  const template = rows.length > 1 ? subscriber.batch_template : subscriber.template;
  const events = rows.map(eventOf);
  const { id, name, description } = subscriber;
  try {
    const content = template.render(
      {
        event: events[0] ?? null,
        events,
        count: rows.reduce((sum, { count }) => sum + count, 0),
        subscriber: { id, name, description },
        now: isoTime(now),
      },
      true,
    );
    if (!NOTHING.has(content.trim())) return { content, degraded: null, error: null };
    return { ...generally(rows, `the template of ${id} gave no words`), error: null };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const failure = error instanceof TemplateError ? failureOf(error) : null;
    return { ...generally(rows, `the template of ${id} failed: ${message}`), error: failure };
  }
}

/** No text, and the text that says nothing: all that was printed is a value that is not there. */
const NOTHING: ReadonlySet<string> = new Set(["", '""']);

function failureOf({ template, line, reason }: TemplateError): TemplateFailure {
  return { template, line, reason };
}

/** A row as a template sees it. Field by field, since a spread takes ten times as long. */
export function eventOf({ event, count, since }: Row): Json {
  return {
    id: event.id,
    producer_id: event.producer_id,
    type: event.type,
    source: event.source,
    severity: event.severity,
    timestamp: event.timestamp,
    payload: event.payload,
    dedupe_key: event.dedupe_key,
    user_id: event.user_id,
    thread_id: event.thread_id,
    subject: event.subject,
    count,
    since,
  };
}

/** Of a program's subscriber: a line for each row. It may say anything, or throw. */
export function lineWords(id: string, say: (event: Event) => string, rows: readonly Row[]): Words {
  const lines: string[] = [];
  try {
    for (const row of rows) {
      const said: unknown = say(row.event);
      if (typeof said !== "string" || said === "") return generally(rows, `the words of ${id} are no text`);
      lines.push(rows.length === 1 ? said : `${said}${times(row)}`);
    }
  } catch (error) {
    return generally(rows, `the words of ${id} failed: ${error instanceof Error ? error.message : String(error)}`);
  }
  return { content: bounded(lines.join("\n")), degraded: null };
}

/** For want of better ones, `degraded` says why; in TOON, as a template's would be. */
export function generally(rows: readonly Row[], degraded: string | null): Words {
  const room = Math.floor(LIMITS.contentChars / 4 / rows.length);
  const lines = rows.map((row) => cleanText(`${generalWords(row.event)}${times(row)}`.slice(0, room)));
  return { content: bounded(encode(rows.length === 1 ? { notice: lines[0] ?? "" } : { notices: lines })), degraded };
}

function times({ count }: Row): string {
  return count > 1 ? ` (${count} times)` : "";
}

function bounded(text: string): string {
  return text.slice(0, LIMITS.contentChars).toWellFormed();
}

const WORDS_CHARS_MAX = 2_000;

/** What happened and to what, from any event. */
function generalWords(event: NewEvent): string {
  const { payload } = event;
  const about = [payload["tool_name"], payload["server"], payload["budget_type"], event.subject].find(isWord);
  const said = [payload["message"], payload["error_message"], payload["pattern"], payload["reason"]].find(isWord);
  const detail = said ?? (Object.keys(payload).length === 0 ? undefined : JSON.stringify(payload));
  const head = `${event.type}${about === undefined ? "" : ` ${about}`} (from ${event.source})`;
  return (detail === undefined ? head : `${head}: ${detail}`).slice(0, WORDS_CHARS_MAX);
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && value.length > 0;
}
