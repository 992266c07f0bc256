import { type NewEvent, namesOfType } from "../domain/event.js";
import type { Subscriber } from "./subscriber.js";

/** Those that take a type, or a prefix of types. */
interface Takers {
  readonly fromAny: Subscriber[];
  readonly bySource: Map<string, Subscriber[]>;
}

const KNOWN_MAX = 1_024;

/** Which subscribers take an event, at a cost that does not depend on how many do not. */
export class MatchIndex {
  readonly #byPattern = new Map<string, Takers>();
  /** What was found before: type to source to those that take it. Producers send the same few types. */
  readonly #known = new Map<string, Map<string, readonly Subscriber[]>>();
  #kept = 0;

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

  matching({ type, source }: Pick<NewEvent, "type" | "source">): readonly Subscriber[] {
    const known = this.#known.get(type)?.get(source);
    if (known !== undefined) return known;
    const found = this.#find(type, source);
    this.#keep(type, source, found);
    return found;
  }

  #keep(type: string, source: string, found: readonly Subscriber[]): void {
    if (this.#kept >= KNOWN_MAX) {
      this.#known.clear();
      this.#kept = 0;
    }
    let bySource = this.#known.get(type);
    if (bySource === undefined) {
      bySource = new Map();
      this.#known.set(type, bySource);
    }
    bySource.set(source, found);
    this.#kept += 1;
  }

  /** By each of its names; each subscriber once. */
  #find(type: string, source: string): Subscriber[] {
    const found = new Set<Subscriber>();
    for (const name of namesOfType(type)) this.#collectAll(name, source, found);
    return [...found];
  }

  /** By the type and each of its prefixes. */
  #collectAll(type: string, source: string, found: Set<Subscriber>): void {
    this.#collect(type, source, found);
    for (let dot = type.lastIndexOf("."); dot > 0; dot = type.lastIndexOf(".", dot - 1))
      this.#collect(`${type.slice(0, dot)}.*`, source, found);
  }

  #collect(pattern: string, source: string, found: Set<Subscriber>): void {
    const takers = this.#byPattern.get(pattern);
    if (takers === undefined) return;
    for (const subscriber of takers.fromAny) found.add(subscriber);
    for (const subscriber of takers.bySource.get(source) ?? []) found.add(subscriber);
  }
}
