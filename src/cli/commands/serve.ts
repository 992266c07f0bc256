import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { StoreError } from "../../domain/errors.js";
import { later } from "../../platform/timers.js";
import { VERSION } from "../../platform/version.js";
import { DEFAULT_HOST, DEFAULT_PORT, SERVER_LIMITS } from "../../server/limits.js";
import { jsonLogLine, LOG_LEVELS, Log, type LogLevel, type LogLine } from "../../server/log.js";
import { AGENT_OPTIONS, agentWords, asUsage, chosenAgent } from "../agent_options.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, exitCodeOf, UsageError } from "../exit.js";
import type { Output } from "../output.js";
import { PROGRAM } from "../program.js";
import { runningServer } from "../running.js";
import { filesOf, type Settings } from "../settings.js";
import { harmless, oneLine } from "../text.js";

/** After so long, whoever ended it is told why it is still there. */
const PATIENCE_MS = 1_000;

export const serve = defineCommand({
  usage: "[--stdio] [--port PORT] [--host ADDRESS] [options]",
  about: [
    "When it is ready it prints its address with a token, and writes both into `server.json` in the data folder, " +
      "readable by its owner alone: the other commands find it there and go through it. That token may do everything; " +
      "it is kept in the data folder for the next start, until --new-token replaces it, unless TIDINGS_OWN_TOKEN has one. " +
      "`tidings token create` makes tokens that may do less.",
    "At that address is the web app: the inbox, conversations with the agent, and what happened to every notification.",
    "SIGTERM or SIGINT (Ctrl-C) ends it in order: what is under way is answered, what was accepted is committed, and " +
      "the exit code is 0.",
    "Files in the folder of --subscribers, and the switches in the file of --config, take effect as they are edited. A file " +
      "that is broken is named on standard error, by `tidings doctor` and in the inbox, and its last good version stays " +
      "in effect.",
    "It listens on this machine only, unless --host says otherwise. A request must name the server by its own address, " +
      "by localhost, or by a name of --allow-host. A web page from elsewhere is refused, unless --allow-origin has it.",
    "With --stdio it also speaks JSON-RPC with whoever has started it: calls come as lines of standard input, answers and " +
      "what happens go out as lines of standard output, and everything else goes to standard error. It may do what its own " +
      "token may, and ends when standard input does. Its port is a free one, unless --port says otherwise.",
    "It hosts an agent, to which `tidings chat` speaks: on the model of --provider and --model, or of [agent] in the file of " +
      "--config. Without a word about it, a model that is named goes to the provider whose key is in the environment; else " +
      "the rehearsal model runs, which is offline. With --provider none, threads are for your own agents.",
    "The rehearsal model brings two tools with it, a command that fails and an MCP server that drops, for what the web app offers to " +
      "try. They run programs of this package alone, and nothing runs before one of them is called. --no-props leaves them out.",
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
    "no-props": {
      kind: "flag",
      summary: "the rehearsal model gets no tools for the situations of the web app",
      preset: "[agent] props in the file of --config, else it does",
    },
    "new-token": { kind: "flag", summary: "replace the token that is kept; whoever has the old one is shut out" },
    stdio: { kind: "flag", summary: "speak JSON-RPC over standard input and output; ends with the input" },
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
    "heartbeat-ms": {
      kind: "integer",
      value: "N",
      min: 10,
      summary: "how often a stream says where it is",
      preset: String(SERVER_LIMITS.heartbeatMs),
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
    "drain-delay-ms": {
      kind: "integer",
      value: "N",
      min: 0,
      max: 300_000,
      summary: "when it is ended, how long /readyz says so before no connection is taken any more",
      preset: String(SERVER_LIMITS.drainDelayMs),
    },
    "log-format": {
      kind: "choice",
      value: "FORMAT",
      choices: ["text", "json"],
      summary: "how it says on standard error what happens; json: an object a line",
      preset: "text",
    },
    "log-level": {
      kind: "choice",
      value: "LEVEL",
      choices: LOG_LEVELS,
      summary: "what is below it is not said; debug: every request",
      preset: "warn; as JSON info",
    },
  },
  examples: [
    "tidings serve",
    "tidings serve --port 0 --data /var/lib/tidings",
    "tidings serve --stdio",
    "tidings serve --provider openai-compatible --base-url http://127.0.0.1:11434/v1 --model qwen3",
    "tidings serve --subscribers ./subscribers --config ./tidings.toml",
  ],
  folderOnly: true,
  async run({ values, words, settings, output }) {
    noWords(words);
    const { data, policy, waitMs, bytesMax } = settings;
    const env = process.env;
    const host = hostOf(values.host ?? (env["TIDINGS_HOST"] || DEFAULT_HOST));
    const port = values.port ?? portOf(env["TIDINGS_PORT"]) ?? (values.stdio ? 0 : DEFAULT_PORT);
    const token = tokenOf(env, "TIDINGS_OWN_TOKEN");
    const metricsToken = tokenOf(env, "TIDINGS_METRICS_TOKEN");
    const rate = values["events-per-second"];
    const delayMs = values["drain-delay-ms"];
    const log = logOf(values["log-format"], values["log-level"], output);
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
        ...(values["heartbeat-ms"] === undefined ? {} : { heartbeatMs: values["heartbeat-ms"] }),
        ...(values["ping-ms"] === undefined ? {} : { pingMs: values["ping-ms"] }),
        ...(values["pong-ms"] === undefined ? {} : { pongMs: values["pong-ms"] }),
        ...(delayMs === undefined ? {} : { drainDelayMs: delayMs }),
      },
      ...(bytesMax === undefined ? {} : { bytes_max: bytesMax }),
      ...(token === undefined ? { new_token: values["new-token"] ?? false } : { token }),
      ...(metricsToken === undefined ? {} : { metrics_token: metricsToken }),
      ...filesOf(settings),
      log,
      agent: (config) => ({
        ...chosenAgent(values, config, env, (line) => log.say("warn", line.replace(/^tidings: /, ""))),
        props: values["no-props"] !== true && config.props !== false,
      }),
    }).catch((error: unknown) => {
      throw asUsage(error);
    });
    // Asked for before the ready line, which whoever waits for it may answer with a signal at once.
    const say = (line: string) => {
      if (!output.json && values["log-format"] !== "json") output.remark(`tidings: ${line}`);
    };
    let signalled = false;
    const stopped = stopSignal().then(() => {
      signalled = true;
      say("stopping: what is under way is answered first");
      return undefined;
    });
    const { url, agent } = server;
    if (values.stdio) {
      // Standard output is the client's. A log of JSON says it by itself.
      if (values["log-format"] !== "json") output.remark(`tidings: ready at ${url}`);
    } else if (output.json) await output.value({ ready: { url, token: server.token, pid: process.pid, agent } });
    else {
      const hosted = agent === null ? "" : `\nIts agent runs on ${oneLine(agentWords(agent))}.`;
      await output.line(`Tidings is ready: ${url}/#token=${server.token}${hosted}`);
    }
    if (output.terminal && !values.stdio) {
      const emit = `${PROGRAM} emit cli.hello.world --message "It works"${settings.dataFlag}`;
      await output.line(output.style("gray", `Its data is in ${oneLine(resolve(data))}. Ctrl-C ends it.`));
      await output.line(output.style("gray", `Try it from another terminal in this folder:  ${emit}`));
      if (agent !== null)
        await output.line(output.style("gray", `Speak to its agent there:  ${PROGRAM} chat${settings.dataFlag}`));
    }
    const over = values.stdio ? [server.converse(process.stdin, process.stdout).then(() => undefined)] : [];
    const end = await Promise.race([stopped, server.failed, ...over]);
    if (end !== undefined) log.say("error", end.message);
    const patience = PATIENCE_MS + (delayMs ?? SERVER_LIMITS.drainDelayMs);
    const told = later(patience, () => log.say("warn", "waiting for requests that are under way"));
    await server.close();
    told();
    if (signalled) say("stopped");
    return end === undefined ? EXIT.ok : exitCodeOf(end);
  },
});

/** On standard error: in words for people, as JSON for programs. */
function logOf(format: string | undefined, level: LogLevel | undefined, output: Output): Log {
  const json = format === "json";
  const write = (line: LogLine) => output.remark(json ? jsonLogLine(line) : wordsOf(line));
  return new Log({ level: level ?? (json ? "info" : "warn"), write });
}

/** The message; of what is only told on demand its fields too. */
function wordsOf({ level, message, fields }: LogLine): string {
  const { stack, ...rest } = fields;
  if (typeof stack === "string") return `tidings: ${harmless(stack)}`;
  const quiet = level === "debug" || level === "info";
  const pairs = Object.entries(rest).map(([key, value]) => `${key}=${value}`);
  return `tidings: ${oneLine(quiet && pairs.length > 0 ? `${message} (${pairs.join(", ")})` : message)}`;
}

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
function tokenOf(env: NodeJS.ProcessEnv, variable: string): string | undefined {
  const text = env[variable];
  if (text === undefined || text === "") return undefined;
  if (!/^[\w.~-]{16,200}$/.test(text))
    throw new UsageError(
      `${variable}: must be 16 to 200 letters, digits, \`-\`, \`_\`, \`.\` or \`~\`: it is to be a token of the server`,
      variable,
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
