/** What a program gives its agent to do, while the agent is there. */
import { InvalidInputError } from "../domain/errors.js";
import type { HostedAgent } from "./agent.js";
import type { Impact } from "./impact.js";
import { type AnyTool, isStateful } from "./tools.js";

export interface ToolView {
  readonly name: string;
  readonly description: string;
  /** Whether its calls go on in the background. */
  readonly stateful: boolean;
  readonly impact: Impact;
}

export class ToolRegistry {
  readonly #agent: () => HostedAgent | null;

  constructor(agent: () => HostedAgent | null) {
    this.#agent = agent;
  }

  /**
   * The agent has it from its next call of the model on. Answers how to take it away again; what it does in the
   * background is ended then, and the agent is told.
   */
  register(...tools: readonly AnyTool[]): () => Promise<void> {
    const agent = this.#hosted();
    const registration = agent.addTools(tools);
    return async () => {
      registration.remove();
      await agent.toolsRemoved(tools);
    };
  }

  list(): ToolView[] {
    const agent = this.#hosted();
    return agent.tools.map((tool) => ({
      name: tool.name,
      description: tool.description,
      stateful: isStateful(tool),
      impact: agent.impactOf(tool.name),
    }));
  }

  #hosted(): HostedAgent {
    const agent = this.#agent();
    if (agent === null)
      throw new InvalidInputError("tools", "no agent is hosted: open with agent: { provider: ... } first");
    return agent;
  }
}
