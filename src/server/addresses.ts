/** How many connections each address has. Whoever comes when it has enough is told so, and ended. */
import { isIPv6, type Socket } from "node:net";
import { OverloadedError } from "../domain/errors.js";
import { later } from "../platform/timers.js";

/** How long one too many may take to ask for something, so that it can be told why it gets nothing. */
const WORD_MS = 1_000;
const RETRY_MS = 1_000;

export class Addresses {
  readonly #max: number;
  readonly #open = new Map<string, number>();
  /** One too many each. */
  readonly #excess = new WeakSet<object>();

  constructor(max: number) {
    this.#max = max;
  }

  /** A connection that has come, until `leave`. Of those that are too many, as many again are told so; further ones are not. */
  take(socket: Socket): void {
    const address = addressOf(socket);
    const open = (this.#open.get(address) ?? 0) + 1;
    this.#open.set(address, open);
    if (open <= this.#max) return;
    this.#excess.add(socket);
    if (open > 2 * this.#max) socket.destroy();
    else
      socket.on(
        "close",
        later(WORD_MS, () => socket.destroy()),
      );
  }

  /** It was closed. */
  leave(socket: Socket): void {
    const address = addressOf(socket);
    const left = (this.#open.get(address) ?? 1) - 1;
    if (left === 0) this.#open.delete(address);
    else this.#open.set(address, left);
  }

  isExcess(socket: object): boolean {
    return this.#excess.has(socket);
  }

  /** Throws for one that is too many. */
  admit(socket: object): void {
    if (this.#excess.has(socket))
      throw new OverloadedError(`this address has ${this.#max} connections already`, RETRY_MS);
  }
}

/** Once it was asked for, a socket knows it to its end, and after. */
function addressOf(socket: Socket): string {
  return networkOf(socket.remoteAddress ?? "");
}

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** What one party has: an address of IPv4, or a network of IPv6, of whose addresses it may use any. */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  if (!isIPv6(plain)) return plain;
  const [before = "", after] = plain.toLowerCase().split("::");
  const groupsOf = (text = "") => (text === "" ? [] : text.split(":"));
  const [first, last] = [groupsOf(before), groupsOf(after)];
  const zeros = after === undefined ? 0 : Math.max(0, GROUPS - first.length - last.length);
  const groups = [...first, ...Array<string>(zeros).fill("0"), ...last];
  return `${groups.slice(0, NETWORK_GROUPS).join(":")}::`;
}
