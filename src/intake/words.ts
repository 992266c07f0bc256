/** From the rows of a notification to its words: its subscriber's own, or, where those fail, general ones. */
import type { Event, NewEvent } from "../domain/event.js";
import type { Json } from "../domain/json.js";
import { LIMITS } from "../domain/limits.js";
import { isoTime } from "../domain/time.js";
import type { Row, Words } from "../store/contract.js";
import type { LoadedSubscriber } from "./subscribers/load.js";

/** Of a subscriber's file. A template that fails is no reason to lose an event. */
export function wordsOf(subscriber: LoadedSubscriber, rows: readonly Row[], now: number): Words {
  const template = rows.length > 1 ? subscriber.batch_template : subscriber.template;
  const events = rows.map(({ event, count, since }): Json => ({ ...event, count, since }));
  const { id, name, description } = subscriber;
  try {
    const content = template.render({
      event: events[0] ?? null,
      events,
      count: rows.reduce((sum, { count }) => sum + count, 0),
      subscriber: { id, name, description },
      now: isoTime(now),
    });
    if (content.trim() !== "") return { content, degraded: null };
    return generally(rows, `the template of ${id} gave no words`);
  } catch (error) {
    return generally(rows, `the template of ${id} failed: ${error instanceof Error ? error.message : String(error)}`);
  }
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

/** For want of better ones. */
export function generally(rows: readonly Row[], degraded: string): Words {
  const lines = rows.map((row) => `${generalWords(row.event)}${times(row)}`);
  return { content: bounded(lines.join("\n")), degraded };
}

function times({ count }: Row): string {
  return count > 1 ? ` (${count} times)` : "";
}

function bounded(text: string): string {
  return text.slice(0, LIMITS.contentChars).toWellFormed();
}

const WORDS_CHARS_MAX = 2_000;

/** What happened and to what, from any event. */
export function generalWords(event: NewEvent): string {
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
