import { TemplateError } from "./error.js";
import { TEXT_FACTOR, type TemplateLimits } from "./limits.js";
import type { Value } from "./value.js";

/** `{% set ns = namespace(rows=[]) %}`: the one thing that changes. It is no value: only its fields are. */
export class Namespace extends Map<string, Value> {}

/** What a name is before it is given a value. */
export const UNSET: unique symbol = Symbol("unset");
type Slot = Value | Namespace | typeof UNSET;

/**
 * The names that can be given a value in one scope, as the compiler meets them: each has a slot of its own in a rendering.
 * A loop's turn has a scope of its own, as in Jinja.
 */
export class Scope {
  readonly #outer: Scope | null;
  readonly #slots = new Map<string, number>();
  /** Of the whole template. */
  readonly #template: { slots: number; readonly namespaces: Set<string> };
  readonly #asked = new Set<string>();

  constructor(outer: Scope | null) {
    this.#outer = outer;
    this.#template = outer === null ? { slots: 0, namespaces: new Set() } : outer.#template;
  }

  /** How many slots the template needs, as far as it is compiled. */
  get size(): number {
    return this.#template.slots;
  }

  /** The slots of this scope alone. */
  get own(): number[] {
    return [...this.#slots.values()];
  }

  /** The slot of a name that is given a value in this scope. */
  give(name: string): number {
    let slot = this.#slots.get(name);
    if (slot === undefined) {
      slot = this.#template.slots;
      this.#template.slots += 1;
      this.#slots.set(name, slot);
    }
    return slot;
  }

  giveNamespace(name: string): number {
    this.#template.namespaces.add(name);
    return this.give(name);
  }

  /** Where its value may be, the innermost first. What is given one further on in the template has none yet. */
  find(name: string): readonly number[] {
    const slots: number[] = [];
    for (let scope: Scope | null = this; scope !== null; scope = scope.#outer) {
      const slot = scope.#slots.get(name);
      if (slot === undefined) continue;
      slots.push(slot);
      scope.#asked.add(name);
    }
    return slots;
  }

  /** Whether anything may ask for the value that a name has in this scope. */
  isAsked(name: string): boolean {
    return this.#asked.has(name);
  }

  mayBeNamespace(name: string): boolean {
    return this.#template.namespaces.has(name);
  }
}

/**
 * One rendering: what it may still use, and where it is. A template has one for all of its renderings, which follow each
 * other: code that the engine has optimised for objects of a kind lasts as long as there is one.
 */
export class Run {
  readonly limits: TemplateLimits;
  /** Of one text that is made on the way. */
  readonly textChars: number;
  now = "";
  /** Whether every value is of parsed JSON, or was made here: none can be a getter. */
  plain = false;
  readonly slots: Slot[];
  line: number | null = null;
  readonly #template: string;
  #steps = 0;

  constructor(template: string, limits: TemplateLimits, slots: number) {
    this.#template = template;
    this.limits = limits;
    this.textChars = limits.outputChars * TEXT_FACTOR;
    this.slots = new Array<Slot>(slots).fill(UNSET);
  }

  begin(now: string, plain: boolean): void {
    this.now = now;
    this.plain = plain;
    this.line = null;
    this.#steps = this.limits.steps;
  }

  /** Nothing is kept. */
  clear(): void {
    // `fill` takes longer.
    for (let slot = 0; slot < this.slots.length; slot += 1) this.slots[slot] = UNSET;
  }

  /** The value in the first of the slots that has one. */
  valueIn(slots: readonly number[]): Value | Namespace {
    for (let index = 0; index < slots.length; index += 1) {
      const value = this.slots[slots[index] as number];
      if (value !== UNSET) return value;
    }
    return undefined;
  }

  step(cost = 1): void {
    this.#steps -= cost;
    if (this.#steps < 0) throw this.overrun(`takes more than ${this.limits.steps} steps`);
  }

  affords(cost: number): boolean {
    return cost <= this.#steps;
  }

  /** May a text be that long? */
  within(chars: number): void {
    if (chars > this.textChars) throw this.overrun(`makes a text of more than ${this.textChars} characters`);
  }

  /** Before a text is made. */
  making(chars: number): void {
    this.within(chars);
    this.step(chars / 64);
  }

  made(text: string): string {
    this.making(text.length);
    return text;
  }

  finite(number: number): number {
    if (!Number.isFinite(number)) throw this.failure("a calculation gives no finite number");
    return number;
  }

  failure(reason: string): TemplateError {
    return new TemplateError("runtime", this.#template, this.line, reason);
  }

  overrun(reason: string): TemplateError {
    return new TemplateError("limit", this.#template, this.line, reason);
  }
}

/** An expression as it is run. */
export type Evaluate = (run: Run) => Value;
