/** The secrets of hooks, as the environment has them, and which hooks have none. */
import type { HookConfig, Hooks } from "../../config/hooks.js";
import { keyOf } from "./signatures.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** One that can take nothing. */
export interface HookWithoutSecret {
  name: string;
  /** Where its secret is looked for. */
  secret_env: string[];
}

export function keysOf({ scheme, secret_env }: HookConfig, env: Environment): Buffer[] {
  return secret_env.flatMap((variable) => keyOf(scheme, env[variable] ?? "") ?? []);
}

export function hooksWithoutSecret(hooks: Hooks, env: Environment): HookWithoutSecret[] {
  return [...hooks]
    .filter(([, hook]) => keysOf(hook, env).length === 0)
    .map(([name, { secret_env }]) => ({ name, secret_env: [...secret_env] }));
}

export function withoutSecretLine(name: string, secret_env: readonly string[]): string {
  return `the hook ${name} takes nothing: there is no secret of its scheme in ${secret_env.join(", ")}`;
}
