/**
 * Notices that one of some files may be another than it was. The file system's own word is quick, but it is missing on some
 * file systems, and ends with a file that is removed: so each is looked at from time to time as well.
 */
import { lstat } from "node:fs/promises";
import type { FSWatcher } from "chokidar";
import { systemClock } from "../../platform/clock.js";
import { later } from "../../platform/timers.js";

/** Nothing has been heard for so long: whoever writes is done, most of the time. */
const QUIET_MS = 150;
/** And if something is always heard, after so long. */
const QUIET_MS_MAX = 1_500;
const LOOK_MS = 2_000;
/** Looking takes a small part of the time. */
const LOOK_REST = 20;
/** More are only looked at: what a system can watch is limited. */
const WATCHED_MAX = 4_096;
const ASKERS = 32;

const GONE = "gone";

export class FileWatch {
  readonly #watcher: FSWatcher;
  readonly #changed: (files: readonly string[]) => Promise<void>;
  /** What each looked like when it was last given to `changed`. */
  readonly #files = new Map<string, string>();
  readonly #watched = new Set<string>();
  readonly #dirty = new Set<string>();
  #running: Promise<void> = Promise.resolve();
  #stopQuiet: () => void = () => undefined;
  #stopLook: () => void = () => undefined;
  #dirtySince: number | null = null;
  #closed = false;

  /** `changed`: these may be others than they were; called for one round at a time. */
  static async open(changed: (files: readonly string[]) => Promise<void>): Promise<FileWatch> {
    const chokidar = await import("chokidar");
    return new FileWatch(chokidar.FSWatcher, changed);
  }

  private constructor(Watcher: typeof FSWatcher, changed: (files: readonly string[]) => Promise<void>) {
    this.#changed = changed;
    this.#watcher = new Watcher({
      // It keeps no process alive; but on Windows a watch that fails would end one, unless it is persistent.
      persistent: process.platform === "win32",
      ignoreInitial: true,
      followSymlinks: false,
      // Names like those of an editor's copies are files like others, and we wait ourselves.
      atomic: false,
      depth: 0,
      // The folder of a file that is gone is not watched for it.
      ignored: (path) => !this.#files.has(path),
    });
    this.#watcher.on("all", (event, path) => {
      if (event === "unlink") this.#unwatched(path);
      this.heard(path);
    });
    // What cannot be watched is looked at.
    this.#watcher.on("error", () => undefined);
    this.#lookLater(LOOK_MS);
  }

  add(file: string): void {
    if (!this.#files.has(file)) this.#files.set(file, "");
    this.#watch(file);
    this.heard(file);
  }

  remove(file: string): void {
    this.#files.delete(file);
    this.#dirty.delete(file);
    this.#unwatched(file);
  }

  /** Something may have happened to it. */
  heard(file: string): void {
    if (this.#closed || !this.#files.has(file)) return;
    this.#dirty.add(file);
    const now = systemClock.monotonic();
    this.#dirtySince ??= now;
    this.#stopQuiet();
    const left = Math.max(0, this.#dirtySince + QUIET_MS_MAX - now);
    this.#stopQuiet = later(Math.min(QUIET_MS, left), () => this.#round());
  }

  /** Which of these are others now than when they were last given to `changed`; that has been done with those that it was given. */
  stale(files: readonly string[]): Promise<string[]> {
    const asked = this.#running.then(async () => {
      const found = await signaturesOf(files);
      return found.flatMap(([file, signature]) => (this.#files.get(file) === signature ? [] : [file]));
    });
    this.#running = asked.then(() => undefined);
    return asked;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopQuiet();
    this.#stopLook();
    await this.#watcher.close();
    await this.#running;
  }

  #round(): void {
    this.#dirtySince = null;
    this.#running = this.#running.then(async () => {
      if (this.#closed) return;
      const files = [...this.#dirty];
      this.#dirty.clear();
      for (const [file, signature] of await signaturesOf(files)) {
        if (!this.#files.has(file)) continue;
        this.#files.set(file, signature);
        if (signature !== GONE) this.#watch(file);
      }
      await this.#changed(files);
    });
  }

  #watch(file: string): void {
    if (this.#closed || this.#watched.has(file) || this.#watched.size >= WATCHED_MAX) return;
    this.#watched.add(file);
    this.#watcher.add(file);
  }

  #unwatched(file: string): void {
    if (!this.#watched.delete(file)) return;
    this.#watcher.unwatch(file);
  }

  #lookLater(delay_ms: number): void {
    if (this.#closed) return;
    this.#stopLook = later(delay_ms, () => void this.#look());
  }

  async #look(): Promise<void> {
    const begun = systemClock.monotonic();
    for (const [file, signature] of await signaturesOf([...this.#files.keys()])) {
      if (signature === GONE) this.#unwatched(file);
      else if (this.#files.has(file)) this.#watch(file);
      if (this.#files.get(file) !== signature) this.heard(file);
    }
    this.#lookLater(Math.max(LOOK_MS, (systemClock.monotonic() - begun) * LOOK_REST));
  }
}

async function signaturesOf(files: readonly string[]): Promise<(readonly [string, string])[]> {
  const found: (readonly [string, string])[] = [];
  for (let start = 0; start < files.length; start += ASKERS)
    found.push(...(await Promise.all(files.slice(start, start + ASKERS).map(signatureOf))));
  return found;
}

async function signatureOf(file: string): Promise<readonly [string, string]> {
  try {
    const { ino, mode, size, mtimeNs, ctimeNs } = await lstat(file, { bigint: true });
    return [file, `${ino} ${mode} ${size} ${mtimeNs} ${ctimeNs}`];
  } catch {
    return [file, GONE];
  }
}
