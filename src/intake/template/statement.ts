/** Statements: text, prints, `if`, `for` and `set`. There are no others. */
import { TemplateError } from "./error.js";
import {
  compileExpression,
  compileNamespace,
  type Expression,
  isReserved,
  type Place,
  readExpression,
} from "./expression.js";
import { itemsOf } from "./filters.js";
import type { TemplateLimits } from "./limits.js";
import { cleaned, isTrue, itemOf, textOf } from "./operations.js";
import type { Output } from "./output.js";
import { type Evaluate, Namespace, type Run, Scope, UNSET } from "./run.js";
import type { Segment } from "./scan.js";
import { KEYWORDS, shown } from "./syntax.js";
import { FORBIDDEN_NAMES, isList, nameOf, ToonText, type Value } from "./value.js";

/** A statement as it is run: it writes. */
type Execute = (run: Run, output: Output) => void;

const SET = /^\s*([A-Za-z_]\w*)(?:\s*\.\s*([A-Za-z_]\w*))?\s*=(?!=)(.*)$/s;
const FOR = /^\s*([A-Za-z_]\w*)\s*(?:,\s*([A-Za-z_]\w*)\s*)?\bin\b(.*)$/s;
const WORD = /^\s*([A-Za-z_]\w*)\b/;

export function compileStatements(
  segments: readonly Segment[],
  template: string,
  limits: TemplateLimits,
  contextNames: readonly string[],
  scope: Scope,
): Execute {
  return new Statements(segments, template, limits, contextNames, scope).whole();
}

class Statements {
  readonly #segments: readonly Segment[];
  readonly #template: string;
  readonly #limits: TemplateLimits;
  readonly #names: ReadonlySet<string>;
  readonly #namesInLoop: ReadonlySet<string>;
  #scope: Scope;
  #next = 0;
  #depth = 0;
  #loops = 0;

  constructor(
    segments: readonly Segment[],
    template: string,
    limits: TemplateLimits,
    contextNames: readonly string[],
    scope: Scope,
  ) {
    this.#scope = scope;
    this.#segments = segments;
    this.#template = template;
    this.#limits = limits;
    this.#names = new Set([...contextNames, ...namesOf(segments)]);
    this.#namesInLoop = new Set([...this.#names, "loop"]);
  }

  whole(): Execute {
    const body = this.#body([], null);
    const extra = this.#segments[this.#next];
    if (extra !== undefined) throw this.#refusal(extra.line, `{% ${wordOf(extra)} %} closes nothing`);
    return body;
  }

  #refusal(line: number, reason: string): TemplateError {
    return new TemplateError("syntax", this.#template, line, reason);
  }

  #place(line: number): Place {
    const names = this.#loops > 0 ? this.#namesInLoop : this.#names;
    return { template: this.#template, limits: this.#limits, line, depth: this.#depth, names, scope: this.#scope };
  }

  #expression(source: string, line: number): Expression {
    const place = this.#place(line);
    return compileExpression(readExpression(source, place), place);
  }

  /** Everything up to one of `ends`, which is left to be read. */
  #body(ends: readonly string[], opener: Segment | null): Execute {
    if (this.#depth > this.#limits.depth)
      throw new TemplateError(
        "limit",
        this.#template,
        opener?.line ?? null,
        `blocks go deeper than ${this.#limits.depth} levels`,
      );
    this.#depth++;
    const parts: Execute[] = [];
    for (;;) {
      const segment = this.#segments[this.#next];
      if (segment === undefined) {
        if (opener !== null)
          throw this.#refusal(opener.line, `{% ${wordOf(opener)} %} is never closed with {% ${ends.at(-1)} %}`);
        break;
      }
      if (segment.kind === "statement" && isEnd(wordOf(segment))) {
        if (opener === null || ends.includes(wordOf(segment))) break;
        throw this.#refusal(
          segment.line,
          `{% ${wordOf(segment)} %} stands where ${ends.map((end) => `{% ${end} %}`).join(" or ")} is expected`,
        );
      }
      this.#next++;
      parts.push(this.#statement(segment));
    }
    this.#depth--;
    return (run, output) => {
      for (const part of parts) part(run, output);
    };
  }

  #statement(segment: Segment): Execute {
    const { kind, content, line } = segment;
    if (kind === "text")
      return (run, output) => {
        run.step();
        output.own(content);
      };
    if (kind === "print") return print(this.#expression(content, line), line);
    const word = wordOf(segment);
    const rest = content.slice(WORD.exec(content)?.[0].length ?? 0);
    switch (word) {
      case "if":
        return this.#if(segment, rest);
      case "for":
        return this.#for(segment, rest);
      case "set":
        return this.#set(rest, line);
      default:
        throw this.#refusal(line, `templates have no {% ${word} %}; there are if, for and set`);
    }
  }

  #if(opener: Segment, condition: string): Execute {
    const branches: { line: number; condition: Evaluate; body: Execute }[] = [];
    let otherwise: Execute | undefined;
    let [source, line] = [condition, opener.line];
    for (;;) {
      const { evaluate } = this.#expression(source, line);
      branches.push({ line, condition: evaluate, body: this.#body(["elif", "else", "endif"], opener) });
      const next = this.#take();
      if (wordOf(next) === "elif") {
        [source, line] = [next.content.slice(WORD.exec(next.content)?.[0].length ?? 0), next.line];
        continue;
      }
      if (wordOf(next) === "else") {
        this.#bare(next);
        otherwise = this.#body(["endif"], opener);
        this.#bare(this.#take());
      } else this.#bare(next);
      break;
    }
    return (run, output) => {
      for (const branch of branches) {
        run.step();
        run.line = branch.line;
        if (isTrue(run, branch.condition(run))) return branch.body(run, output);
      }
      otherwise?.(run, output);
    };
  }

  #for(opener: Segment, rest: string): Execute {
    const { line } = opener;
    const [, first, second, source] = FOR.exec(rest) ?? [];
    if (first === undefined || source === undefined) throw this.#refusal(line, "a loop is {% for name in list %}");
    const targets = second === undefined ? [first] : [first, second];
    for (const name of targets) this.#free(name, line);
    const place = this.#place(line);
    const node = readExpression(source, place);
    const filtered = node.type === "SelectExpression";
    const list = compileExpression(filtered ? node.lhs : node, place).evaluate;
    const outer = this.#scope;
    const scope = new Scope(outer);
    const slots = targets.map((name) => scope.give(name));
    const condition = filtered ? compileExpression(node.test, { ...place, scope }).evaluate : undefined;
    const loop = scope.give("loop");
    this.#loops++;
    this.#scope = scope;
    const body = this.#body(["else", "endfor"], opener);
    this.#scope = outer;
    this.#loops--;
    const asksLoop = scope.isAsked("loop");
    const given = scope.own.filter((slot) => slot !== loop && !slots.includes(slot));
    const closing = this.#take();
    this.#bare(closing);
    let otherwise: Execute | undefined;
    if (wordOf(closing) === "else") {
      otherwise = this.#body(["endfor"], opener);
      this.#bare(this.#take());
    }
    return (run, output) => {
      run.line = line;
      let items = itemsOf(run, list(run));
      if (condition !== undefined)
        items = items.filter((item) => {
          run.step(4);
          bind(run, targets, slots, item);
          return isTrue(run, condition(run));
        });
      for (let index = 0; index < items.length; index++) {
        run.step(4);
        run.line = line;
        // What the turn before has set is gone.
        for (const slot of given) run.slots[slot] = UNSET;
        bind(run, targets, slots, items[index]);
        if (asksLoop) run.slots[loop] = loopAt(index, items.length);
        body(run, output);
      }
      if (items.length === 0) otherwise?.(run, output);
    };
  }

  #set(rest: string, line: number): Execute {
    const [, name, field, source] = SET.exec(rest) ?? [];
    if (name === undefined || source === undefined)
      throw this.#refusal(line, "set is {% set name = value %} or, for a namespace, {% set name.field = value %}");
    this.#free(name, line);
    const place = this.#place(line);
    const node = readExpression(source, place);
    if (field === undefined) {
      const namespace = compileNamespace(node, place);
      const evaluate = namespace ?? compileExpression(node, place).evaluate;
      const slot = namespace === undefined ? this.#scope.give(name) : this.#scope.giveNamespace(name);
      return (run) => {
        run.step();
        run.line = line;
        run.slots[slot] = evaluate(run);
      };
    }
    if (FORBIDDEN_NAMES.has(field)) throw this.#refusal(line, `${shown(field)} is no name that a template may use`);
    const { evaluate } = compileExpression(node, place);
    const slots = this.#scope.find(name);
    return (run) => {
      run.step();
      run.line = line;
      const namespace = run.valueIn(slots);
      if (!(namespace instanceof Namespace))
        throw run.failure(`${name} is no namespace, and nothing else can be changed`);
      namespace.set(field, evaluate(run));
    };
  }

  #free(name: string, line: number): void {
    if (isReserved(name) || KEYWORDS.has(name)) throw this.#refusal(line, `${shown(name)} is a word of the language`);
  }

  /** The closing tag at which a body stopped. */
  #take(): Segment {
    const segment = this.#segments[this.#next++];
    if (segment === undefined) throw this.#refusal(1, "a block is never closed");
    return segment;
  }

  #bare(segment: Segment): void {
    if (segment.content.trim() !== wordOf(segment))
      throw this.#refusal(segment.line, `{% ${wordOf(segment)} %} takes nothing`);
  }
}

function wordOf(segment: Segment): string {
  return WORD.exec(segment.content)?.[1] ?? segment.content.trim().slice(0, 20);
}

function isEnd(word: string): boolean {
  return word === "elif" || word === "else" || word === "endif" || word === "endfor";
}

/** Every name that a `set` or a `for` of the template gives. */
function namesOf(segments: readonly Segment[]): string[] {
  return segments.flatMap((segment) => {
    if (segment.kind !== "statement") return [];
    const word = wordOf(segment);
    const rest = segment.content.slice(WORD.exec(segment.content)?.[0].length ?? 0);
    const found =
      word === "set" ? SET.exec(rest)?.slice(1, 2) : word === "for" ? FOR.exec(rest)?.slice(1, 3) : undefined;
    return found?.filter((name) => name !== undefined) ?? [];
  });
}

function print({ evaluate, own }: Expression, line: number): Execute {
  return (run, output) => {
    run.step();
    run.line = line;
    printValue(run, output, evaluate(run), own);
  };
}

function printValue(run: Run, output: Output, value: Value, own: boolean): void {
  if (value instanceof ToonText) output.toon(value);
  else if (own || value === null || typeof value === "number" || typeof value === "boolean")
    output.own(textOf(run, value));
  else output.data(cleaned(run, textOf(run, value)));
}

function bind(run: Run, targets: readonly string[], slots: readonly number[], item: Value): void {
  const [only] = slots;
  if (only !== undefined && slots.length === 1) {
    run.slots[only] = item;
    return;
  }
  if (!isList(item) || item.length !== targets.length)
    throw run.failure(`${nameOf(item)} cannot be taken apart into ${targets.join(" and ")}`);
  for (const [index, slot] of slots.entries()) run.slots[slot] = itemOf(run, item, index);
}

function loopAt(index0: number, length: number): Value {
  return {
    index: index0 + 1,
    index0,
    revindex: length - index0,
    revindex0: length - index0 - 1,
    first: index0 === 0,
    last: index0 === length - 1,
    length,
  };
}
