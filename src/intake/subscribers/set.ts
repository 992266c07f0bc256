/**
 * The subscribers that are in effect now: the built-in ones and those of the operator's folder, which is watched. A file
 * that is broken by an edit keeps its last good version; a file that is removed is gone, and a built-in subscriber whose
 * place it had is back.
 */
import { placedLine } from "../../config/problems.js";
import type { SubscriberId } from "../../domain/ids.js";
import {
  BUILT_IN_FOLDER,
  type FolderContent,
  type LoadedSubscriber,
  loadFolder,
  type SubscriberProblem,
} from "./load.js";
import { type FolderWatch, watchFolder } from "./watch.js";

/** A problem, and what is in effect in spite of it. */
export interface PresentProblem extends SubscriberProblem {
  /**
   * The last good version of the file, or the built-in subscriber of the same id; of switches that have no last good
   * version, that all is on; null if nothing is.
   */
  readonly instead: "last_good" | "built_in" | "all_on" | null;
}

/** What a reading of the folder has changed. */
export interface SubscriberChange {
  readonly added: readonly SubscriberId[];
  readonly changed: readonly SubscriberId[];
  readonly removed: readonly SubscriberId[];
  /** Those that were not there before. */
  readonly problems: readonly PresentProblem[];
  /** Those that are there no more. */
  readonly solved: readonly PresentProblem[];
}

export interface SubscriberSetOptions {
  /** The operator's folder; it may be missing, and be made later. */
  readonly folder?: string | undefined;
  /** Whether changes of the folder take effect by themselves; true unless said otherwise. */
  readonly watch?: boolean | undefined;
}

/** They do not change while a process runs; tests look at every one of them. */
let builtIn: Promise<FolderContent> | undefined;

function builtInContent(): Promise<FolderContent> {
  builtIn ??= loadFolder(BUILT_IN_FOLDER, { trusted: true });
  return builtIn;
}

export class SubscriberSet {
  readonly #folder: string | undefined;
  readonly #builtIn: FolderContent;
  readonly #listeners = new Set<(change: SubscriberChange) => void>();
  /** The last good version of each file of the operator's folder. */
  #good: ReadonlyMap<string, LoadedSubscriber> = new Map();
  #current: readonly LoadedSubscriber[] = [];
  #problems: readonly PresentProblem[] = [];
  #reloading: Promise<void> = Promise.resolve();
  #watch: FolderWatch | undefined;

  private constructor(builtIn: FolderContent, folder: string | undefined) {
    this.#builtIn = builtIn;
    this.#folder = folder;
  }

  static async open({ folder, watch = true }: SubscriberSetOptions = {}): Promise<SubscriberSet> {
    const set = new SubscriberSet(await builtInContent(), folder);
    // Watched before it is read: what changes meanwhile is read again.
    if (folder !== undefined && watch) set.#watch = await watchFolder(folder, () => set.reload());
    await set.reload();
    return set;
  }

  /** Every subscriber that is in effect, enabled or not: the built-in ones first, then the others by file name. */
  get current(): readonly LoadedSubscriber[] {
    return this.#current;
  }

  get problems(): readonly PresentProblem[] {
    return this.#problems;
  }

  /** Calls `listener` after each change; the function that is returned ends it. */
  onChange(listener: (change: SubscriberChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reads the operator's folder now. Readings follow one another. */
  reload(): Promise<void> {
    this.#reloading = this.#reloading.then(() => this.#read());
    return this.#reloading;
  }

  async close(): Promise<void> {
    await this.#watch?.close();
    await this.#reloading;
    this.#listeners.clear();
  }

  async #read(): Promise<void> {
    const found = this.#folder === undefined ? { loaded: [], broken: [] } : await loadFolder(this.#folder);
    const good = goodVersions(found, this.#good, this.#folder);
    const current = layered(this.#builtIn.loaded, [...good.values()]);
    const problems = [
      ...this.#builtIn.broken.map((problem) => ({ ...problem, instead: null })),
      ...found.broken.map((problem) => ({ ...problem, instead: insteadOf(problem, good, this.#builtIn) })),
    ];
    const change = difference(this.#current, current, this.#problems, problems);
    this.#good = good;
    this.#current = current;
    this.#problems = problems;
    if (Object.values(change).every((part) => part.length === 0)) return;
    for (const listener of this.#listeners) listener(change);
  }
}

/** By file, in the order of names. What has not changed stays the same object. */
function goodVersions(
  { loaded, broken }: FolderContent,
  before: ReadonlyMap<string, LoadedSubscriber>,
  folder: string | undefined,
): ReadonlyMap<string, LoadedSubscriber> {
  // A folder that cannot be read says nothing about its files.
  if (broken.some(({ subscriber_file }) => subscriber_file === folder)) return before;
  const good = new Map<string, LoadedSubscriber>();
  const taken = new Set(loaded.map(({ id }) => id));
  for (const subscriber of loaded) {
    const last = before.get(subscriber.file);
    good.set(subscriber.file, last?.digest === subscriber.digest ? last : subscriber);
  }
  for (const { subscriber_file } of broken) {
    const last = before.get(subscriber_file);
    // Another file has taken its id meanwhile, and is whole.
    if (last !== undefined && !taken.has(last.id)) good.set(subscriber_file, last);
  }
  return new Map([...good].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** An operator's subscriber takes the place of the built-in one of its id. */
function layered(builtIn: readonly LoadedSubscriber[], own: readonly LoadedSubscriber[]): readonly LoadedSubscriber[] {
  const byId = new Map(own.map((subscriber) => [subscriber.id, subscriber]));
  const known = new Set(builtIn.map(({ id }) => id));
  return [
    ...builtIn.map((subscriber) => byId.get(subscriber.id) ?? subscriber),
    ...own.filter(({ id }) => !known.has(id)),
  ];
}

function insteadOf(
  problem: SubscriberProblem,
  good: ReadonlyMap<string, LoadedSubscriber>,
  builtIn: FolderContent,
): PresentProblem["instead"] {
  if (good.has(problem.subscriber_file)) return "last_good";
  return builtIn.loaded.some(({ id }) => id === problem.subscriber_id) ? "built_in" : null;
}

function difference(
  before: readonly LoadedSubscriber[],
  after: readonly LoadedSubscriber[],
  problemsBefore: readonly PresentProblem[],
  problemsAfter: readonly PresentProblem[],
): SubscriberChange {
  const was = new Map(before.map((subscriber) => [subscriber.id, subscriber]));
  const is = new Map(after.map((subscriber) => [subscriber.id, subscriber]));
  const known = new Set(problemsBefore.map((problem) => JSON.stringify(problem)));
  const present = new Set(problemsAfter.map((problem) => JSON.stringify(problem)));
  return {
    added: [...is.keys()].filter((id) => !was.has(id)),
    changed: [...is.keys()].filter((id) => was.has(id) && was.get(id) !== is.get(id)),
    removed: [...was.keys()].filter((id) => !is.has(id)),
    problems: problemsAfter.filter((problem) => !known.has(JSON.stringify(problem))),
    solved: problemsBefore.filter((problem) => !present.has(JSON.stringify(problem))),
  };
}

const KEPT: Readonly<Record<NonNullable<PresentProblem["instead"]>, string>> = {
  last_good: " (the last good version stays in effect)",
  built_in: " (the built-in one stays in effect)",
  all_on: " (until it is mended, nothing is switched off)",
};

/** One line for a log or a terminal: where, what, and what is in effect instead. */
export function problemLine(problem: PresentProblem): string {
  const { file, instead } = problem;
  return `${placedLine(file, problem)}${instead === null ? "" : KEPT[instead]}`;
}
