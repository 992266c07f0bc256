import type { UserId } from "../../domain/ids.js";
import { type Blocks, blockOf, rangeOf } from "./blocks.js";
import type { Connection, Statement } from "./connection.js";
import { forgetFirst } from "./forget.js";

/** With more of them a block is read whole: it is about as fast. */
const MEMBERS_MAX = 256;
/** Users whose latest block is kept in mind. */
const USERS_MAX = 10_000;

interface Latest {
  readonly block: number;
  /** What of it is the user's, as offsets; null: not known from its beginning, or too many. */
  offsets: number[] | null;
}

/**
 * Which numbers of a block are a user's. It is written when the user's next block begins, beside the name of that one, so
 * that it costs no page more: from then on the user's rows are read one by one, and not with everybody's.
 */
export class BlockMembers {
  readonly #blocks: Blocks;
  readonly #write: Statement;
  readonly #latest = new Map<UserId, Latest>();

  constructor(connection: Connection, blocks: Blocks) {
    this.#blocks = blocks;
    this.#write = connection.prepare("UPDATE blocks SET numbers = ? WHERE kind = 'u' AND key = ? AND block = ?");
  }

  /** A new notification is the user's. */
  add(user_id: UserId, number: number): void {
    const block = blockOf(number);
    const offset = number - rangeOf(block).from;
    const latest = this.#latest.get(user_id);
    if (latest?.block === block) {
      if (latest.offsets === null) return;
      if (latest.offsets.length < MEMBERS_MAX) latest.offsets.push(offset);
      else latest.offsets = null;
      return;
    }
    if (latest !== undefined && latest.offsets !== null) this.#write.run(listOf(latest.offsets), user_id, latest.block);
    // Whose block began last is the last to be forgotten.
    this.#latest.delete(user_id);
    if (this.#latest.size >= USERS_MAX) forgetFirst(this.#latest);
    const isFirst = this.#blocks.name("u", user_id, block);
    this.#latest.set(user_id, { block, offsets: isFirst ? [offset] : null });
  }
}

function listOf(offsets: readonly number[]): Buffer {
  const list = Buffer.alloc(2 * offsets.length);
  for (const [index, offset] of offsets.entries()) list.writeUInt16LE(offset, 2 * index);
  return list;
}
