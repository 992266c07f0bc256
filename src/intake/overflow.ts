/** The words of the summary that stands for what was too much: how many were folded into it, and of what. */
import { isoTime } from "../domain/time.js";
import type { Row, Words } from "../store/contract.js";
import { compileTemplate } from "./template/template.js";
import { eventOf, generally } from "./words.js";

const TEMPLATE = compileTemplate(
  `folded: {{ event.payload.notifications }} older notifications ({{ event.payload.events }} events) were folded into this one - too much is waiting here
{{ toon({"kinds": event.payload.kinds}) }}
next: nothing is lost - everything that was folded is kept, and can be asked for one by one`,
  "overflow",
);

export function overflowWords(rows: readonly Row[], now: number): Words {
  const events = rows.map(eventOf);
  const subscriber = { id: "overflow", name: "Overflow", description: "Stands for what was too much" };
  try {
    const content = TEMPLATE.render(
      {
        event: events.at(-1) ?? null,
        events,
        count: rows.length,
        subscriber,
        now: isoTime(now),
      },
      true,
    );
    return { content, degraded: null };
  } catch (error) {
    return generally(rows, error instanceof Error ? error.message : String(error));
  }
}
