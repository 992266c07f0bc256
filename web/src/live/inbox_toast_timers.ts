/** Toasts go by themselves after a while, in which somebody could see them: not while they are pointed at or the page is hidden. */
export class ToastTimers {
  readonly #close: (key: string) => void;
  readonly #lasting = new Map<string, number>();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  readonly #held = new Set<string>();
  #isVisible = true;

  constructor(close: (key: string) => void) {
    this.#close = close;
  }

  /** From now on, also if it ran already. */
  start(key: string, ms: number): void {
    this.#lasting.set(key, ms);
    this.#run(key);
  }

  hold(key: string): void {
    this.#held.add(key);
    this.#stop(key);
  }

  letGo(key: string): void {
    this.#held.delete(key);
    this.#run(key);
  }

  setVisible(isVisible: boolean): void {
    this.#isVisible = isVisible;
    for (const key of this.#lasting.keys())
      if (isVisible) this.#run(key);
      else this.#stop(key);
  }

  end(key: string): void {
    this.#stop(key);
    this.#lasting.delete(key);
    this.#held.delete(key);
  }

  #run(key: string): void {
    this.#stop(key);
    const ms = this.#lasting.get(key);
    if (ms === undefined || this.#held.has(key) || !this.#isVisible) return;
    this.#timers.set(
      key,
      setTimeout(() => this.#close(key), ms),
    );
  }

  #stop(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }
}
