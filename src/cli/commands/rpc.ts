import { readFileSync } from "node:fs";
import { type Endpoint, errorOf, type RpcAnswer, RpcClient } from "../../client/rpc.js";
import { UnreachableError } from "../../domain/errors.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, type ExitCode, exitCodeOf, UsageError } from "../exit.js";
import { didYouMean } from "../nearest.js";
import type { Output } from "../output.js";
import { PROGRAM } from "../program.js";
import { serverFor } from "../served.js";
import { oneLine, pad, widthOf, wrap } from "../text.js";

const NO_METHOD = -32601;
const SUMMARY_COLUMNS_MIN = 30;

type RpcFailure = NonNullable<RpcAnswer["error"]>;

interface Described {
  readonly name: string;
  readonly summary: string;
  readonly tags: readonly { readonly name: string }[];
}

export const rpc = defineCommand({
  usage: "METHOD [JSON] [options]",
  about: [
    "Calls any method of the running server and prints its result as JSON: on one line, or over several where somebody looks. Its " +
      "parameters are a JSON object; - reads it from standard input, without it there are none. What each method takes and answers is " +
      "told by /openrpc.json of the server, and in docs/SERVER.md.",
    "What goes wrong is told on standard error, with the code and the data of the error, or, with --json, as {error: {code, message, data}} on " +
      "standard output.",
  ],
  options: { list: { kind: "flag", summary: "list the methods of the server, with the scope that each needs" } },
  examples: [
    "tidings rpc --list",
    "tidings rpc runtime/status",
    `tidings rpc notification/list '{"user_id": "ada", "limit": 5}'`,
    'echo \'{"thread_id": "support"}\' | tidings rpc thread/pause -',
  ],
  async run({ values, words, settings, output }) {
    const [method, ...rest] = words;
    if (values.list && method !== undefined)
      throw new UsageError(`unexpected ${JSON.stringify(method)}: --list takes no METHOD`, "METHOD");
    if (!values.list && method === undefined)
      throw new UsageError(`METHOD is missing; \`${PROGRAM} rpc --list\` shows what there is`, "METHOD");
    const params = rest.length === 0 ? {} : paramsOf(oneWord(rest, "JSON"));
    const endpoint = await serverFor(settings, output, "only a server has methods");
    if (method === undefined) return list(endpoint, output);
    const { result, error } = await ask(endpoint, method, params);
    if (error !== undefined) return fail(endpoint, method, error, output);
    if (output.terminal) await output.line(JSON.stringify(result, null, 2));
    else await output.value(result);
    return EXIT.ok;
  },
});

function paramsOf(word: string): object {
  const text = word === "-" ? readFileSync(0, "utf8") : word;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`JSON: ${error instanceof Error ? error.message : String(error)}`, "JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError(`JSON: must be an object, like '{"thread_id": "support"}'`, "JSON");
  return value;
}

/** As the server says it. Some answers take as long as they are asked to. */
async function ask(endpoint: Endpoint, method: string, params: object): Promise<RpcAnswer> {
  const call = { jsonrpc: "2.0", id: 1, method, params };
  const answer = (await new RpcClient(endpoint).post("/rpc", call, {
    answerMs: Number.POSITIVE_INFINITY,
  })) as RpcAnswer;
  if (!("result" in answer) && typeof answer.error?.code !== "number") throw foreign(endpoint);
  return answer;
}

async function fail(endpoint: Endpoint, method: string, error: RpcFailure, output: Output): Promise<ExitCode> {
  const { code, data } = error;
  const hint = code === NO_METHOD ? await hintFor(endpoint, method) : "";
  const message = `${error.message}${hint}`;
  if (output.json) await output.value({ error: { ...error, message } });
  else {
    output.remark(`tidings: ${oneLine(message)} (${code})`);
    if (data !== undefined) output.remark(JSON.stringify(data));
  }
  return exitCodeOf(errorOf({ code: "internal", ...data, message }));
}

async function hintFor(endpoint: Endpoint, method: string): Promise<string> {
  const names = (await methodsOf(endpoint)).map(({ name }) => name);
  return `${didYouMean(method, names) || "."} \`${PROGRAM} rpc --list\` shows what there is`;
}

async function list(endpoint: Endpoint, output: Output): Promise<ExitCode> {
  const methods = (await methodsOf(endpoint)).map(({ name, summary, tags }) => ({
    name,
    scope: tags[0]?.name ?? "",
    summary,
  }));
  if (output.json) {
    for (const method of methods) await output.value(method);
    return EXIT.ok;
  }
  const names = Math.max(...methods.map(({ name }) => widthOf(name)));
  const scopes = Math.max(...methods.map(({ scope }) => widthOf(scope)));
  const indent = names + scopes + 4;
  for (const { name, scope, summary } of methods) {
    const lines = wrap(summary, Math.max(SUMMARY_COLUMNS_MIN, output.width - indent));
    const head = `${output.style("bold", pad(name, names))}  ${output.style("gray", pad(scope, scopes))}`;
    await output.line(`${head}  ${lines.join(`\n${" ".repeat(indent)}`)}`);
  }
  return EXIT.ok;
}

/** What the server says of itself: it may be of another version than this program. */
async function methodsOf(endpoint: Endpoint): Promise<readonly Described[]> {
  const response = await fetch(new URL("/openrpc.json", endpoint.url)).catch((error: unknown) => {
    throw new UnreachableError(`${endpoint.url} does not answer`, { cause: error });
  });
  const { methods } = (await response.json().catch(() => ({}))) as { methods?: readonly Described[] };
  if (methods === undefined) throw foreign(endpoint);
  return methods;
}

function foreign({ url }: Endpoint): UnreachableError {
  return new UnreachableError(`${url} does not answer as a Tidings server does; is it one?`, { why: "foreign" });
}
