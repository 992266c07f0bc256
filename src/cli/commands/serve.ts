import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { StoreError } from "../../domain/errors.js";
import { later } from "../../platform/timers.js";
import { DEFAULT_HOST, DEFAULT_PORT, SERVER_LIMITS } from "../../server/limits.js";
import { AGENT_OPTIONS, agentWords, asUsage, chosenAgent } from "../agent_options.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, exitCodeOf, UsageError } from "../exit.js";
import type { Output } from "../output.js";
import { PROGRAM } from "../program.js";
import { runningServer } from "../running.js";
import { filesOf, type Settings } from "../settings.js";
import { oneLine } from "../text.js";
import { VERSION } from "../version.js";

/** After so long, whoever ended it is told why it is still there. */
const PATIENCE_MS = 1_000;

export const serve = defineCommand({
  usage: "[--port PORT] [--host ADDRESS] [options]",
  about: [
    "When it is ready it prints its address with a token, and writes both into `server.json` in the data folder, " +
      "readable by its owner alone: the other commands find it there and go through it. That token may do everything " +
      "and is new with every start, unless TIDINGS_OWN_TOKEN has one; `tidings token create` makes lasting ones that may " +
      "do less.",
    "SIGTERM or SIGINT (Ctrl-C) ends it in order: what is under way is answered, what was accepted is committed, and " +
      "the exit code is 0.",
    "Files in the folder of --subscribers, and the switches in the file of --config, take effect as they are edited. A file " +
      "that is broken is named on standard error, by `tidings doctor` and in the inbox, and its last good version stays " +
      "in effect.",
    "It listens on this machine only, unless --host says otherwise. A request must name the server by its own address, " +
      "by localhost, or by a name of --allow-host. A web page from elsewhere is refused, unless --allow-origin has it.",
    "It hosts an agent, to which `tidings chat` speaks: on the model of --provider and --model, or of [agent] in the file of " +
      "--config. Without a word about it, a model that is named goes to the provider whose key is in the environment; else " +
      "the rehearsal model runs, which is offline. With --provider none, threads are for your own agents.",
  ],
  options: {
    port: {
      kind: "integer",
      value: "PORT",
      min: 0,
      max: 65_535,
      summary: "the port to listen on; 0 picks a free one",
      preset: String(DEFAULT_PORT),
      env: "TIDINGS_PORT",
    },
    host: {
      kind: "text",
      value: "ADDRESS",
      summary: "the address to listen on",
      preset: DEFAULT_HOST,
      env: "TIDINGS_HOST",
    },
    ...AGENT_OPTIONS,
    "allow-host": {
      kind: "text",
      value: "NAMES",
      summary: "further names of this server, as a proxy in front has them; separated by commas",
    },
    "allow-origin": {
      kind: "text",
      value: "ORIGINS",
      summary: "web pages from elsewhere that may use it, like https://app.example.com; separated by commas",
    },
    "events-per-second": {
      kind: "integer",
      value: "N",
      min: 1,
      summary: "how many events and calls a second one token may send",
      preset: String(SERVER_LIMITS.ratePerSecond),
    },
    "ping-ms": {
      kind: "integer",
      value: "N",
      min: 10,
      summary: "how often a quiet WebSocket client is asked whether it is there",
      preset: String(SERVER_LIMITS.pingMs),
    },
    "pong-ms": {
      kind: "integer",
      value: "N",
      min: 10,
      summary: "how long it may take to say so",
      preset: String(SERVER_LIMITS.pongMs),
    },
  },
  examples: [
    "tidings serve",
    "tidings serve --port 0 --data /var/lib/tidings",
    "tidings serve --provider openai-compatible --base-url http://127.0.0.1:11434/v1 --model qwen3",
    "tidings serve --subscribers ./subscribers --config ./tidings.toml",
  ],
  folderOnly: true,
  async run({ values, words, settings, output }) {
    noWords(words);
    const { data, policy, waitMs, bytesMax } = settings;
    const env = process.env;
    const host = hostOf(values.host ?? (env["TIDINGS_HOST"] || DEFAULT_HOST));
    const port = values.port ?? portOf(env["TIDINGS_PORT"]) ?? DEFAULT_PORT;
    const token = tokenOf(env["TIDINGS_OWN_TOKEN"]);
    const rate = values["events-per-second"];
    await refuseSecond(data);
    lookForFiles(settings, output);
    // Loaded here, since it takes as long as everything else together, and no other command needs it.
    const { TidingsServer } = await import("../../server/server.js");
    const server = await TidingsServer.start({
      data,
      policy,
      wait_ms: waitMs,
      version: VERSION,
      host,
      port,
      allow_hosts: listed(values["allow-host"]),
      allow_origins: listed(values["allow-origin"]),
      limits: {
        ...(rate === undefined ? {} : { ratePerSecond: rate, rateBurst: 2 * rate }),
        ...(values["ping-ms"] === undefined ? {} : { pingMs: values["ping-ms"] }),
        ...(values["pong-ms"] === undefined ? {} : { pongMs: values["pong-ms"] }),
      },
      ...(bytesMax === undefined ? {} : { bytes_max: bytesMax }),
      ...(token === undefined ? {} : { token }),
      ...filesOf(settings),
      agent: (config) => chosenAgent(values, config, env, (line) => output.remark(line)),
      onProblem: (line) => output.remark(`tidings: ${oneLine(line)}`),
      onDefect: (error) => output.remark(`tidings: ${error instanceof Error ? (error.stack ?? error.message) : error}`),
    }).catch((error: unknown) => {
      throw asUsage(error);
    });
    // Asked for before the ready line, which whoever waits for it may answer with a signal at once.
    const stopped = stopSignal();
    const { url, agent } = server;
    if (output.json) await output.value({ ready: { url, token: server.token, pid: process.pid, agent } });
    else {
      const hosted = agent === null ? "" : `\nIts agent runs on ${oneLine(agentWords(agent))}.`;
      await output.line(`Tidings is ready: ${url}/#token=${server.token}${hosted}`);
    }
    if (output.terminal) {
      const emit = `${PROGRAM} emit cli.hello.world --message "It works"${settings.dataFlag}`;
      await output.line(output.style("gray", `Its data is in ${oneLine(resolve(data))}. Ctrl-C ends it.`));
      await output.line(output.style("gray", `Try it from another terminal in this folder:  ${emit}`));
      if (agent !== null)
        await output.line(output.style("gray", `Speak to its agent there:  ${PROGRAM} chat${settings.dataFlag}`));
    }
    const end = await Promise.race([stopped, server.failed]);
    if (end !== undefined) output.remark(`tidings: ${end.message}`);
    const told = later(PATIENCE_MS, () => output.remark("tidings: waiting for requests that are under way"));
    await server.close();
    told();
    return end === undefined ? EXIT.ok : exitCodeOf(end);
  },
});

/** Resolves at the first one. Those that follow change nothing: npm passes Ctrl-C on to whom the terminal told already. */
function stopSignal(): Promise<undefined> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => resolve(undefined));
  });
}

/** At once, where the other one answers; where it does not, the writer's lock decides. */
async function refuseSecond(data: string): Promise<void> {
  const running = await runningServer(data);
  if (running !== undefined)
    throw new StoreError(
      "store_busy",
      `${data} is in use: its server runs at ${running.url}. Use that one, or end it.`,
    );
}

/** Names that were given and lead nowhere are mistakes, most of the time; a folder may still be made. */
function lookForFiles({ configFile, subscribersFolder }: Settings, output: Output): void {
  if (configFile !== undefined && !existsSync(configFile))
    throw new UsageError(`--config: there is no file ${JSON.stringify(configFile)}`, "--config");
  if (configFile !== undefined && !statSync(configFile).isFile())
    throw new UsageError(`--config: ${JSON.stringify(configFile)} is not a file`, "--config");
  if (subscribersFolder !== undefined && !existsSync(subscribersFolder))
    output.remark(`tidings: there is no folder ${oneLine(subscribersFolder)} yet; its files take effect when there is`);
}

/** An empty one would mean every address, to the network of this machine too. */
function hostOf(text: string): string {
  if (text.trim() === "") throw new UsageError("--host: must be an address, like 127.0.0.1", "--host");
  return text;
}

/** In letters that fit a header, a subprotocol and a fragment; long enough not to be found by trying. */
function tokenOf(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  if (!/^[\w.~-]{16,200}$/.test(text))
    throw new UsageError(
      "TIDINGS_OWN_TOKEN: must be 16 to 200 letters, digits, `-`, `_`, `.` or `~`: it is to be the server's own token",
      "TIDINGS_OWN_TOKEN",
    );
  return text;
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
