import { once } from "node:events";
import { StoreError } from "../../domain/errors.js";
import { TidingsServer } from "../../server/server.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, exitCodeOf, UsageError } from "../exit.js";
import { runningServer } from "../running.js";
import { VERSION } from "../version.js";

const DEFAULT_PORT = 4747;
const DEFAULT_HOST = "127.0.0.1";

export const serve = defineCommand({
  name: "serve",
  summary: "run the server: HTTP in, WebSocket out",
  usage: "[--port PORT] [--host ADDRESS] [options]",
  about: [
    "It prints an address with a token when it is ready, and writes both into `server.json` in the data folder, for " +
      "its owner alone: the other commands find it there and go through it. The token is admin's and new with every " +
      "start; `tidings token create` makes lasting ones with fewer rights.",
    "SIGTERM or SIGINT (Ctrl-C) ends it in order: what was accepted is committed, and the exit code is 0.",
    "It listens on this machine only unless --host says otherwise. A request must name the server by its own address, " +
      "by localhost, or by a name of --allow-host; a web page from elsewhere is refused unless --allow-origin has it.",
  ],
  options: {
    port: {
      kind: "integer",
      value: "PORT",
      min: 0,
      max: 65_535,
      summary: "0 picks a free one",
      preset: String(DEFAULT_PORT),
      env: "TIDINGS_PORT",
    },
    host: { kind: "text", value: "ADDRESS", summary: "where to listen", preset: DEFAULT_HOST, env: "TIDINGS_HOST" },
    "allow-host": { kind: "text", value: "NAMES", summary: "further names of this server, for a proxy; by comma" },
    "allow-origin": { kind: "text", value: "ORIGINS", summary: "web pages from elsewhere that may use it; by comma" },
    "events-per-second": { kind: "integer", value: "N", min: 1, summary: "at most, of one token", preset: "10000" },
    "ping-ms": { kind: "integer", value: "N", min: 10, summary: "how often quiet clients are asked", preset: "30000" },
    "pong-ms": { kind: "integer", value: "N", min: 10, summary: "how long they may take to answer", preset: "10000" },
  },
  examples: ["tidings serve", "tidings serve --port 0 --data /var/lib/tidings"],
  async run({ values, words, settings, output }) {
    noWords(words);
    const { data, policy, waitMs, bytesMax } = settings;
    await refuseSecond(data);
    const env = process.env;
    const port = values.port ?? portOf(env["TIDINGS_PORT"]);
    const rate = values["events-per-second"];
    const server = await TidingsServer.start({
      data,
      policy,
      wait_ms: waitMs,
      version: VERSION,
      host: values.host ?? (env["TIDINGS_HOST"] || DEFAULT_HOST),
      port: port ?? DEFAULT_PORT,
      allow_hosts: listed(values["allow-host"]),
      allow_origins: listed(values["allow-origin"]),
      limits: {
        ...(rate === undefined ? {} : { ratePerSecond: rate, rateBurst: 2 * rate }),
        ...(values["ping-ms"] === undefined ? {} : { pingMs: values["ping-ms"] }),
        ...(values["pong-ms"] === undefined ? {} : { pongMs: values["pong-ms"] }),
      },
      ...(bytesMax === undefined ? {} : { bytes_max: bytesMax }),
      ...(env["TIDINGS_TOKEN"] ? { token: env["TIDINGS_TOKEN"] } : {}),
      onDefect: (error) => output.remark(`tidings: ${error instanceof Error ? (error.stack ?? error.message) : error}`),
    });
    // Asked for before the ready line, which whoever waits for it may answer with a signal at once.
    const stopped = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
    const { url, token } = server;
    if (output.json) await output.value({ ready: { url, token, pid: process.pid } });
    else await output.line(`Tidings is ready: ${url}/#token=${token}`);
    const end = await Promise.race([stopped.then(() => undefined), server.failed]);
    if (end !== undefined) output.remark(`tidings: ${end.message}`);
    await server.close();
    return end === undefined ? EXIT.ok : exitCodeOf(end);
  },
});

/** At once, where the other one answers; where it does not, the writer's lock decides. */
async function refuseSecond(data: string): Promise<void> {
  const running = await runningServer(data);
  if (running !== undefined)
    throw new StoreError(
      "store_busy",
      `${data} is in use: its server runs at ${running.url}. Use that one, or end it.`,
    );
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (!/^[0-9]{1,5}$/.test(text) || Number(text) > 65_535)
    throw new UsageError(`TIDINGS_PORT: must be a port, not ${JSON.stringify(text)}`, "TIDINGS_PORT");
  return Number(text);
}

function listed(text: string | undefined): string[] {
  return (text ?? "").split(",").flatMap((name) => name.trim() || []);
}
