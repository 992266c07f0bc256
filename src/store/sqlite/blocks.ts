import type { Channel } from "../../domain/axes.js";
import type { Connection, Statement } from "./connection.js";

/** Statements of `check.ts`, `figures.ts` and `prune.ts` say the same number, and so do migrations. */
const BLOCK_SIZE = 1_024;
/** Blocks asked for at a time. Part of the statements, since SQLite plans anew whenever a `LIMIT ?` is bound. */
const CHUNK = 16;

/**
 * The journal by user; notifications by user and by thread, which are marked; by user those unread, and those live on a
 * channel, which `LiveBlocks` names.
 */
export type BlockKind = "j" | "u" | "t" | "unread" | Channel;

export interface Range {
  readonly from: number;
  readonly to: number;
}

export function blockOf(number: number): number {
  return Math.floor(number / BLOCK_SIZE);
}

export function rangeOf(block: number): Range {
  return { from: block * BLOCK_SIZE, to: block * BLOCK_SIZE + BLOCK_SIZE - 1 };
}

/** The coarse index: which blocks of numbers hold anything of a key. */
export class Blocks {
  readonly #insert: Statement;
  readonly #delete: Statement;
  readonly #down: Statement;
  readonly #up: Statement;
  readonly #members: Statement;
  readonly #seen = new Map<BlockKind, { block: number; keys: Set<string> }>();

  constructor(connection: Connection) {
    this.#insert = connection.prepare("INSERT OR IGNORE INTO blocks (kind, key, block) VALUES (?, ?, ?)");
    this.#delete = connection.prepare("DELETE FROM blocks WHERE kind = ? AND key = ? AND block = ?");
    this.#members = connection.prepare("SELECT numbers FROM blocks WHERE kind = 'u' AND key = ? AND block = ?").pluck();
    this.#down = connection
      .prepare(`SELECT block FROM blocks WHERE kind = ? AND key = ? AND block <= ? ORDER BY block DESC LIMIT ${CHUNK}`)
      .pluck();
    this.#up = connection
      .prepare(`SELECT block FROM blocks WHERE kind = ? AND key = ? AND block >= ? ORDER BY block LIMIT ${CHUNK}`)
      .pluck();
  }

  /** Marks that `number` belongs to `key`. Numbers mostly grow, so the newest block is remembered. */
  mark(kind: "j" | "t", key: string, number: number): void {
    const block = blockOf(number);
    let seen = this.#seen.get(kind);
    if (seen === undefined || seen.block < block) {
      seen = { block, keys: new Set() };
      this.#seen.set(kind, seen);
    }
    if (seen.block === block) {
      if (seen.keys.has(key)) return;
      seen.keys.add(key);
    }
    this.#insert.run(kind, key, block);
  }

  /** Names a block, whatever was marked before; whether it was not named yet. */
  name(kind: BlockKind, key: string, block: number): boolean {
    return this.#insert.run(kind, key, block).changes === 1;
  }

  /** Nothing in the block belongs to `key` any more. */
  unname(kind: BlockKind, key: string, block: number): void {
    this.#delete.run(kind, key, block);
  }

  /** The numbers of a user in a block, ascending; some of them may be gone. Undefined: it is to be read whole. */
  members(user_id: string, block: number): readonly number[] | undefined {
    const list = this.#members.get(user_id, block) as Buffer | null | undefined;
    if (list === null || list === undefined) return undefined;
    const from = block * BLOCK_SIZE;
    return Array.from({ length: list.length / 2 }, (_, index) => from + list.readUInt16LE(2 * index));
  }

  *descending(kind: BlockKind, key: string, from: number): Generator<Range> {
    for (let block = blockOf(from); ; ) {
      const found = this.#down.all(kind, key, block) as number[];
      for (const one of found) yield rangeOf(one);
      if (found.length < CHUNK) return;
      block = (found.at(-1) as number) - 1;
    }
  }

  *ascending(kind: BlockKind, key: string, from: number): Generator<Range> {
    for (let block = blockOf(from); ; ) {
      const found = this.#up.all(kind, key, block) as number[];
      for (const one of found) yield rangeOf(one);
      if (found.length < CHUNK) return;
      block = (found.at(-1) as number) + 1;
    }
  }
}
