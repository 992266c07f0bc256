/** An MCP server on standard input and output, as small as one can be. It ends with its input. */
import { createInterface } from "node:readline";
import { pause } from "../../platform/timers.js";
import { VERSION } from "../../platform/version.js";
import { DOCUMENT_TOOLS, TITLES, type Title } from "../document_tools.js";

const PROTOCOL = "2025-06-18";
/** How long a call goes on before the process that is to die does. */
const MIDDLE_MS = 300;
const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;

const DOCUMENTS: Readonly<Record<Title, string>> = {
  handbook: "Handbook: whoever finds something broken says so, once, to whom it concerns.",
  minutes: "Minutes: the server of documents is to be made more stable. Nobody has objected.",
};

interface Request {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly arguments?: { readonly document?: string; readonly die?: boolean };
  };
}

class Refusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

function isTitle(text: string | undefined): text is Title {
  return TITLES.some((title) => title === text);
}

async function read({ params }: Request) {
  const { document, die } = params?.arguments ?? {};
  if (params?.name !== "read") throw new Refusal(INVALID_PARAMS, "there is one tool here: read");
  if (!isTitle(document)) throw new Refusal(INVALID_PARAMS, `document: must be one of ${TITLES.join(", ")}`);
  if (die === true) {
    await pause(MIDDLE_MS);
    process.kill(process.pid, "SIGKILL");
  }
  return { content: [{ type: "text", text: `${DOCUMENTS[document]} (Read by process ${process.pid}.)` }] };
}

async function answer(request: Request): Promise<object> {
  switch (request.method) {
    case "initialize": {
      const serverInfo = { name: "tidings-documents", version: VERSION };
      return { protocolVersion: PROTOCOL, capabilities: { tools: {} }, serverInfo };
    }
    case "ping":
      return {};
    case "tools/list":
      return { tools: DOCUMENT_TOOLS };
    case "tools/call":
      return read(request);
    default:
      throw new Refusal(METHOD_NOT_FOUND, "there is no such method here");
  }
}

async function reply(line: string): Promise<void> {
  const request = JSON.parse(line) as Request;
  const { id } = request;
  if (id === undefined) return;
  const said = await answer(request).then(
    (result) => ({ result }),
    (error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      return { error: { code: error.code, message: error.message } };
    },
  );
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...said })}\n`);
}

for await (const line of createInterface({ input: process.stdin })) void reply(line);
