/** From the rows of a notification to its words: by its subscriber's template, or, where that fails, in general words. */
import type { NewEvent } from "../domain/event.js";
import type { Json } from "../domain/json.js";
import { LIMITS } from "../domain/limits.js";
import { generalWords } from "./subscriber.js";
import type { LoadedSubscriber } from "./subscribers/load.js";
import { TemplateError } from "./template/template.js";

/** One line of a notification: an event, and how often it came. */
export interface Row {
  readonly event: NewEvent;
  readonly count: number;
}

export interface Words {
  readonly content: string;
  /** Why these are not the template's words; null if they are. */
  readonly degraded: string | null;
}

/** A template that fails is no reason to lose an event. */
export function wordsOf(subscriber: LoadedSubscriber, rows: readonly Row[], now: string): Words {
  const template = rows.length > 1 ? subscriber.batch_template : subscriber.template;
  const events = rows.map(({ event, count }): Json => ({ ...event, timestamp: event.timestamp ?? now, count }));
  const { id, name, description } = subscriber;
  try {
    const content = template.render({
      event: events[0] ?? null,
      events,
      count: rows.reduce((sum, { count }) => sum + count, 0),
      subscriber: { id, name, description },
      now,
    });
    if (content.trim() !== "") return { content, degraded: null };
    return { content: generally(rows), degraded: `the template of ${id} gave no words` };
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    return { content: generally(rows), degraded: `the template of ${id} failed: ${error.message}` };
  }
}

function generally(rows: readonly Row[]): string {
  const lines = rows.map(({ event, count }) => `${generalWords(event)}${count > 1 ? ` (${count} times)` : ""}`);
  return lines.join("\n").slice(0, LIMITS.contentChars).toWellFormed();
}
