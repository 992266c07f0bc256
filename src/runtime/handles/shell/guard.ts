/**
 * A process beside the host that ends the groups of processes which the host has started if the host is gone, however that
 * came. It hears of them by a pipe, whose end it sees whatever becomes of the host.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { backoff } from "../../../platform/backoff.js";
import { later } from "../../../platform/timers.js";

/** Nothing but numbers of process groups is ever said to it. */
const PROGRAM = `
live=""
while read -r what group; do
  rest=""
  for one in $live; do [ "$one" = "$group" ] || rest="$rest $one"; done
  live=$rest
  [ "$what" = add ] && live="$live $group"
done
[ -z "$live" ] && exit 0
for one in $live; do kill -s TERM -- "-$one" 2>/dev/null; done
sleep 2
for one in $live; do kill -s KILL -- "-$one" 2>/dev/null; done
exit 0
`;

const ENVIRONMENT = { PATH: "/usr/bin:/bin" };

/** One that has run for so long is well. */
const STEADY_MS = 10_000;
const RESTART_BASE_MS = 200;
const RESTART_MAX_MS = 30_000;

export class Guard {
  readonly #groups = new Set<number>();
  #process: ChildProcess | null = null;
  /** How many were gone, one after the other. */
  #lost = 0;
  #stopTimer: () => void = () => undefined;

  /** Resolves when it is sure to hear of it. */
  async add(group: number): Promise<void> {
    this.#groups.add(group);
    try {
      // One that was killed a moment ago does not hear it; the next one does.
      await this.#say(`add ${group}`).catch(() => this.#say(`add ${group}`));
    } catch (error) {
      this.#groups.delete(group);
      throw error;
    }
  }

  async remove(group: number): Promise<void> {
    this.#groups.delete(group);
    if (this.#process !== null) await this.#say(`remove ${group}`).catch(() => undefined);
  }

  close(): Promise<void> {
    const guard = this.#process;
    this.#process = null;
    this.#stopTimer();
    if (guard === null || guard.pid === undefined || guard.exitCode !== null || guard.signalCode !== null)
      return Promise.resolve();
    return new Promise((resolve) => {
      guard.ref();
      guard.once("exit", () => resolve());
      guard.stdin?.end();
    });
  }

  #say(line: string): Promise<void> {
    const guard = this.#process ?? this.#start();
    return new Promise((resolve, reject) => {
      // One that could not be started has no input.
      if (guard.stdin == null) {
        guard.once("error", reject);
        return;
      }
      guard.stdin.write(`${line}\n`, (error) => {
        if (error == null) return resolve();
        this.#gone(guard);
        reject(error);
      });
    });
  }

  #start(): ChildProcess {
    // In a group of its own: what ends the host's group must not end the guard before it has done its work.
    const guard = spawn("/bin/sh", ["-c", PROGRAM], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: ENVIRONMENT,
    });
    this.#process = guard;
    const gone = () => this.#gone(guard);
    guard.on("error", gone);
    guard.on("exit", gone);
    guard.stdin?.on("error", gone);
    this.#stopTimer();
    this.#stopTimer = later(STEADY_MS, () => {
      this.#lost = 0;
    });
    // One before it may be gone.
    for (const group of this.#groups) guard.stdin?.write(`add ${group}\n`);
    guard.unref();
    (guard.stdin as unknown as { unref?(): void } | null)?.unref?.();
    return guard;
  }

  /** What runs is not left without one: another takes its place, at once if that was the first. */
  #gone(guard: ChildProcess): void {
    if (this.#process !== guard) return;
    this.#process = null;
    this.#stopTimer();
    const wait = this.#lost === 0 ? 0 : backoff(this.#lost - 1, RESTART_BASE_MS, RESTART_MAX_MS);
    this.#lost += 1;
    this.#stopTimer = later(wait, () => {
      if (this.#groups.size > 0) this.#start();
    });
  }
}
