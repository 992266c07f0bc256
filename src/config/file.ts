/**
 * `tidings.toml` as it is in effect now. It is looked at once a second: an edit takes effect without a restart, and a
 * broken one keeps the last good version.
 */
import { realpath, stat } from "node:fs/promises";
import { Listeners } from "../platform/listeners.js";
import { every, pause } from "../platform/timers.js";
import { type Config, ConfigError, changedKeys, EMPTY_CONFIG, parseConfig } from "./config.js";
import { codeOf, readText, unreadable } from "./text_file.js";

const LOOK_MS = 1_000;
/** A file that changes while it is looked at is being written: it is read when it has come to rest. */
const REST_MS = 50;
const LOOKS_MAX = 20;
const BYTES_MAX = 1_048_576;

/** What a reading of the file has changed. */
export interface ConfigChange {
  /** The keys whose values are others now. */
  readonly changed: readonly string[];
  /** What is wrong with it, if that is news. */
  readonly problem: ConfigError | null;
}

export interface ConfigFileOptions {
  /** Null: there is none. A file that is not there says nothing. */
  readonly path: string | null;
  readonly watch: boolean;
  /** Somebody who was told of a change has thrown this. */
  readonly broke?: ((error: unknown) => void) | undefined;
}

export class ConfigFile {
  readonly path: string | null;
  readonly #listeners: Listeners<ConfigChange>;
  #current = EMPTY_CONFIG;
  #problem: ConfigError | null = null;
  /** What the file looked like when it was last read. */
  #known = "";
  #looking: Promise<void> = Promise.resolve();
  #stop: () => void = () => {};

  private constructor(path: string | null, broke: (error: unknown) => void) {
    this.path = path;
    this.#listeners = new Listeners(broke);
  }

  static async open({ path, watch, broke = () => {} }: ConfigFileOptions): Promise<ConfigFile> {
    const file = new ConfigFile(path, broke);
    if (path === null) return file;
    await file.look();
    if (watch) file.#stop = every(LOOK_MS, () => file.look());
    return file;
  }

  /** The last good version. */
  get current(): Config {
    return this.#current;
  }

  /** What is wrong with the file as it is. */
  get problem(): ConfigError | null {
    return this.#problem;
  }

  onChange(listener: (change: ConfigChange) => void): void {
    this.#listeners.add(listener);
  }

  /** Looks whether the file has changed, and reads it then. Looks follow one another. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look());
    return this.#looking;
  }

  async close(): Promise<void> {
    this.#stop();
    this.#listeners.clear();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { path } = this;
    if (path === null) return;
    let seen = await signOf(path);
    if (seen === this.#known) return;
    for (let looks = 1; looks < LOOKS_MAX && this.#known !== ""; looks += 1) {
      await pause(REST_MS);
      const again = await signOf(path);
      if (again === seen) break;
      seen = again;
    }
    this.#known = seen;
    this.#take(await read(path));
  }

  #take(found: Config | ConfigError): void {
    const before = this.#problem;
    this.#problem = found instanceof ConfigError ? found : null;
    const news = this.#problem !== null && this.#problem.message !== before?.message ? this.#problem : null;
    const changed = found instanceof ConfigError ? [] : changedKeys(this.#current, found);
    if (!(found instanceof ConfigError)) this.#current = found;
    if (changed.length === 0 && news === null) return;
    this.#listeners.tell({ changed, problem: news });
  }
}

/** Equal for equal files; never empty. */
async function signOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    return codeOf(error) ?? "unreadable";
  }
}

async function read(path: string): Promise<Config | ConfigError> {
  const refused = (reason: string) => new ConfigError(path, [{ line: null, column: null, key: null, reason }]);
  const found = await realpath(path).then((real) => readText(real, BYTES_MAX), unreadable);
  if ("reason" in found) return found.missing ? EMPTY_CONFIG : refused(found.reason);
  try {
    return parseConfig(found.text, path);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}
