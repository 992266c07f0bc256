import type { Event, NewEvent } from "../../domain/event.js";
import type { EventId } from "../../domain/ids.js";
import type { Connection, Statement } from "./connection.js";

/** Which event a producer's id stands for. */
export class ProducerIds {
  readonly #insert: Statement;
  readonly #find: Statement;

  constructor(connection: Connection) {
    this.#insert = connection.prepare(
      "INSERT INTO producer_ids (user_id, source, producer_id, event_id, digest) VALUES (?, ?, ?, ?, ?)",
    );
    this.#find = connection.prepare(
      "SELECT event_id, digest FROM producer_ids WHERE user_id = ? AND source = ? AND producer_id = ?",
    );
  }

  /** `digest` is of the event's body: the same id with another body is a conflict. */
  insert(event: Event, digest: string): void {
    this.#insert.run(event.user_id, event.source, event.producer_id, event.id, digest);
  }

  find(event: NewEvent): { event_id: EventId; digest: string } | undefined {
    return this.#find.get(event.user_id, event.source, event.producer_id) as
      | { event_id: EventId; digest: string }
      | undefined;
  }
}
