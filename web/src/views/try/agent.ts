/** What runs the agent here, as far as the situations differ by it. */
import type { RuntimeStatus } from "tidings/client";

export interface Agent {
  /** `real`: a provider that costs money and has a mind of its own. */
  readonly kind: "none" | "rehearsal" | "real";
  readonly name: string;
  /** Whether it may run commands on the server's machine. */
  readonly shell: boolean;
  /** What the rehearsal model has brought, by the names of its tools. */
  readonly props: readonly string[];
}

export function agentOf({ agent, tools, props }: RuntimeStatus): Agent {
  const shell = tools.includes("shell");
  if (agent === null) return { kind: "none", name: "none", shell, props };
  const { provider, model } = agent;
  const name = model === "" || model === provider ? provider : `${provider} ${model}`;
  return { kind: provider === "rehearsal" ? "rehearsal" : "real", name, shell, props };
}
