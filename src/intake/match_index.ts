import type { NewEvent } from "../domain/event.js";
import type { Subscriber } from "./subscriber.js";

/** Those that take a type, or a prefix of types. */
interface Takers {
  readonly fromAny: Subscriber[];
  readonly bySource: Map<string, Subscriber[]>;
}

/** Which subscribers take an event, at a cost that does not depend on how many do not. */
export class MatchIndex {
  readonly #byPattern = new Map<string, Takers>();

  constructor(subscribers: Iterable<Subscriber>) {
    for (const subscriber of subscribers) {
      if (!subscriber.enabled) continue;
      for (const pattern of new Set(subscriber.types)) this.#add(pattern, subscriber);
    }
  }

  #add(pattern: string, subscriber: Subscriber): void {
    let takers = this.#byPattern.get(pattern);
    if (takers === undefined) {
      takers = { fromAny: [], bySource: new Map() };
      this.#byPattern.set(pattern, takers);
    }
    if (subscriber.sources === null) takers.fromAny.push(subscriber);
    for (const source of new Set(subscriber.sources)) {
      const found = takers.bySource.get(source);
      if (found === undefined) takers.bySource.set(source, [subscriber]);
      else found.push(subscriber);
    }
  }

  /** By the type and each of its prefixes; each subscriber once. */
  matching({ type, source }: Pick<NewEvent, "type" | "source">): Subscriber[] {
    const found = new Set<Subscriber>();
    this.#collect(type, source, found);
    for (let dot = type.lastIndexOf("."); dot > 0; dot = type.lastIndexOf(".", dot - 1))
      this.#collect(`${type.slice(0, dot)}.*`, source, found);
    return [...found];
  }

  #collect(pattern: string, source: string, found: Set<Subscriber>): void {
    const takers = this.#byPattern.get(pattern);
    if (takers === undefined) return;
    for (const subscriber of takers.fromAny) found.add(subscriber);
    for (const subscriber of takers.bySource.get(source) ?? []) found.add(subscriber);
  }
}
