/** The folder that an agent works in. No path leads out of it: not by `..`, not by a name of its own, not by a symlink. */
import { realpathSync, statSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { InvalidInputError } from "../../domain/errors.js";
import { Refused } from "../handles/answers.js";
import { OwnFiles } from "./own_files.js";

export interface Place {
  /** From the folder, with slashes. */
  readonly path: string;
  /** Where it really is. */
  readonly file: string;
}

const PATH_CHARS_MAX = 1_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what no path of a text file has
const CONTROL = /[\u0000-\u001f\u007f]/;

export class WorkspaceFolder {
  /** Where it really is. */
  readonly real: string;
  readonly #given: string;
  readonly #own: OwnFiles;

  /** `own`: Tidings' own files and folders, which nobody reaches by it. */
  constructor(folder: string, own: readonly string[] = []) {
    this.#given = resolve(folder);
    if (!statSync(this.#given, { throwIfNoEntry: false })?.isDirectory())
      throw new InvalidInputError("agent.workspace.folder", `${JSON.stringify(this.#given)} is no folder`);
    this.real = realpathSync.native(this.#given);
    this.#own = new OwnFiles(own);
    if (this.#own.look()(this.real))
      throw new InvalidInputError(
        "agent.workspace.folder",
        `${JSON.stringify(this.#given)} is Tidings' own: it is in the folder of its data or of its subscribers; choose another`,
      );
  }

  /** Where a path leads; what is not there yet has a place, too. Refused if that is outside. */
  async place(path: string): Promise<Place> {
    if (path.length > PATH_CHARS_MAX || CONTROL.test(path))
      throw new Refused("bad_path", `a path has at most ${PATH_CHARS_MAX} characters, and none that cannot be seen`);
    const wanted = isAbsolute(path) && isWithin(this.#given, path) ? relative(this.#given, path) : path;
    const file = resolve(this.real, wanted);
    if (!isWithin(this.real, file)) throw outside(path);
    const real = await realPlace(file, path);
    if (!isWithin(this.real, real)) throw outside(path);
    if (this.#own.look()(real)) throw notTheAgents(path);
    return { path: this.pathOf(real), file: real };
  }

  /** Answers of a file in full whether it is Tidings' own. */
  ownNow(): (file: string) => boolean {
    return this.#own.look();
  }

  /** Of a path as `place` has given it. */
  fileOf(path: string): string {
    return join(this.real, path);
  }

  /** The other way round. */
  pathOf(file: string): string {
    return relative(this.real, file).split(sep).join("/");
  }
}

function isWithin(folder: string, file: string): boolean {
  const way = relative(folder, file);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Symlinks are followed as far as there is something. */
async function realPlace(file: string, path: string): Promise<string> {
  const missing: string[] = [];
  for (let at = file; ; at = dirname(at)) {
    try {
      return join(await realpath(at), ...missing);
    } catch (error) {
      const code = codeOf(error);
      if (code !== "ENOENT") throw refusal(code, path);
      missing.unshift(basename(at));
    }
  }
}

function outside(path: string): Refused {
  return new Refused("outside_workspace", `${JSON.stringify(path)} leads out of the workspace; name a path in it`);
}

function notTheAgents(path: string): Refused {
  return new Refused(
    "not_allowed",
    `${JSON.stringify(path)} is Tidings' own (its data, its configuration or its subscribers), and not a part of the workspace`,
  );
}

export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

const REASONS: Readonly<Record<string, readonly [string, string]>> = {
  ENOENT: ["not_found", "there is no such file"],
  ENOTDIR: ["not_a_folder", "a part of it is no folder"],
  EISDIR: ["not_a_file", "it is no file"],
  ELOOP: ["not_a_file", "its symlinks lead nowhere"],
  EACCES: ["not_allowed", "the host may not do that with it"],
  EPERM: ["not_allowed", "the host may not do that with it"],
  EROFS: ["not_allowed", "it cannot be written"],
  ENOSPC: ["no_space", "the disk is full"],
  ENAMETOOLONG: ["bad_path", "its name is too long"],
};

/** What the model is told that asked for something that the file system does not do. */
export function refusal(code: string, path: string): Refused {
  const [error, message] = REASONS[code] ?? ["failed", `the file system says ${code || "no"}`];
  return new Refused(error, `${JSON.stringify(path)}: ${message}`);
}
