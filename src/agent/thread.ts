import { type ThreadId, threadId, type UserId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { parseInput, wordSchema } from "../domain/parse.js";
import type { Point } from "../domain/points.js";
import type { Carrier } from "./carrier.js";
import type { Carriers, CollectOptions } from "./carriers.js";

const idSchema = wordSchema(LIMITS.idChars);

/** A conversation as its agent has it. */
export class AgentThread {
  readonly id: ThreadId;
  readonly #carriers: Carriers;
  readonly #user_id: UserId;

  /** `user_id`: whose it is to be, if nobody has opened it. */
  constructor(carriers: Carriers, id: string, user_id: UserId) {
    this.id = threadId(parseInput(idSchema, id));
    this.#carriers = carriers;
    this.#user_id = user_id;
  }

  /** What the agent is to be told at a delivery point, put into a carrier; null if there is nothing. */
  collect(point: Point, options: CollectOptions = {}): Promise<Carrier | null> {
    const { signal, ...rest } = options;
    const input = { ...rest, thread_id: this.id, point };
    return this.#carriers.collect(input, { signal, opens: this.#user_id });
  }
}
