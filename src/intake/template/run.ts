import { TemplateError } from "./error.js";
import { TEXT_FACTOR, type TemplateLimits } from "./limits.js";
import type { Value } from "./value.js";

/** `{% set ns = namespace(rows=[]) %}`: the one thing that changes. It is no value: only its fields are. */
export class Namespace {
  readonly fields = new Map<string, Value>();
}

/** Names and their values; a loop's turn has a scope of its own, as in Jinja. */
export class Scope {
  readonly #names = new Map<string, Value | Namespace>();
  readonly outer: Scope | null;

  constructor(outer: Scope | null) {
    this.outer = outer;
  }

  get(name: string): Value | Namespace {
    for (let scope: Scope | null = this; scope !== null; scope = scope.outer) {
      const value = scope.#names.get(name);
      if (value !== undefined || scope.#names.has(name)) return value;
    }
    return undefined;
  }

  set(name: string, value: Value | Namespace): void {
    this.#names.set(name, value);
  }
}

/** One rendering: what it may still use, and where it is. */
export class Run {
  readonly limits: TemplateLimits;
  readonly now: string;
  scope = new Scope(null);
  line: number | null = null;
  readonly #template: string;
  #steps: number;

  constructor(template: string, limits: TemplateLimits, now: string) {
    this.#template = template;
    this.limits = limits;
    this.now = now;
    this.#steps = limits.steps;
  }

  step(cost = 1): void {
    this.#steps -= cost;
    if (this.#steps < 0) throw this.overrun(`takes more than ${this.limits.steps} steps`);
  }

  /** May a text be that long? */
  within(chars: number): void {
    const max = this.limits.outputChars * TEXT_FACTOR;
    if (chars > max) throw this.overrun(`makes a text of more than ${max} characters`);
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
