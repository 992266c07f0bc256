/** Whether the hosted agent rests, everywhere; ends by itself after a while, if that was asked for, and with the process. */
import { isoTime } from "../domain/time.js";
import { systemClock } from "../platform/clock.js";
import { later } from "../platform/timers.js";
import type { Tidings } from "../tidings.js";
import type { Log } from "./log.js";

export interface RestView {
  readonly state: "running" | "paused";
  /** When it goes on by itself; null: when it is told to. */
  readonly resumes_at: string | null;
}

export class Rest {
  readonly #tidings: Tidings;
  readonly #log: Log;
  #paused = false;
  #resumes_at: number | null = null;
  #cancel: () => void = () => {};

  constructor(tidings: Tidings, log: Log) {
    this.#tidings = tidings;
    this.#log = log;
  }

  get view(): RestView {
    const at = this.#resumes_at;
    return { state: this.#paused ? "paused" : "running", resumes_at: at === null ? null : isoTime(at) };
  }

  /** Twice is as once, but for the time, which is the newest. */
  pause(timeoutMs: number | null): RestView {
    this.#cancel();
    this.#cancel = () => {};
    this.#resumes_at = timeoutMs === null ? null : systemClock.wall() + timeoutMs;
    if (!this.#paused) this.#log.say("info", "the agent was paused");
    this.#paused = true;
    this.#tidings.restAgent();
    if (timeoutMs !== null) this.#cancel = later(timeoutMs, () => void this.resume());
    return this.view;
  }

  async resume(): Promise<RestView> {
    this.end();
    if (this.#paused) this.#log.say("info", "the agent goes on");
    this.#paused = false;
    await this.#tidings.resumeAgent();
    return this.view;
  }

  end(): void {
    this.#cancel();
    this.#resumes_at = null;
  }
}
