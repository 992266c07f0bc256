/** The built-in tools for the files of a workspace. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { Refused } from "../handles/answers.js";
import { defineTool, type Tool, type ToolContext } from "../tools.js";
import { writeAtomically } from "./atomic_write.js";
import { READ_FILE } from "./events.js";
import { contentOf, HASHED_BYTES_MAX, openForReading } from "./file_state.js";
import { codeOf, type Place, refusal, type WorkspaceFolder } from "./folder.js";
import { type Lines, NotText, readLines } from "./lines.js";
import type { FileKnowledge } from "./tool_files.js";

const LINES_PRESET = 2_000;
const LINES_MAX = 10_000;
const SHOWN_BYTES_MAX = 100_000;
const WRITTEN_CHARS_MAX = 1_000_000;
const ENTRIES_MAX = 1_000;
const DEPTH_MAX = 10;
const CHANGED_REMARK = "(somebody else has changed the file since you knew it, here or in what is not shown)";
const SKIPPED: ReadonlySet<string> = new Set(["node_modules", ".git"]);

const path = z.string().min(1).describe("From the workspace's folder, like src/main.ts.");

export function fileTools(folder: WorkspaceFolder, read_only: boolean): Tool[] {
  const files = new FileTools(folder);
  const reading = [files.readFile(), files.listFiles()];
  return (read_only ? reading : [...reading, files.writeFile(), files.editFile()]) as Tool[];
}

class FileTools {
  readonly #folder: WorkspaceFolder;
  /** Calls of one answer run side by side: what is written to one file is written one after the other. */
  readonly #lines = new Map<string, Promise<unknown>>();
  /** The last that was looked for. */
  #placed: Promise<unknown> = Promise.resolve();

  constructor(folder: WorkspaceFolder) {
    this.#folder = folder;
  }

  readFile() {
    return defineTool({
      name: READ_FILE,
      description: `Reads a text file of the workspace, ${LINES_PRESET} lines unless said otherwise. You are told when it changes later without you.`,
      input: z.strictObject({
        path,
        offset: z.int().min(1).default(1).describe("The number of the first line; 1 unless said otherwise."),
        limit: z.int().min(1).max(LINES_MAX).default(LINES_PRESET).describe("How many lines."),
      }),
      impact: "internal",
      run: ({ path: wanted, offset, limit }, context) => this.#read(wanted, offset, limit, context),
    });
  }

  listFiles() {
    return defineTool({
      name: "list_files",
      description: `Lists a folder of the workspace: folders end in /, files have their size. At most ${ENTRIES_MAX} entries; node_modules and .git are not looked into.`,
      input: z.strictObject({
        path: path.default("."),
        depth: z
          .int()
          .min(1)
          .max(DEPTH_MAX)
          .default(1)
          .describe("1: the folder itself; 2: its folders, too; and so on."),
      }),
      impact: "internal",
      run: ({ path: wanted, depth }) => this.#list(wanted, depth),
    });
  }

  writeFile() {
    return defineTool({
      name: "write_file",
      description:
        "Writes a text file of the workspace, whole; its folder is made if it is not there. Refused if somebody else has changed it since you knew it.",
      input: z.strictObject({ path, content: z.string().max(WRITTEN_CHARS_MAX) }),
      impact: "external",
      run: async ({ path: wanted, content }, context) => {
        const place = await this.#placeInTurn(wanted);
        return this.#alone(place, () => this.#write(place, Buffer.from(content.toWellFormed()), context));
      },
    });
  }

  editFile() {
    return defineTool({
      name: "edit_file",
      description: "Replaces a text in a file of the workspace by another; it must stand there exactly so, and once.",
      input: z.strictObject({
        path,
        old_text: z.string().min(1).max(WRITTEN_CHARS_MAX),
        new_text: z.string().max(WRITTEN_CHARS_MAX),
        all: z.boolean().default(false).describe("Wherever it stands."),
      }),
      impact: "external",
      run: async ({ path: wanted, old_text, new_text, all }, context) => {
        const place = await this.#placeInTurn(wanted);
        return this.#alone(place, async () => {
          const { content, text } = await this.#text(place);
          await this.#knowledge(place, context, content);
          const parts = text.split(old_text);
          const found = parts.length - 1;
          const named = JSON.stringify(place.path);
          if (found === 0)
            throw new Refused("text_not_found", `the text does not stand in ${named}; read it again with ${READ_FILE}`);
          if (found > 1 && !all)
            throw new Refused("text_not_unique", `the text stands ${found} times in ${named}; give more of it, or all`);
          const written = await this.#save(place, Buffer.from(parts.join(new_text.toWellFormed())), context);
          return `${written}; replaced ${found === 1 ? "once" : `${found} times`}`;
        });
      },
    });
  }

  /** In the order of the calls, whichever the file system finds first: writes of one answer follow one another. */
  #placeInTurn(wanted: string): Promise<Place> {
    const placed = this.#placed.then(() => this.#folder.place(wanted));
    this.#placed = placed.catch(() => undefined);
    return placed;
  }

  async #read(wanted: string, offset: number, limit: number, { files }: ToolContext): Promise<string> {
    const place = await this.#folder.place(wanted);
    const handle = await openForReading(place.file).catch((error: unknown) => {
      throw refusal(codeOf(error), place.path);
    });
    try {
      if (!(await handle.stat()).isFile()) throw refusal("EISDIR", place.path);
      const content = await contentOf(handle);
      await files.read(place.path, content ?? undefined);
      const lines = await readLines(content ?? handle, offset, limit, SHOWN_BYTES_MAX);
      const whole = offset === 1 && !lines.more;
      const shown = shownLines(lines, offset);
      // Who reads a part may not see what is another in it.
      if (whole || (await files.known(place.path, content ?? undefined)) !== "changed") return shown;
      return `${shown}${shown.endsWith("\n") ? "" : "\n"}${CHANGED_REMARK}`;
    } catch (error) {
      if (error instanceof Refused) throw error;
      if (error instanceof NotText) throw new Refused("not_text", `${JSON.stringify(place.path)} is no text file`);
      throw refusal(codeOf(error), place.path);
    } finally {
      await handle.close();
    }
  }

  /** All of a file that is to be edited. */
  async #text(place: Place): Promise<{ readonly content: Uint8Array; readonly text: string }> {
    const handle = await openForReading(place.file).catch((error: unknown) => {
      throw refusal(codeOf(error), place.path);
    });
    try {
      if (!(await handle.stat()).isFile()) throw refusal("EISDIR", place.path);
      const content = await contentOf(handle);
      const named = JSON.stringify(place.path);
      if (content === null) throw new Refused("too_large", `${named} has more than ${HASHED_BYTES_MAX} bytes`);
      try {
        return { content, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content) };
      } catch {
        throw new Refused("not_text", `${named} is no text file`);
      }
    } finally {
      await handle.close();
    }
  }

  /** What the agent knows of a file that it is about to write. What others have made of it is not lost without a word. */
  async #knowledge(place: Place, { files }: ToolContext, content?: Uint8Array): Promise<FileKnowledge> {
    const known = await files.known(place.path, content);
    if (known !== "changed") return known;
    throw new Refused(
      "changed_since_read",
      `somebody else has changed ${JSON.stringify(place.path)} since you knew it, and nothing was written; read it with ${READ_FILE}, then try again`,
    );
  }

  async #write(place: Place, content: Uint8Array, context: ToolContext): Promise<string> {
    const there = await stat(place.file).catch(() => null);
    if (place.path === "" || there?.isFile() === false) throw refusal("EISDIR", place.path);
    const known = await this.#knowledge(place, context);
    const written = await this.#save(place, content, context);
    if (known === "removed") return `${written}; somebody else had removed it`;
    if (known === "same" || there === null) return written;
    return `${written}; in the place of a file of ${there.size} bytes that you had not read`;
  }

  async #save(place: Place, content: Uint8Array, { files }: ToolContext): Promise<string> {
    await writeAtomically(place.file, content).catch((error: unknown) => {
      throw refusal(codeOf(error) === "EEXIST" ? "ENOTDIR" : codeOf(error), place.path);
    });
    await files.wrote(place.path, content);
    return `wrote ${content.length} bytes to ${place.path}`;
  }

  async #list(wanted: string, depth: number): Promise<string> {
    const root = await this.#folder.place(wanted);
    const lines: string[] = [];
    const isOwn = this.#folder.ownNow();
    let left = 0;
    const look = async (folder: string, prefix: string, level: number): Promise<void> => {
      const entries = await readdir(folder, { withFileTypes: true });
      entries.sort((one, other) => (one.name < other.name ? -1 : 1));
      for (const entry of entries) {
        const file = join(folder, entry.name);
        if (isOwn(file)) continue;
        if (lines.length >= ENTRIES_MAX) {
          left += 1;
          continue;
        }
        const name = `${prefix}${visible(entry.name)}`;
        if (!entry.isDirectory()) {
          const size = entry.isFile() ? await stat(file).catch(() => null) : null;
          lines.push(size === null ? `${name} (no file)` : `${name} ${size.size}`);
          continue;
        }
        lines.push(`${name}/`);
        if (level < depth && !SKIPPED.has(entry.name))
          await look(file, `${name}/`, level + 1).catch(() => lines.push(`${name}/ (cannot be read)`));
      }
    };
    await look(root.file, "", 1).catch((error: unknown) => {
      throw refusal(codeOf(error), root.path || ".");
    });
    if (left > 0) lines.push(`(and more: at least ${left}; list a folder of it)`);
    return lines.length === 0 ? "(the folder is empty)" : lines.join("\n");
  }

  #alone<Value>({ file }: Place, act: () => Promise<Value>): Promise<Value> {
    const acting = (this.#lines.get(file) ?? Promise.resolve()).then(act);
    const settled = acting.then(
      () => undefined,
      () => undefined,
    );
    this.#lines.set(file, settled);
    void settled.then(() => {
      if (this.#lines.get(file) === settled) this.#lines.delete(file);
    });
    return acting;
  }
}

/** One entry is one line, whatever it is called. */
function visible(name: string): string {
  return name.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}}`,
  );
}

function shownLines({ text, count, more, cut_line }: Lines, offset: number): string {
  if (count === 0 && cut_line === null)
    return offset === 1 ? "(the file is empty)" : `(the file has fewer than ${offset} lines)`;
  if (cut_line !== null) return `${text}\n(line ${cut_line} goes on; so much is shown at once)`;
  return more ? `${text}(more follows: offset ${offset + count})` : text;
}
