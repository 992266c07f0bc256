import type { Kept } from "../../domain/notification.js";

/** A notification as the operations work on it: with its place in the store. */
export interface Held extends Kept {
  readonly number: number;
  readonly last_seq: number;
}
