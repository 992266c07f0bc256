/** A model by the name of its provider. The provider's SDK is loaded when it is asked for, not before. */
import { didYouMean } from "../domain/nearest.js";
import { type Downgrades, knownDowngrades } from "./downgrades.js";
import { type Model, ModelError } from "./model.js";
import { RehearsalModel } from "./rehearsal/model.js";
import { RemoteModel } from "./remote.js";

const PROVIDERS = ["openai", "anthropic", "openai-compatible", "rehearsal"] as const;

export interface ModelOptions {
  readonly provider: string;
  readonly model: string;
  readonly base_url?: string;
  /** The environment variable that holds the key. */
  readonly api_key_env?: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export async function openModel(
  options: ModelOptions,
  environment: Environment = process.env,
  downgrades: Downgrades = knownDowngrades,
): Promise<Model> {
  const { provider } = options;
  switch (provider) {
    case "rehearsal":
      return new RehearsalModel(options.model);
    case "openai":
      return openResponses(options, environment, downgrades);
    case "openai-compatible":
      return openChat(options, environment, downgrades);
    case "anthropic":
      return openMessages(options, environment, downgrades);
    default:
      throw new ModelError(
        "bad_request",
        `there is no provider ${JSON.stringify(provider)}${didYouMean(provider, PROVIDERS)}; one of ${PROVIDERS.join(", ")}`,
      );
  }
}

/** Retrying is the business of whoever asks, and so is saying what went wrong. */
const QUIET = { maxRetries: 0, logLevel: "off" } as const;

async function openResponses(options: ModelOptions, environment: Environment, downgrades: Downgrades): Promise<Model> {
  const { default: OpenAI } = await loaded(() => import("openai"), "openai@6", options.provider);
  const { responsesProtocol } = await import("./openai/responses.js");
  const client = new OpenAI({
    apiKey: keyOf(options, environment, "OPENAI_API_KEY"),
    baseURL: addressOf(options, environment, "OPENAI_BASE_URL") ?? null,
    ...QUIET,
  });
  return new RemoteModel(options.model, responsesProtocol(client, options.model, OpenAI), downgrades);
}

/**
 * The key for OpenAI goes to another address only together with that address: both from OpenAI's own variables, or
 * named by `api_key_env`. Without one the server is taken to want none, as local ones do.
 */
async function openChat(options: ModelOptions, environment: Environment, downgrades: Downgrades): Promise<Model> {
  const baseURL = addressOf(options, environment, "OPENAI_BASE_URL");
  if (baseURL === undefined)
    throw new ModelError(
      "bad_request",
      "openai-compatible needs the server's address: set base_url (for example http://127.0.0.1:11434/v1), or OPENAI_BASE_URL",
    );
  const { default: OpenAI } = await loaded(() => import("openai"), "openai@6", options.provider);
  const { chatProtocol } = await import("./openai/chat.js");
  const named = options.api_key_env !== undefined || options.base_url === undefined;
  const client = new OpenAI({
    apiKey: named ? keyOf(options, environment, "OPENAI_API_KEY") : "none",
    baseURL,
    organization: null,
    project: null,
    ...QUIET,
  });
  return new RemoteModel(options.model, chatProtocol(client, options.model, OpenAI), downgrades);
}

async function openMessages(options: ModelOptions, environment: Environment, downgrades: Downgrades): Promise<Model> {
  const { default: Anthropic } = await loaded(
    () => import("@anthropic-ai/sdk"),
    "@anthropic-ai/sdk@1",
    options.provider,
  );
  const { messagesProtocol } = await import("./anthropic/messages.js");
  const client = new Anthropic({
    apiKey: keyOf(options, environment, "ANTHROPIC_API_KEY"),
    authToken: null,
    baseURL: addressOf(options, environment, "ANTHROPIC_BASE_URL") ?? null,
    ...QUIET,
  });
  return new RemoteModel(options.model, messagesProtocol(client, options.model, Anthropic), downgrades);
}

async function loaded<Sdk>(load: () => Promise<Sdk>, wanted: string, provider: string): Promise<Sdk> {
  try {
    return await load();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw error;
    throw new ModelError(
      "missing_sdk",
      `the provider ${provider} needs a package that is not installed: npm install ${wanted} (or use the provider rehearsal, which needs nothing)`,
      { cause: error },
    );
  }
}

function keyOf(options: ModelOptions, environment: Environment, usual: string): string {
  const name = options.api_key_env ?? usual;
  const key = environment[name]?.trim();
  if (key === undefined || key === "")
    throw new ModelError(
      "auth",
      `the provider ${options.provider} needs a key: set the environment variable ${name}${options.api_key_env === undefined ? ", or name another with api_key_env" : ", which api_key_env names"} (or use the provider rehearsal, which needs none)`,
    );
  return key;
}

function addressOf(options: ModelOptions, environment: Environment, usual: string): string | undefined {
  return options.base_url ?? (environment[usual]?.trim() || undefined);
}
