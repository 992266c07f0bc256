/**
 * Which toasts are shown: at most four at once (on a phone, one), and one that says how many more have come. What is critical finds room; what
 * comes while nobody looks waits until somebody does.
 */
import type { NotificationView } from "tidings/client";

/** One of the server's notifications, or the agent's words from a conversation that is not open. */
export type Toast =
  | { readonly kind: "notification"; readonly key: string; readonly notification: NotificationView }
  | { readonly kind: "words"; readonly key: string; readonly thread_id: string; readonly text: string };

export interface Board {
  show(toast: Toast): void;
  update(toast: Toast): void;
  hide(key: string): void;
  /** How many more there are; 0: none. */
  more(count: number): void;
}

const SHOWN_MAX = 4;
/** On a phone they would cover what one came for. */
const SHOWN_MAX_NARROW = 1;
const NARROW = "(max-width: 48em)";

export class Desk {
  readonly #board: Board;
  /** In the order in which they came. */
  readonly #shown = new Map<string, Toast>();
  readonly #more = new Set<string>();
  readonly #waiting = new Map<string, Toast>();
  readonly #isLookedAt: () => boolean;

  /** Whether somebody looks is asked when something comes: to be told of it later would be too late. */
  constructor(board: Board, isLookedAt: () => boolean) {
    this.#board = board;
    this.#isLookedAt = isLookedAt;
  }

  /** Somebody looks again. */
  showWaiting(): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const toast of waiting) this.put(toast);
  }

  has(key: string): boolean {
    return this.#shown.has(key) || this.#more.has(key) || this.#waiting.has(key);
  }

  put(toast: Toast): void {
    const { key } = toast;
    if (this.#shown.has(key)) {
      this.#shown.set(key, toast);
      this.#board.update(toast);
    } else if (!this.#isLookedAt()) this.#waiting.set(key, toast);
    else if (this.#hasRoom(toast)) {
      this.#more.delete(key);
      this.#shown.set(key, toast);
      this.#board.show(toast);
      this.#sayMore();
    } else if (toast.kind === "notification") {
      this.#more.add(key);
      this.#sayMore();
    }
  }

  /** It needs no toast any more. */
  take(key: string): void {
    this.#waiting.delete(key);
    if (this.#more.delete(key)) this.#sayMore();
    if (this.#shown.delete(key)) this.#board.hide(key);
  }

  /** Its words are on the page now. */
  takeOfThread(thread_id: string): void {
    for (const toast of [...this.#shown.values(), ...this.#waiting.values()])
      if (toast.kind === "words" && toast.thread_id === thread_id) this.take(toast.key);
  }

  /** Its time is over, or somebody has closed it. */
  closed(key: string): void {
    this.#shown.delete(key);
  }

  moreClosed(): void {
    this.#more.clear();
  }

  #hasRoom(toast: Toast): boolean {
    const isUrgent = isCritical(toast) || toast.kind === "words";
    // While there are more than fit, what comes is one more: nothing jumps.
    if (!isUrgent) return this.#more.size === 0 && this.#shown.size < shownMax();
    if (this.#shown.size < shownMax()) return true;
    const [oldest] = [...this.#shown.values()].filter((one) => !isCritical(one));
    if (oldest === undefined) return false;
    this.take(oldest.key);
    return true;
  }

  #sayMore(): void {
    this.#board.more(this.#more.size);
  }
}

function shownMax(): number {
  return matchMedia(NARROW).matches ? SHOWN_MAX_NARROW : SHOWN_MAX;
}

export function isCritical(toast: Toast): boolean {
  if (toast.kind !== "notification") return false;
  const { severity, priority } = toast.notification;
  return severity === "critical" || priority === "critical";
}
