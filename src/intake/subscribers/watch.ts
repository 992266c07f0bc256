/**
 * Notices that a folder has changed. The file system's own word is quick, but on some file systems it is missing or
 * incomplete, so the folder is looked at from time to time as well. A change counts when two looks in a row see the same:
 * a file that is being written in pieces, or a folder in the middle of being replaced, is waited for.
 */
import { type FSWatcher, watch } from "node:fs";
import { lstat, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { systemClock } from "../../platform/clock.js";
import { later } from "../../platform/timers.js";

const SETTLE_MS = 100;
/** A folder that never comes to rest is read all the same after so many looks. */
const LOOKS_MAX = 20;
const POLL_MS = 2_000;
/** A look at a large folder takes a while: looking takes a small part of the time. */
const POLL_REST = 20;
const WATCHERS_MAX = 64;
const DEPTH_MAX = 5;
const ENTRIES_MAX = 50_000;
const SKIPPED: ReadonlySet<string> = new Set(["node_modules", ".git"]);

export interface FolderWatch {
  /** Ends when nothing is left: no timer, no watcher, and no call of `onChange` under way. */
  close(): Promise<void>;
}

/**
 * Calls `onChange` after every change in the folder and its subfolders that happens after this has answered; never twice
 * at the same time. The folder may be missing, and may come and go.
 */
export async function watchFolder(folder: string, onChange: () => Promise<void>): Promise<FolderWatch> {
  const watcher = new FolderWatcher(folder, onChange);
  await watcher.start();
  return watcher;
}

class FolderWatcher implements FolderWatch {
  readonly #folder: string;
  readonly #onChange: () => Promise<void>;
  readonly #watchers = new Map<string, { watcher: FSWatcher; inode: string }>();
  /** What the folder looked like when `onChange` was last called. */
  #known = "";
  /** The file system has said something since the last look. */
  #told = false;
  #closed = false;
  #running: Promise<void> = Promise.resolve();
  #endRest: () => void = () => {};
  #resting: "poll" | "settle" | undefined;

  constructor(folder: string, onChange: () => Promise<void>) {
    this.#folder = folder;
    this.#onChange = onChange;
  }

  async start(): Promise<void> {
    // The first look sets the watchers up; what changes meanwhile shows in the second, or is told.
    await this.#look();
    this.#known = await this.#look();
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#endRest();
    await this.#running;
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  async #run(): Promise<void> {
    let restMs = POLL_MS;
    while (!this.#closed) {
      if (!this.#told) await this.#rest(restMs, "poll");
      if (this.#closed) return;
      const told = this.#told;
      const begun = systemClock.monotonic();
      const seen = await this.#look();
      restMs = Math.max(POLL_MS, (systemClock.monotonic() - begun) * POLL_REST);
      if (!told && seen === this.#known) continue;
      this.#known = await this.#settled(seen);
      if (!this.#closed) await this.#onChange();
    }
  }

  /** Looks until two looks in a row see the same. */
  async #settled(first: string): Promise<string> {
    let seen = first;
    for (let looks = 1; looks < LOOKS_MAX && !this.#closed; looks += 1) {
      await this.#rest(SETTLE_MS, "settle");
      const next = await this.#look();
      if (next === seen) break;
      seen = next;
    }
    return seen;
  }

  #rest(delayMs: number, why: "poll" | "settle"): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        stop();
        this.#resting = undefined;
        resolve();
      };
      const stop = later(delayMs, end);
      this.#resting = why;
      this.#endRest = end;
      if (this.#closed) end();
    });
  }

  #hear(): void {
    this.#told = true;
    if (this.#resting === "poll") this.#endRest();
  }

  /** What the folder looks like now; its folders are watched from then on. */
  async #look(): Promise<string> {
    this.#told = false;
    const found: Look = { lines: [], folders: new Map() };
    await lookInto(this.#folder, 0, found);
    if (!this.#closed) this.#watch(found.folders);
    return found.lines.join("\n");
  }

  #watch(folders: ReadonlyMap<string, string>): void {
    for (const [path, { watcher, inode }] of this.#watchers) {
      if (folders.get(path) === inode) continue;
      watcher.close();
      this.#watchers.delete(path);
    }
    for (const [path, inode] of folders) {
      if (this.#watchers.has(path)) continue;
      if (this.#watchers.size >= WATCHERS_MAX) return;
      try {
        const watcher = watch(path, { persistent: false }, () => this.#hear());
        // A watcher that fails (its folder is gone, or there are too many) is replaced by the looks.
        watcher.on("error", () => {
          watcher.close();
          if (this.#watchers.get(path)?.watcher === watcher) this.#watchers.delete(path);
          this.#hear();
        });
        this.#watchers.set(path, { watcher, inode });
      } catch {
        // As above.
        return;
      }
    }
  }
}

interface Look {
  /** One line for each entry; equal lines, equal folder. */
  readonly lines: string[];
  /** Every folder, with its inode: one that was replaced must be watched anew. */
  readonly folders: Map<string, string>;
}

/** How many entries are asked about at the same time. */
const ASKERS = 32;

async function lookInto(folder: string, depth: number, found: Look): Promise<void> {
  try {
    const self = await stat(folder, { bigint: true });
    if (!self.isDirectory()) {
      found.lines.push(`${folder} is no folder`);
      return;
    }
    const names = (await readdir(folder)).sort();
    found.folders.set(folder, `${self.dev}:${self.ino}`);
    for (let start = 0; start < names.length; start += ASKERS) {
      const room = ENTRIES_MAX - found.lines.length;
      const some = names.slice(start, start + Math.min(ASKERS, room)).map((name) => join(folder, name));
      const seen = await Promise.all(some.map(lineOf));
      for (const [index, { line, isFolder }] of seen.entries()) {
        found.lines.push(line);
        const path = some[index] ?? "";
        if (isFolder && depth < DEPTH_MAX && !SKIPPED.has(basename(path))) await lookInto(path, depth + 1, found);
      }
    }
  } catch (error) {
    // Missing, or not to be read: that is what it looks like.
    found.lines.push(`${folder} ${error instanceof Error && "code" in error ? error.code : error}`);
  }
}

async function lineOf(path: string): Promise<{ line: string; isFolder: boolean }> {
  try {
    const entry = await lstat(path, { bigint: true });
    const { ino, mode, size, mtimeNs, ctimeNs } = entry;
    return { line: `${path} ${ino} ${mode} ${size} ${mtimeNs} ${ctimeNs}`, isFolder: entry.isDirectory() };
  } catch {
    return { line: `${path} is gone`, isFolder: false };
  }
}
