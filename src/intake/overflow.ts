/** The words of the summary that stands for what was too much: how many were folded into it, and of what. */
import type { Json } from "../domain/json.js";
import { isoTime } from "../domain/time.js";
import type { Row, Words } from "../store/contract.js";
import { compileTemplate } from "./template/template.js";
import { generally } from "./words.js";

const TEMPLATE = compileTemplate(
  `folded: {{ event.payload.notifications }} older notifications ({{ event.payload.events }} events) were folded into this one - too much is waiting here
{{ toon({"kinds": event.payload.kinds}) }}
next: read one by one what still matters with notification/list - state SUPPRESSED, reason folded`,
  "overflow",
);

export function overflowWords(rows: readonly Row[], now: number): Words {
  const events = rows.map(({ event, count, since }): Json => ({ ...event, count, since }));
  const subscriber = { id: "overflow", name: "Overflow", description: "Stands for what was too much" };
  try {
    const content = TEMPLATE.render({
      event: events.at(-1) ?? null,
      events,
      count: rows.length,
      subscriber,
      now: isoTime(now),
    });
    return { content, degraded: null };
  } catch (error) {
    return generally(rows, error instanceof Error ? error.message : String(error));
  }
}
