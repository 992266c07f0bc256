/** The server to speak to: the one that runs, or one of our own for as long as the conversation lasts. */
import { RemoteTidings } from "../../client/remote.js";
import type { Endpoint } from "../../client/rpc.js";
import { ConflictError } from "../../domain/errors.js";
import { systemClock } from "../../platform/clock.js";
import { pause } from "../../platform/timers.js";
import { VERSION } from "../../platform/version.js";
import { AGENT_FLAGS, type AgentFlags, asUsage, chosenAgent } from "../agent_options.js";
import type { Call } from "../command.js";
import { UsageError } from "../exit.js";
import { withoutEffect } from "../plane.js";
import { runningServer } from "../running.js";
import { filesOf } from "../settings.js";
import { oneLine } from "../text.js";

/** How long they may take. */
const MCP_MS = 5_000;
const MCP_LOOK_MS = 25;

/**
 * Other commands find a server of our own in the data folder as they find any: what they report while we speak reaches
 * the agent.
 */
export async function withServer<Value>(
  { settings, output }: Pick<Call, "settings" | "output">,
  flags: AgentFlags,
  use: (endpoint: Endpoint) => Promise<Value>,
): Promise<Value> {
  const { data, policy, waitMs, bytesMax, folderFlags } = settings;
  const running = settings.server ?? (await runningServer(data));
  const typed = AGENT_FLAGS.filter((name) => flags[name] !== undefined && flags[name] !== false).map(
    (name) => `--${name}`,
  );
  if (running !== undefined) {
    const idle = [...typed, ...folderFlags];
    if (idle.length > 0) output.remark(withoutEffect(idle, running));
    return use(running);
  }
  const { TidingsServer } = await import("../../server/server.js");
  const server = await TidingsServer.start({
    data,
    policy,
    wait_ms: waitMs,
    version: VERSION,
    port: 0,
    ...(bytesMax === undefined ? {} : { bytes_max: bytesMax }),
    ...filesOf(settings),
    agent: (config) => chosenAgent(flags, config, process.env, (line) => output.remark(line)),
    onProblem: (line) => output.remark(`tidings: ${oneLine(line)}`),
    onDefect: (error) => output.remark(`tidings: ${error instanceof Error ? (error.stack ?? error.message) : error}`),
  }).catch((error: unknown) => {
    throw asUsage(error);
  });
  try {
    if (server.agent === null)
      throw new UsageError("there is no agent to speak to with the provider none", "--provider");
    await serversTried(new RemoteTidings(server));
    return await use(server);
  } finally {
    await server.close();
  }
}

/** MCP servers are connected beside: the first message is to find their tools, if they come at all. */
async function serversTried({ mcp }: RemoteTidings): Promise<void> {
  const until = systemClock.monotonic() + MCP_MS;
  while (systemClock.monotonic() < until && (await mcp.list()).some(({ state }) => state === "connecting"))
    await pause(MCP_LOOK_MS);
}

export function noAgent({ url }: Endpoint): ConflictError {
  return new ConflictError(
    "no_agent",
    `the server at ${url} hosts no agent to speak to; start it with --provider (rehearsal needs no key), or without --provider none`,
  );
}
