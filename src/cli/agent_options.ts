/** Which model the hosted agent runs on: by flags, by `[agent]` of the configuration, by the keys that are there. */
import { statSync } from "node:fs";
import type { AgentConfig } from "../config/config.js";
import { ModelError } from "../providers/model.js";
import type { AgentInput, AgentView } from "../tidings.js";
import { UsageError } from "./exit.js";
import type { Values } from "./options.js";

const PROVIDERS = ["openai", "anthropic", "openai-compatible", "rehearsal", "none"] as const;

export const AGENT_OPTIONS = {
  provider: {
    kind: "choice",
    value: "NAME",
    choices: PROVIDERS,
    summary: "whose model the hosted agent runs on; rehearsal is offline and needs no key, none hosts no agent",
    preset: "[agent] in the file of --config, else by the key that is in the environment, else rehearsal",
  },
  model: { kind: "text", value: "NAME", summary: "the model, by the name that its provider has for it" },
  "base-url": {
    kind: "text",
    value: "URL",
    summary: "the address of the provider's API, like http://127.0.0.1:11434/v1",
    preset: "OPENAI_BASE_URL or ANTHROPIC_BASE_URL, else the provider's own",
  },
  "api-key-env": {
    kind: "text",
    value: "NAME",
    summary: "the environment variable that holds the key",
    preset: "OPENAI_API_KEY or ANTHROPIC_API_KEY",
  },
  workspace: {
    kind: "text",
    value: "FOLDER",
    summary: "lets the hosted agent read and write files in this folder, and tells it what others change there",
    preset: "[agent.workspace] in the file of --config, else none",
  },
  shell: {
    kind: "flag",
    summary: "lets the hosted agent run commands on this machine, as [agent.shell] in the file of --config says",
  },
} as const;

export type AgentFlags = Values<typeof AGENT_OPTIONS>;

export const AGENT_FLAGS = ["provider", "model", "base-url", "api-key-env", "workspace", "shell"] as const;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What is to be hosted. Flags win over the file; where they name another provider than it does, the rest of the file is
 * that one's, and is left alone: a key must not go to an address that it is not for.
 */
export function chosenAgent(
  flags: AgentFlags,
  config: AgentConfig,
  env: Environment,
  remark: (line: string) => void,
): AgentInput {
  checkFlags(flags);
  const other = flags.provider !== undefined && flags.provider !== config.provider && config.provider !== null;
  const file = other ? { model: null, base_url: null, api_key_env: null } : config;
  const model = flags.model ?? file.model ?? undefined;
  const base_url = flags["base-url"] ?? file.base_url ?? undefined;
  const api_key_env = flags["api-key-env"] ?? file.api_key_env ?? undefined;
  const provider = flags.provider ?? config.provider ?? implied({ model, named: base_url ?? api_key_env }, env, remark);
  if (provider !== "rehearsal" && provider !== "none" && model === undefined)
    throw new UsageError(
      `the provider ${provider} needs the name of a model: give --model, or [agent] model`,
      "--model",
    );
  const named = model ?? (provider === "rehearsal" ? provider : undefined);
  return {
    provider,
    ...(named === undefined ? {} : { model: named }),
    ...(base_url === undefined ? {} : { base_url }),
    ...(api_key_env === undefined ? {} : { api_key_env }),
    ...(flags.workspace === undefined ? {} : { workspace: { ...config.workspace, folder: flags.workspace } }),
    ...(flags.shell === true ? { shell: config.shell ?? true } : {}),
  };
}

/** A model costs money: a key alone does not choose one. */
function implied(
  { model, named }: { readonly model: string | undefined; readonly named: string | undefined },
  env: Environment,
  remark: (line: string) => void,
): string {
  const [openai, anthropic] = [isSet(env, "OPENAI_API_KEY"), isSet(env, "ANTHROPIC_API_KEY")];
  if (named !== undefined || (model !== undefined && !openai && !anthropic))
    throw new UsageError(
      "name the provider of the model: --provider, or [agent] provider; or set OPENAI_API_KEY or ANTHROPIC_API_KEY",
      "--provider",
    );
  if (model !== undefined) return anthropic && (!openai || /^claude/i.test(model)) ? "anthropic" : "openai";
  if (openai || anthropic) {
    const key = openai ? "OPENAI_API_KEY" : "ANTHROPIC_API_KEY";
    remark(
      `tidings: ${key} is set, and no model is named: the rehearsal model runs. To use a real one, give --model NAME; ` +
        "to have no such line, --provider rehearsal",
    );
  }
  return "rehearsal";
}

function isSet(env: Environment, name: string): boolean {
  return (env[name] ?? "").trim() !== "";
}

function checkFlags(flags: AgentFlags): void {
  const { model, "base-url": base_url, "api-key-env": api_key_env } = flags;
  if (flags.workspace !== undefined && !statSync(flags.workspace, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`--workspace: ${JSON.stringify(flags.workspace)} is no folder`, "--workspace");
  if (model?.trim() === "") throw new UsageError("--model: must not be empty", "--model");
  if (base_url !== undefined && (!URL.canParse(base_url) || !/^https?:/.test(base_url)))
    throw new UsageError(
      `--base-url: must be an address like http://127.0.0.1:11434/v1, not ${JSON.stringify(base_url)}`,
      "--base-url",
    );
  if (api_key_env !== undefined && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(api_key_env))
    throw new UsageError(
      "--api-key-env: must be the name of an environment variable, not the key itself",
      "--api-key-env",
    );
}

/** What is wrong with the model is wrong with how it was asked for: its package, its key, its name. */
export function asUsage(error: unknown): unknown {
  return error instanceof ModelError ? new UsageError(error.message) : error;
}

/** `openai gpt-5.1`, `rehearsal`. */
export function agentWords({ provider, model }: AgentView): string {
  return model === provider ? provider : `${provider} ${model}`;
}
