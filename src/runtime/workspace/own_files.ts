/** Tidings' own files: its data, its configuration, its subscribers. They hold its tokens, and say what it runs: they are not the agent's. */
import { lstatSync, readlinkSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

const LINKS_MAX = 40;

export class OwnFiles {
  readonly #paths: readonly string[];

  constructor(paths: readonly string[]) {
    this.#paths = paths.map((path) => resolve(path));
  }

  /**
   * As they are now: answers whether a file is one of them, or in one. Which is the same is the file system's to say; of what
   * is not there yet there is only the name, which may be written in another case.
   */
  look(): (file: string) => boolean {
    const names = new Set<string>();
    const absent = new Set<string>();
    const there = new Set<string>();
    for (const path of this.#paths) {
      const ways = new Set([path]);
      follow(path, { left: LINKS_MAX }, ways);
      const identity = identityOf(path);
      if (identity !== null) there.add(identity);
      for (const way of ways) {
        names.add(way);
        if (identity === null) absent.add(folded(way));
      }
    }
    const isOne = (file: string) =>
      names.has(file) || absent.has(folded(file)) || (there.size > 0 && there.has(identityOf(file) ?? ""));
    return (file) => {
      for (let at = file; ; at = dirname(at)) {
        if (isOne(at)) return true;
        if (dirname(at) === at) return false;
      }
    };
  }
}

/** Where a path leads, by symlinks that may lead to nothing; `ways` are the places on the way that it could be written at. */
function follow(path: string, links: { left: number }, ways?: Set<string>): string {
  const above = dirname(path);
  if (above === path) return path;
  const at = join(follow(above, links), basename(path));
  ways?.add(at);
  const target = links.left > 0 ? linkOf(at) : null;
  if (target === null) return at;
  links.left -= 1;
  return follow(resolve(dirname(at), target), links, ways);
}

function linkOf(file: string): string | null {
  try {
    return lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(file) : null;
  } catch {
    return null;
  }
}

/** The same for whatever names a file has; null if there is none. */
function identityOf(file: string): string | null {
  try {
    const entry = statSync(file, { bigint: true, throwIfNoEntry: false });
    return entry === undefined ? null : `${entry.dev} ${entry.ino}`;
  } catch {
    return null;
  }
}

function folded(path: string): string {
  return path.normalize("NFKC").toLowerCase();
}
