/**
 * What a hook makes of a request, as `tidings.toml` says it: text in which `{body.PATH}` and `{header.NAME}` stand for what
 * came. There is nothing else: no pattern, no condition, nothing that could run on.
 */
import type { Json } from "../domain/json.js";
import { atPath, type JsonPath, pathProblem } from "../domain/json_path.js";

/** What came: the body as JSON, and the headers by their names in lower case. */
export interface HookRequest {
  readonly body: Json;
  header(name: string): string | undefined;
}

type Reference = { readonly path: JsonPath } | { readonly header: string };
type Part = { readonly text: string } | Reference;

const TEXT_CHARS = 500;
const REFERENCES_MAX = 16;
const HEADER = /^[a-z0-9-]+$/;
/** What proves who sends is not told to anybody. */
const SECRET_HEADERS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "webhook-signature",
  "x-hub-signature",
  "x-hub-signature-256",
]);

export class HookText {
  readonly text: string;
  readonly #parts: readonly Part[];

  private constructor(text: string, parts: readonly Part[]) {
    this.text = text;
    this.#parts = parts;
  }

  /** The text, or why it is none. */
  static parse(text: string): HookText | { readonly reason: string } {
    if (text.length > TEXT_CHARS) return { reason: `is longer than ${TEXT_CHARS} characters` };
    const parts: Part[] = [];
    // Text, and between braces every second one.
    for (const [index, piece] of text.split(/\{([^{}]*)\}/).entries()) {
      const part = index % 2 === 0 ? literal(piece) : reference(piece);
      if ("reason" in part) return part;
      parts.push(part);
    }
    if (parts.length > 2 * REFERENCES_MAX + 1) return { reason: `has more than ${REFERENCES_MAX} references` };
    return new HookText(text, parts);
  }

  get isConstant(): boolean {
    return this.#parts.every((part) => "text" in part);
  }

  /** Whether anything in it is from a header, which no signature covers. */
  get readsHeaders(): boolean {
    return this.#parts.some((part) => "header" in part);
  }

  /** As text. What is missing is nothing. */
  read(request: HookRequest): string {
    return this.#parts.map((part) => textOf("text" in part ? part.text : referred(part, request))).join("");
  }

  /** One reference alone is the value itself, undefined if it is missing; all else is text. */
  value(request: HookRequest): Json | undefined {
    const filled = this.#parts.filter((part) => !("text" in part) || part.text !== "");
    const [only, ...more] = filled;
    return only !== undefined && more.length === 0 && !("text" in only) ? referred(only, request) : this.read(request);
  }

  toJSON(): string {
    return this.text;
  }
}

function literal(text: string): Part | { readonly reason: string } {
  return /[{}]/.test(text) ? { reason: "has a brace that is not one of a {body.PATH} or {header.NAME}" } : { text };
}

function reference(word: string): Part | { readonly reason: string } {
  const named = `{${word}}`;
  const [root, ...path] = word.split(".");
  if (root === "body") {
    const problem = pathProblem(path);
    return problem === null ? { path } : { reason: `${named} ${problem}` };
  }
  const [header = ""] = path;
  if (root !== "header" || path.length !== 1)
    return { reason: `${named} is neither {body.PATH}, like {body.repository.name}, nor {header.NAME}` };
  if (!HEADER.test(header))
    return { reason: `${named} must name a header in lower case, like {header.x-github-event}` };
  if (SECRET_HEADERS.has(header)) return { reason: `${named} is a secret, and may not be told` };
  return { header };
}

function referred(part: Reference, request: HookRequest): Json | undefined {
  return "header" in part ? request.header(part.header) : atPath(request.body, part.path);
}

function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
