/**
 * Expressions, compiled into closures that count their steps. What the language does not have is refused here, with its
 * line, before anything is rendered.
 */
import { TemplateError } from "./error.js";
import { FILTERS, pick } from "./filters.js";
import { type Callable, FUNCTIONS } from "./functions.js";
import type { TemplateLimits } from "./limits.js";
import { characters, fieldOf, isTrue, itemOf, lookup, textOf } from "./operations.js";
import { type Evaluate, Namespace, type Run, type Scope, UNSET } from "./run.js";
import { type Node, parseExpression, shown } from "./syntax.js";
import { COMPARISONS, TESTS } from "./tests.js";
import { FORBIDDEN_NAMES, isList, nameOf, ToonText, type Value } from "./value.js";

/** What the compiler knows of its place in the template. */
export interface Place {
  readonly template: string;
  readonly limits: TemplateLimits;
  readonly line: number;
  /** Levels above it. */
  readonly depth: number;
  /** Every name that the template can know there. */
  readonly names: ReadonlySet<string>;
  readonly scope: Scope;
}

export interface Expression {
  readonly evaluate: Evaluate;
  /** Whatever it gives was written in the template: a text in quotes, or a choice among such. */
  readonly own: boolean;
}

const LITERALS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
  ["null", null],
]);

/** Names that a template may not give to something of its own. */
export function isReserved(name: string): boolean {
  return LITERALS.has(name) || FUNCTIONS.has(name) || name === "loop" || name === "namespace";
}

export function readExpression(source: string, place: Place): Node {
  return parseExpression(source, place.template, place.line, place.limits.depth);
}

export function compileExpression(node: Node, place: Place): Expression {
  return { evaluate: new Compiler(place).compile(node, place.depth), own: isOwn(node) };
}

/** `namespace(rows=[])`, which only `set` knows; undefined if the expression is something else. */
export function compileNamespace(node: Node, place: Place): ((run: Run) => Namespace) | undefined {
  if (node.type !== "CallExpression" || node.callee.type !== "Identifier" || node.callee.value !== "namespace")
    return undefined;
  const compiler = new Compiler(place);
  const fields = node.args.map((argument) => {
    if (argument.type !== "KeywordArgumentExpression") throw compiler.refusal("namespace() takes named values only");
    return { name: argument.key.value, evaluate: compiler.compile(argument.value, place.depth + 1) };
  });
  return (run) => {
    const namespace = new Namespace();
    for (const { name, evaluate } of fields) namespace.set(name, evaluate(run));
    return namespace;
  };
}

function isOwn(node: Node): boolean {
  switch (node.type) {
    case "StringLiteral":
      return true;
    case "Ternary":
      return isOwn(node.trueExpr) && isOwn(node.falseExpr);
    case "SelectExpression":
      return isOwn(node.lhs);
    case "BinaryExpression":
      return node.operator.value === "~" && isOwn(node.left) && isOwn(node.right);
    default:
      return false;
  }
}

const ARITHMETIC: ReadonlyMap<string, (left: number, right: number) => number> = new Map([
  ["+", (left, right) => left + right],
  ["-", (left, right) => left - right],
  ["*", (left, right) => left * right],
  ["/", (left, right) => left / right],
  ["//", (left, right) => Math.floor(left / right)],
  ["%", (left, right) => left - right * Math.floor(left / right)],
  ["**", (left, right) => left ** right],
]);

class Compiler {
  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  refusal(reason: string): TemplateError {
    return new TemplateError("syntax", this.#place.template, this.#place.line, reason);
  }

  compile(node: Node, depth: number): Evaluate {
    const { limits, template, line } = this.#place;
    if (depth > limits.depth)
      throw new TemplateError("limit", template, line, `is nested deeper than ${limits.depth} levels`);
    const inner = (child: Node) => this.compile(child, depth + 1);
    switch (node.type) {
      case "IntegerLiteral":
      case "FloatLiteral":
        if (!Number.isFinite(node.value)) throw this.refusal("a number is too large");
        return constant(node.value);
      case "StringLiteral":
        return constant(node.value);
      case "Identifier":
        return this.#name(node.value);
      case "ArrayLiteral":
      case "TupleLiteral": {
        const items = node.value.map(inner);
        return (run) => {
          run.step();
          return items.map((evaluate) => evaluate(run));
        };
      }
      case "ObjectLiteral":
        return this.#object(node.value, inner);
      case "MemberExpression":
        return this.#member(node, inner);
      case "CallExpression":
        return this.#call(node, inner);
      case "FilterExpression":
        return this.#filter(node, inner);
      case "TestExpression": {
        const operand = inner(node.operand);
        const test = node.test.type === "Identifier" ? TESTS.get(node.test.value) : undefined;
        if (test === undefined)
          throw this.refusal(
            `there is no test ${node.test.type === "Identifier" ? shown(node.test.value) : "of that form"}`,
          );
        return (run) => {
          run.step();
          return test(run, operand(run)) !== node.negate;
        };
      }
      case "BinaryExpression":
        return this.#binary(node.operator.value, inner(node.left), inner(node.right));
      case "UnaryExpression":
        return this.#unary(node.operator.value, inner(node.argument));
      case "Ternary":
        return choice(inner(node.condition), inner(node.trueExpr), inner(node.falseExpr));
      case "SelectExpression":
        return choice(inner(node.test), inner(node.lhs), () => undefined);
      default:
        throw this.refusal(
          "templates have no such expression: values cannot be unpacked with * or sliced on their own",
        );
    }
  }

  #name(name: string): Evaluate {
    if (LITERALS.has(name)) return constant(LITERALS.get(name));
    this.#known(name);
    const { scope } = this.#place;
    const slots = scope.find(name);
    const [slot] = slots;
    if (scope.mayBeNamespace(name))
      return (run) => {
        run.step();
        const value = run.valueIn(slots);
        if (value instanceof Namespace) throw run.failure(`${name} is a namespace: ask for one of its fields`);
        return value;
      };
    if (slot === undefined || slots.length > 1)
      return (run) => {
        run.step();
        return run.valueIn(slots) as Value;
      };
    return (run) => {
      run.step();
      const value = run.slots[slot];
      return value === UNSET ? undefined : (value as Value);
    };
  }

  #known(name: string): void {
    if (this.#place.names.has(name)) return;
    if (FUNCTIONS.has(name)) throw this.refusal(`${name} is a function: ${name}(…)`);
    throw this.refusal(`there is no ${shown(name)} here; there are ${[...this.#place.names].sort().join(", ")}`);
  }

  #object(entries: ReadonlyMap<Node, Node>, inner: (child: Node) => Evaluate): Evaluate {
    const fields = [...entries].map(([key, value]) => {
      if (key.type !== "StringLiteral") throw this.refusal("the key of an object is a text in quotes");
      this.#allowed(key.value);
      return { key: key.value, evaluate: inner(value) };
    });
    return (run) => {
      run.step();
      const object: Record<string, Value> = {};
      for (const { key, evaluate } of fields) object[key] = evaluate(run);
      return object;
    };
  }

  #allowed(key: string): void {
    if (FORBIDDEN_NAMES.has(key)) throw this.refusal(`${shown(key)} is no key that a template may ask for`);
  }

  #member(node: Node & { type: "MemberExpression" }, inner: (child: Node) => Evaluate): Evaluate {
    const { property } = node;
    if (property.type === "SliceExpression") return slice(inner(node.object), property, inner);
    const isStatic = property.type === "StringLiteral" || (property.type === "Identifier" && !node.computed);
    if (!isStatic) {
      const object = inner(node.object);
      const key = inner(property);
      return (run) => lookup(run, object(run), key(run));
    }
    const key = property.value;
    this.#allowed(key);
    if (node.object.type !== "Identifier" || LITERALS.has(node.object.value)) {
      const object = inner(node.object);
      return (run) => {
        run.step();
        return fieldOf(run, object(run), key);
      };
    }
    const name = node.object.value;
    this.#known(name);
    const { scope } = this.#place;
    const slots = scope.find(name);
    const [slot] = slots;
    if (slot === undefined || slots.length > 1 || scope.mayBeNamespace(name))
      return (run) => {
        run.step();
        const object = run.valueIn(slots);
        return object instanceof Namespace ? object.get(key) : fieldOf(run, object, key);
      };
    return (run) => {
      run.step();
      const object = run.slots[slot];
      return object === UNSET ? undefined : fieldOf(run, object as Value, key);
    };
  }

  #call(node: Node & { type: "CallExpression" }, inner: (child: Node) => Evaluate): Evaluate {
    const names = [...FUNCTIONS.keys()].map((name) => `${name}()`).join(", ");
    if (node.callee.type !== "Identifier") throw this.refusal(`only ${names} can be called`);
    const { value: name } = node.callee;
    if (name === "namespace") throw this.refusal("namespace() stands only in {% set name = namespace(…) %}");
    const callable = FUNCTIONS.get(name);
    if (callable === undefined) throw this.refusal(`there is no function ${shown(name)}; there are ${names}`);
    return this.#apply(`${name}()`, callable, [], node.args, inner);
  }

  #filter(node: Node & { type: "FilterExpression" }, inner: (child: Node) => Evaluate): Evaluate {
    const { filter } = node;
    const called = filter.type === "CallExpression";
    const named = called ? filter.callee : filter;
    if (named.type !== "Identifier") throw this.refusal("a filter is a name, with values in brackets if it takes any");
    const operand = inner(node.operand);
    const args = called ? filter.args : [];
    if (named.value === "pick") return this.#pick(operand, args, inner);
    const callable = FILTERS.get(named.value);
    if (callable === undefined)
      throw this.refusal(
        `there is no filter ${shown(named.value)}; there are ${[...FILTERS.keys(), "pick"].sort().join(", ")}`,
      );
    return this.#apply(`the filter ${named.value}`, callable, [operand], args, inner);
  }

  #pick(operand: Evaluate, args: readonly Node[], inner: (child: Node) => Evaluate): Evaluate {
    const columns = args.map((argument) => {
      if (argument.type !== "KeywordArgumentExpression")
        throw this.refusal('pick takes columns by name: pick(tool="payload.tool_name")');
      this.#allowed(argument.key.value);
      return [argument.key.value, inner(argument.value)] as const;
    });
    if (columns.length === 0) throw this.refusal('pick needs a column: pick(tool="payload.tool_name")');
    return (run) => pick(run, operand(run), new Map(columns.map(([name, evaluate]) => [name, evaluate(run)])));
  }

  /** Values to parameters, by position and by name, once and for all. */
  #apply(
    what: string,
    callable: Callable,
    first: readonly Evaluate[],
    args: readonly Node[],
    inner: (child: Node) => Evaluate,
  ): Evaluate {
    const { parameters, required, apply } = callable;
    const values: (Evaluate | undefined)[] = [...first];
    for (const argument of args) {
      const isNamed = argument.type === "KeywordArgumentExpression";
      const index = isNamed ? parameters.indexOf(argument.key.value, first.length) : values.length;
      if (index < 0) throw this.refusal(`${what} has no parameter ${shown(isNamed ? argument.key.value : "")}`);
      if (index >= parameters.length)
        throw this.refusal(`${what} takes at most ${parameters.length - first.length} values`);
      if (values[index] !== undefined) throw this.refusal(`${what} is given ${parameters[index]} twice`);
      values[index] = inner(isNamed ? argument.value : argument);
    }
    const missing = parameters.findIndex((_, index) => index < required && values[index] === undefined);
    if (missing >= 0) throw this.refusal(`${what} needs ${parameters[missing]}`);
    const nothing: Evaluate = () => undefined;
    const [one = nothing, two, three = nothing, four = nothing] = Array.from(values, (value) => value ?? nothing);
    // Most have one or two.
    if (two === undefined)
      return (run) => {
        run.step();
        return apply(run, one(run));
      };
    if (values.length === 2)
      return (run) => {
        run.step();
        return apply(run, one(run), two(run));
      };
    return (run) => {
      run.step();
      return apply(run, one(run), two(run), three(run), four(run));
    };
  }

  #binary(operator: string, left: Evaluate, right: Evaluate): Evaluate {
    if (operator === "and" || operator === "or") {
      const goesOn = operator === "and";
      return (run) => {
        run.step();
        const value = left(run);
        return isTrue(run, value) === goesOn ? right(run) : value;
      };
    }
    if (operator === "~")
      return (run) => {
        run.step();
        const before = textOf(run, left(run));
        const after = textOf(run, right(run));
        run.making(before.length + after.length);
        return before + after;
      };
    const comparison = COMPARISONS.get(operator);
    if (comparison !== undefined)
      return (run) => {
        run.step();
        return comparison(run, left(run), right(run));
      };
    const arithmetic = ARITHMETIC.get(operator);
    if (arithmetic === undefined) throw this.refusal(`there is no operator ${shown(operator)}`);
    return (run) => {
      run.step();
      const before = left(run);
      const after = right(run);
      if (typeof before === "number" && typeof after === "number") return run.finite(arithmetic(before, after));
      if (operator === "+") return added(run, before, after);
      throw run.failure(`${nameOf(before)} ${operator} ${nameOf(after)} cannot be calculated`);
    };
  }

  #unary(operator: string, argument: Evaluate): Evaluate {
    if (operator === "not")
      return (run) => {
        run.step();
        return !isTrue(run, argument(run));
      };
    return (run) => {
      run.step();
      const value = argument(run);
      if (typeof value !== "number") throw run.failure(`${operator} needs a number, not ${nameOf(value)}`);
      return operator === "-" ? -value : value;
    };
  }
}

function constant(value: Value): Evaluate {
  return (run) => {
    run.step();
    return value;
  };
}

function choice(condition: Evaluate, yes: Evaluate, no: Evaluate): Evaluate {
  return (run) => {
    run.step();
    return isTrue(run, condition(run)) ? yes(run) : no(run);
  };
}

/** `+` of two texts or two lists. */
function added(run: Run, before: Value, after: Value): Value {
  if (isList(before) && isList(after)) {
    run.step(before.length + after.length);
    return [...before, ...after];
  }
  if (nameOf(before) !== "a text" || nameOf(after) !== "a text")
    throw run.failure(`${nameOf(before)} + ${nameOf(after)} cannot be calculated; ~ puts texts together`);
  const [left, right] = [textOf(run, before), textOf(run, after)];
  run.making(left.length + right.length);
  return left + right;
}

/** `list[1:3]`, `text[:20]`, `list[::-1]`, with Python's rules. */
function slice(object: Evaluate, node: Node & { type: "SliceExpression" }, inner: (child: Node) => Evaluate): Evaluate {
  const [start, stop, step] = [node.start, node.stop, node.step].map((part) =>
    part === undefined ? undefined : inner(part),
  );
  return (run) => {
    run.step();
    const value = object(run);
    const isText = typeof value === "string" || value instanceof ToonText;
    const list = isText ? characters(run, textOf(run, value)) : value;
    const by = bound(run, step) ?? 1;
    const [from, to] = [bound(run, start), bound(run, stop)];
    if (!isList(list)) return undefined;
    if (by === 0) throw run.failure("a slice cannot go in steps of 0");
    const [low, high] = by > 0 ? [0, list.length] : [-1, list.length - 1];
    const place = (index: number | undefined, otherwise: number) =>
      index === undefined ? otherwise : Math.min(Math.max(index < 0 ? index + list.length : index, low), high);
    const kept: Value[] = [];
    const end = place(to, by > 0 ? high : low);
    for (let index = place(from, by > 0 ? low : high); by > 0 ? index < end : index > end; index += by) {
      run.step();
      kept.push(itemOf(run, list, index));
    }
    return isText ? kept.join("") : kept;
  };
}

function bound(run: Run, evaluate: Evaluate | undefined): number | undefined {
  const value = evaluate?.(run);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value))
    throw run.failure("the bounds of a slice are whole numbers");
  return value;
}
