import { z } from "zod";
import { type McpServerConfig, mcpServersSchema } from "../config/mcp.js";
import { StoreError } from "../domain/errors.js";
import { parseInput } from "../domain/parse.js";
import { props } from "../props/props.js";
import { openModel } from "../providers/open.js";
import { type AgentOptions, HostedAgent } from "../runtime/agent.js";
import { boundsOf } from "../runtime/bounds.js";
import type { Emit } from "../runtime/events.js";
import { handlesSchema, shellSchema, workspaceSchema } from "../runtime/options.js";
import type { AgentInput } from "./options.js";
import type { Shared } from "./shared.js";
import { withoutUndefined } from "./without_undefined.js";

const REHEARSAL = "rehearsal";

const toolsSchema = z.object({
  agent: z.object({
    handles: handlesSchema.default({}),
    shell: shellSchema.default({}),
    workspace: workspaceSchema.default({}),
  }),
});

/** Of what is switched on or off, or on with fields. */
function fieldsOf<Fields>(option: boolean | Fields): Fields | undefined {
  return typeof option === "boolean" ? undefined : option;
}

export async function hostAgent(
  shared: Shared,
  emit: Emit,
  input: AgentInput,
  own_files: readonly string[],
  onProblem: (line: string) => void,
): Promise<HostedAgent | null> {
  const { store, catalogue, policy, writable } = shared;
  const {
    provider,
    model,
    base_url,
    api_key_env,
    shell = catalogue.config.agent.shell ?? false,
    workspace = catalogue.config.agent.workspace ?? false,
    handles,
    mcp = {},
    props: wantsProps = false,
    ...rest
  } = input;
  const { agent: tools } = parseInput(toolsSchema, {
    agent: { handles, shell: fieldsOf(shell), workspace: fieldsOf(workspace) },
  });
  shared.ownMcp = mcp === false ? null : parseInput(z.object({ mcp: mcpServersSchema }), { mcp }).mcp;
  if (provider === "none") return null;
  if (!writable) throw new StoreError("read_only", "an agent can be hosted only by the folder's writer");
  const opened =
    typeof model === "object"
      ? model
      : await openModel({
          provider: provider ?? REHEARSAL,
          model: model ?? "",
          ...(base_url === undefined ? {} : { base_url }),
          ...(api_key_env === undefined ? {} : { api_key_env }),
        });
  shared.model = { provider: opened.provider, model: opened.model };
  shared.props = wantsProps && opened.provider === REHEARSAL ? props() : null;
  const options: AgentOptions = {
    ...rest,
    tools: [...(rest.tools ?? []), ...(shared.props?.tools ?? [])],
    model: opened,
    handles: withoutUndefined(tools.handles),
    ...(shell === false ? {} : { shell: withoutUndefined(tools.shell) }),
    ...(workspace === false ? {} : { workspace: withoutUndefined(tools.workspace) }),
    own_files,
    ...boundsOf(rest, () => catalogue.config.agent),
    handles_turn_end: (tool) => catalogue.config.tools.get(tool)?.turn_end ?? null,
    impact: (tool) => catalogue.config.tools.get(tool)?.impact ?? null,
    turn_end: () => catalogue.config.notifications.turn_end,
    onError: (error) => onProblem(`the hosted agent: ${error instanceof Error ? error.message : String(error)}`),
  };
  return HostedAgent.start(store, emit, options, policy);
}

/** By name, the program's own before those of the configuration. */
export function mcpConfigs({ catalogue, ownMcp }: Shared): ReadonlyMap<string, McpServerConfig> {
  return ownMcp === null ? new Map() : new Map([...catalogue.config.mcp, ...ownMcp]);
}
