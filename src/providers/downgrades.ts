/** Which models turned out to refuse a role, by address. Known for as long as the process lives. */
import type { BlockForm } from "./model.js";

export interface Downgrade {
  readonly endpoint: string;
  readonly model: string;
  readonly form: BlockForm;
}

export class Downgrades {
  readonly #known = new Map<string, Downgrade>();

  form(endpoint: string, model: string): BlockForm | undefined {
    return this.#known.get(keyOf(endpoint, model))?.form;
  }

  remember(downgrade: Downgrade): void {
    this.#known.set(keyOf(downgrade.endpoint, downgrade.model), downgrade);
  }

  /** In the order in which they were learned. */
  list(): readonly Downgrade[] {
    return [...this.#known.values()];
  }
}

function keyOf(endpoint: string, model: string): string {
  return JSON.stringify([endpoint, model]);
}

/** Of this process: every model that is opened learns from the others. */
export const knownDowngrades = new Downgrades();
