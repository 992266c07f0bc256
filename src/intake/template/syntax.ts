/**
 * Expressions are read by the lexer and the parser of `@huggingface/jinja`, one tag at a time: they know Jinja's grammar
 * and precedence. They know no bounds and no lines, take a missing comma for one that is there, and fail with whatever
 * error comes first. So what goes in is short and checked token by token, and what comes out is one of the forms below or
 * refused. The library's interpreter is not used.
 */
import { parse, tokenize } from "@huggingface/jinja";
import { TemplateError } from "./error.js";
import { SOURCE_LIMITS } from "./limits.js";

interface Operator {
  readonly value: string;
}

/** The forms of the library's tree that this language has. */
export type Node =
  | { readonly type: "IntegerLiteral" | "FloatLiteral"; readonly value: number }
  | { readonly type: "StringLiteral" | "Identifier"; readonly value: string }
  | { readonly type: "ArrayLiteral" | "TupleLiteral"; readonly value: readonly Node[] }
  | { readonly type: "ObjectLiteral"; readonly value: ReadonlyMap<Node, Node> }
  | { readonly type: "MemberExpression"; readonly object: Node; readonly property: Node; readonly computed: boolean }
  | { readonly type: "SliceExpression"; readonly start?: Node; readonly stop?: Node; readonly step?: Node }
  | { readonly type: "CallExpression"; readonly callee: Node; readonly args: readonly Node[] }
  | { readonly type: "KeywordArgumentExpression"; readonly key: { readonly value: string }; readonly value: Node }
  | { readonly type: "FilterExpression"; readonly operand: Node; readonly filter: Node }
  | { readonly type: "TestExpression"; readonly operand: Node; readonly negate: boolean; readonly test: Node }
  | { readonly type: "BinaryExpression"; readonly operator: Operator; readonly left: Node; readonly right: Node }
  | { readonly type: "UnaryExpression"; readonly operator: Operator; readonly argument: Node }
  | { readonly type: "Ternary"; readonly condition: Node; readonly trueExpr: Node; readonly falseExpr: Node }
  | { readonly type: "SelectExpression"; readonly lhs: Node; readonly test: Node };

type Token = ReturnType<typeof tokenize>[number];

export const KEYWORDS: ReadonlySet<string> = new Set(["and", "or", "not", "in", "is", "if", "else"]);

export function parseExpression(source: string, template: string, line: number, depth: number): Node {
  const refuse = (why: string) => new TemplateError("syntax", template, line, `cannot read ${shown(source)}: ${why}`);
  if (source.trim() === "") throw new TemplateError("syntax", template, line, "an expression is missing");
  // The library takes a tag of its own ("generation") out of any text before it reads the rest.
  if (source.includes("{%")) throw refuse("{% stands inside a tag");
  let tokens: Token[];
  try {
    tokens = tokenize(`{{ ${source} }}`);
  } catch (error) {
    throw refuse(libraryReason(error));
  }
  if (tokens.length > SOURCE_LIMITS.tagTokens)
    throw new TemplateError("limit", template, line, `a tag has more than ${SOURCE_LIMITS.tagTokens} parts`);
  const wrong = checkTokens(tokens, depth);
  if (wrong === "depth")
    throw new TemplateError("limit", template, line, `an expression is nested deeper than ${depth} levels`);
  if (wrong !== null) throw refuse(wrong);
  try {
    const { body } = parse(tokens);
    if (body.length === 1) return body[0] as unknown as Node;
  } catch (error) {
    throw refuse(libraryReason(error));
  }
  throw refuse("it is more than one expression");
}

const PAIRS: ReadonlyMap<string, string> = new Map([
  ["OpenParen", "CloseParen"],
  ["OpenSquareBracket", "CloseSquareBracket"],
  ["OpenCurlyBracket", "CloseCurlyBracket"],
]);
const CLOSING: ReadonlySet<string> = new Set(PAIRS.values());
const FOREIGN: ReadonlySet<string> = new Set([
  "Text",
  "Comment",
  "OpenStatement",
  "CloseStatement",
  "OpenExpression",
  "CloseExpression",
]);

/** What is wrong: brackets that do not match or go too deep, borders of tags, two values with nothing between them. */
function checkTokens(tokens: readonly Token[], depth: number): string | null {
  if (tokens[0]?.type !== "OpenExpression" || tokens.at(-1)?.type !== "CloseExpression") return "it has no end";
  const open: string[] = [];
  let afterValue = false;
  for (let index = 1; index < tokens.length - 1; index++) {
    const { type, value } = tokens[index] as Token;
    const before = tokens[index - 1]?.type;
    if (FOREIGN.has(type)) return `${value} is not expected in it`;
    const isKeyword = type === "Identifier" && before !== "Dot" && KEYWORDS.has(value);
    const isWord = (type === "Identifier" && !isKeyword) || type === "NumericLiteral" || type === "StringLiteral";
    if (afterValue && (isWord || type === "OpenCurlyBracket") && !(type === "StringLiteral" && before === type))
      return `something is missing before ${shown(value)}`;
    const pair = PAIRS.get(type);
    if (pair !== undefined) {
      open.push(pair);
      if (open.length > depth) return "depth";
    } else if (CLOSING.has(type) && open.pop() !== type) return `${value} closes nothing`;
    afterValue = isWord || CLOSING.has(type);
  }
  return open.length > 0 ? "a bracket is never closed" : null;
}

const TOKEN_REASONS: ReadonlyMap<string, string> = new Map([
  ["CloseExpression", "it ends too early"],
  ["Comma", "a comma is not expected there"],
  ["Dot", "a dot is not expected there"],
  ["Colon", "a colon is not expected there"],
  ["Pipe", "a | is not expected there"],
  ["Equals", "a = is not expected there; == compares"],
]);

/** The library's own words, where they say something. */
function libraryReason(error: unknown): string {
  const message = error instanceof SyntaxError ? error.message : "";
  const token = /^Unexpected token: (\w+)$/.exec(message)?.[1];
  if (token !== undefined) return TOKEN_REASONS.get(token) ?? "an operator lacks a value";
  if (message.startsWith("Expected identifier for the ")) return `a name must follow | and is`;
  if (message === "" || message.includes("end of input")) return "it is not a whole expression";
  return message;
}

export function shown(text: string): string {
  const trimmed = text.trim().replace(/\s+/g, " ");
  return JSON.stringify(trimmed.length > 60 ? `${trimmed.slice(0, 59)}…` : trimmed);
}
