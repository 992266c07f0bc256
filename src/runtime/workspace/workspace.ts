/** The files that agents have read or written, and what others make of them: each agent is told of what it knows. */
import { lstat } from "node:fs/promises";
import { TidingsError } from "../../domain/errors.js";
import type { ThreadId } from "../../domain/ids.js";
import { type FileState, isSameState, type KnownFile, type KnownFilePlace } from "../../domain/known_file.js";
import { HOST } from "../../domain/principal.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { Store } from "../../store/contract.js";
import type { Emit } from "../events.js";
import type { ToolOutcome } from "../tools.js";
import { type Change, fileChanged, fileSubject, filesChanged } from "./events.js";
import { HASHED_BYTES_MAX, hashOf, stateOf } from "./file_state.js";
import { FileWatch } from "./file_watch.js";
import { WorkspaceFolder } from "./folder.js";
import { judge } from "./judge.js";
import { type Entry, KnownFiles } from "./known_files.js";
import type { CallFiles, Owner, ThreadFiles } from "./thread_files.js";
import type { FileKnowledge, ToolFiles } from "./tool_files.js";

export interface WorkspaceOptions {
  /** Where the agent works; default: where this program does. */
  readonly folder?: string;
  /** It can read and list, and not write. */
  readonly read_only?: boolean;
  /** Of how many files of a conversation changes are told; those that were touched last. Default 1,000. */
  readonly files_max?: number;
}

const FILES_MAX = 1_000;
const PAGE = 500;
const READERS = 8;
/** So many changes at once are told each by itself, and of the rest how many they are; together they fit one notification. */
const TOLD_MAX = 25;

/** A file as the agent knows it from now on. */
interface Note {
  readonly how: "read" | "wrote";
  readonly path: string;
  readonly state: FileState | null;
}

/** What was seen of a file, and of which knowledge it is to be judged. */
interface Look {
  readonly path: string;
  readonly touches: number;
  readonly state: FileState | null;
}

/** A thread whose calls run. */
interface Held {
  /** How many. */
  calls: number;
  readonly heard: Set<string>;
  /** What they have written. */
  readonly wrote: Map<string, FileState | null>;
  /** As the agent knew, when it decided on them, what they have read since; undefined: not at all. */
  readonly before: Map<string, FileState | null | undefined>;
}

export class Workspace implements ThreadFiles {
  readonly folder: WorkspaceFolder;
  readonly #store: Store;
  readonly #emit: Emit;
  readonly #broke: (error: unknown) => void;
  readonly #filesMax: number;
  readonly #known = new KnownFiles();
  readonly #held = new Map<ThreadId, Held>();
  /** What is done about a thread is done one after the other. */
  readonly #lines = new Map<ThreadId, Promise<unknown>>();
  #watch: FileWatch | null = null;

  /** `own`: Tidings' own files and folders, which are no part of it. */
  constructor(
    store: Store,
    emit: Emit,
    options: WorkspaceOptions,
    own: readonly string[],
    broke: (error: unknown) => void,
  ) {
    this.folder = new WorkspaceFolder(options.folder ?? ".", own);
    this.#store = store;
    this.#emit = emit;
    this.#broke = broke;
    this.#filesMax = options.files_max ?? FILES_MAX;
  }

  /** What has changed since a process before it has gone is told. */
  async start(): Promise<void> {
    this.#watch = await FileWatch.open((files) => this.#changed(files));
    const threads = new Map<ThreadId, boolean>();
    const found: KnownFile[] = [];
    const isOwn = this.folder.ownNow();
    for (let after: KnownFilePlace | null = null; ; ) {
      const records: readonly KnownFile[] = await this.#store.knownFiles(after, PAGE);
      for (const record of records) {
        const { thread_id } = record;
        const open = threads.get(thread_id) ?? (await this.#store.thread(HOST, thread_id)).state === "open";
        threads.set(thread_id, open);
        // Of another folder it says nothing about this one.
        const here = record.folder === this.folder.real && !isOwn(this.folder.fileOf(record.path));
        if (open && here) found.push(record);
        else await this.#store.recordFiles(HOST, thread_id, [], [record.path]);
      }
      const last = records.at(-1);
      if (last === undefined || records.length < PAGE) break;
      after = last;
    }
    found.sort((one, other) => one.at - other.at);
    for (const record of found) {
      this.#known.put(record);
      this.#watch.add(this.folder.fileOf(record.path));
    }
  }

  async close(): Promise<void> {
    await this.#watch?.close();
    await Promise.all(this.#lines.values());
  }

  /** The thread is closed: nothing of it is watched. */
  closeThread(thread_id: ThreadId): Promise<void> {
    return this.#inLine(thread_id, async () => {
      for (const path of this.#known.pathsOf(thread_id)) this.#forget(thread_id, path);
    });
  }

  hold(thread_id: ThreadId): () => Promise<void> {
    const held: Held = this.#held.get(thread_id) ?? { calls: 0, heard: new Set(), wrote: new Map(), before: new Map() };
    this.#held.set(thread_id, held);
    held.calls += 1;
    return async () => {
      held.calls -= 1;
      if (held.calls > 0) return;
      // So that it is told with the results, nobody waits here for what the file system will say of it.
      const files = this.#known.pathsOf(thread_id).map((path) => this.folder.fileOf(path));
      const stale = ((await this.#watch?.stale(files)) ?? []).map((file) => this.folder.pathOf(file));
      const paths = new Set([...stale, ...held.heard]);
      await this.#look(thread_id, [...paths], () => this.#held.delete(thread_id));
      for (const path of held.heard) if (!paths.has(path)) this.#watch?.heard(this.folder.fileOf(path));
    };
  }

  ofCall(owner: Owner): CallFiles {
    const notes: Promise<Note | null>[] = [];
    const note = (how: Note["how"]) => (path: string, content?: string | Uint8Array) => {
      const noted = this.#noteOf(owner, how, path, content);
      notes.push(noted);
      return noted.then(() => undefined);
    };
    const done = async (outcome: ToolOutcome): Promise<ToolOutcome> => {
      if (notes.length === 0 || outcome.how === "interrupted" || outcome.how === "timeout") return outcome;
      const noted = (await Promise.all(notes)).filter((one) => one !== null);
      // What a call that failed has read the agent has not seen.
      const counts = noted.filter(({ how }) => how === "wrote" || outcome.how === "success");
      const observed = await this.#touched(owner, counts);
      return { ...outcome, observed: [...(outcome.observed ?? []), ...observed] };
    };
    return { known: this.#knowledgeOf(owner), read: note("read"), wrote: note("wrote"), done };
  }

  ofHandle(owner: Owner): ToolFiles {
    const note = (how: Note["how"]) => async (path: string, content?: string | Uint8Array) => {
      const noted = await this.#noteOf(owner, how, path, content);
      if (noted === null) return;
      for (const subject of await this.#touched(owner, [noted]))
        await this.#store.observe(HOST, owner.thread_id, subject);
    };
    return { known: this.#knowledgeOf(owner), read: note("read"), wrote: note("wrote") };
  }

  #knowledgeOf({ thread_id }: Owner): ToolFiles["known"] {
    return async (path, content): Promise<FileKnowledge> => {
      const now = await this.#note("read", path, content);
      if (now === null) return "unknown";
      const known = await this.#knownWhenDecided(thread_id, now.path);
      if (known === undefined) return "unknown";
      if (isSameState(known, now.state)) return "same";
      return now.state === null ? "removed" : "changed";
    };
  }

  async #knownWhenDecided(thread_id: ThreadId, path: string): Promise<FileState | null | undefined> {
    const held = this.#held.get(thread_id);
    if (held?.wrote.has(path)) return held.wrote.get(path);
    return held?.before.has(path) ? held.before.get(path) : this.#knownState(thread_id, path);
  }

  /** As the agent has read or written it, or has been told; undefined: it does not know it. */
  async #knownState(thread_id: ThreadId, path: string): Promise<FileState | null | undefined> {
    const record = this.#known.get(thread_id, path)?.record;
    if (record === undefined || record.announced === null) return record?.seen;
    return (await this.#isPending(record)) ? record.seen : record.announced.state;
  }

  /** What was announced of it the agent is still to be told. */
  async #isPending({ thread_id, path, announced }: KnownFile): Promise<boolean> {
    if (announced === null) return false;
    return this.#store.isPendingAbout(HOST, thread_id, fileSubject(path, announced.generation));
  }

  async #noteOf(
    { thread_id }: Owner,
    how: Note["how"],
    path: string,
    content: string | Uint8Array | undefined,
  ): Promise<Note | null> {
    const noted = await this.#note(how, path, content);
    if (noted?.how === "wrote") this.#held.get(thread_id)?.wrote.set(noted.path, noted.state);
    return noted;
  }

  /** Null: it is none of the workspace's. */
  async #note(how: Note["how"], path: string, content: string | Uint8Array | undefined): Promise<Note | null> {
    const place = await this.folder.place(path).catch(() => null);
    if (place === null) return null;
    if (content === undefined) return { how, path: place.path, state: await stateOf(place.file) };
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    const large = bytes.length > HASHED_BYTES_MAX;
    if (large) return { how, path: place.path, state: await stateOf(place.file) };
    const mtime_ms = await lstat(place.file).then(
      (entry) => entry.mtimeMs,
      () => 0,
    );
    return { how, path: place.path, state: { size: bytes.length, mtime_ms, hash: hashOf(bytes) } };
  }

  /** The agent knows these now; answers what need not be told any more. */
  #touched({ thread_id, user_id }: Owner, notes: readonly Note[]): Promise<readonly string[]> {
    if (notes.length === 0) return Promise.resolve([]);
    return this.#inLine(thread_id, async () => {
      const observed: string[] = [];
      const records = new Map<string, KnownFile>();
      const at = this.#store.now();
      const held = this.#held.get(thread_id);
      for (const { how, path, state } of notes) {
        if (how === "read" && held?.before.has(path) === false)
          held.before.set(path, await this.#knownWhenDecided(thread_id, path));
        const before = this.#known.get(thread_id, path)?.record;
        // By writing a file nobody learns what others had made of it; but that it was gone is over.
        const told = before?.announced ?? null;
        const unheard =
          how === "wrote" && told !== null && told.change !== "deleted" && before !== undefined
            ? await this.#isPending(before)
            : false;
        if (told !== null && !unheard) observed.push(fileSubject(path, told.generation));
        const announced = told !== null && unheard ? { ...told, state, overwritten: true as const } : null;
        const generation = Math.max((before?.generation ?? 0) + 1, at);
        const folder = this.folder.real;
        const record = { thread_id, user_id, folder, path, seen: state, announced, generation, at };
        this.#known.put(record);
        records.set(path, record);
      }
      const forgotten = this.#known.beyond(thread_id, this.#filesMax);
      for (const path of forgotten) {
        this.#forget(thread_id, path);
        records.delete(path);
      }
      await this.#store.recordFiles(HOST, thread_id, [...records.values()], forgotten);
      // Others may have changed it since the agent read it.
      for (const path of records.keys()) this.#watch?.add(this.folder.fileOf(path));
      return observed;
    });
  }

  #forget(thread_id: ThreadId, path: string): void {
    if (this.#known.remove(thread_id, path)) this.#watch?.remove(this.folder.fileOf(path));
  }

  /** These files may be others than they were. */
  async #changed(files: readonly string[]): Promise<void> {
    const threads = new Map<ThreadId, string[]>();
    for (const file of files) {
      const path = this.folder.pathOf(file);
      for (const thread_id of this.#known.threadsOf(path))
        threads.set(thread_id, [...(threads.get(thread_id) ?? []), path]);
    }
    await Promise.all([...threads].map(([thread_id, paths]) => this.#look(thread_id, paths)));
  }

  /** Judged and told by path: which was heard of first is chance. `ready`: just before what was seen is judged. */
  async #look(thread_id: ThreadId, heard: readonly string[], ready: () => void = () => undefined): Promise<void> {
    try {
      const paths = heard.toSorted();
      const looks: Look[] = [];
      for (let start = 0; start < paths.length; start += READERS)
        looks.push(
          ...(await Promise.all(paths.slice(start, start + READERS).map((path) => this.#lookAt(thread_id, path)))),
        );
      await this.#inLine(thread_id, () => {
        ready();
        return this.#judge(thread_id, looks);
      });
    } catch (error) {
      // The store is over, or its thread: there is nobody to tell.
      ready();
      if (!(error instanceof TidingsError)) this.#broke(error);
    }
  }

  async #lookAt(thread_id: ThreadId, path: string): Promise<Look> {
    const touches = this.#known.get(thread_id, path)?.touches ?? 0;
    return { path, touches, state: await stateOf(this.folder.fileOf(path)) };
  }

  async #judge(thread_id: ThreadId, looks: readonly Look[]): Promise<void> {
    const held = this.#held.get(thread_id);
    const records: KnownFile[] = [];
    const changes: { readonly entry: Entry; readonly next: KnownFile; readonly change: Change }[] = [];
    const withdrawn: string[] = [];
    for (const { path, touches, state } of looks) {
      const entry = this.#known.get(thread_id, path);
      if (entry === undefined) continue;
      if (held !== undefined) held.heard.add(path);
      // Seen before the agent had to do with it: it says nothing about what the agent knows now.
      else if (entry.touches !== touches) this.#watch?.heard(this.folder.fileOf(path));
      else {
        const { record } = entry;
        const { announced } = record;
        const subject = announced === null ? null : fileSubject(path, announced.generation);
        const verdict = judge(record, state, await this.#isPending(record));
        if (verdict.say === "nothing") continue;
        if (verdict.say === "back" || (verdict.say === "change" && verdict.instead !== null))
          withdrawn.push(subject ?? "");
        if (verdict.say === "change") {
          const { next } = verdict;
          changes.push({ entry, next, change: { ...next.announced, path } });
        } else {
          entry.record = verdict.next;
          records.push(verdict.next);
        }
      }
    }
    for (const subject of withdrawn) await this.#store.observe(HOST, thread_id, subject);
    const single = changes.length > TOLD_MAX ? TOLD_MAX - 1 : changes.length;
    const rest = changes.slice(single);
    const [owner] = changes.map(({ entry }) => entry.record);
    if (owner !== undefined) {
      await Promise.all(changes.slice(0, single).map(({ change }) => this.#emit(fileChanged(owner, change))));
      if (rest.length > 0)
        await this.#emit(
          filesChanged(
            owner,
            rest.map(({ change }) => change),
          ),
        );
    }
    if (changes.length > 0) crashPoint("file.told");
    for (const { entry, next } of changes) entry.record = next;
    // What is told as one of many is not withdrawn by itself: it counts as told.
    for (const { entry, change } of rest) entry.record = { ...entry.record, seen: change.state, announced: null };
    records.push(...changes.map(({ entry }) => entry.record));
    if (records.length > 0) await this.#store.recordFiles(HOST, thread_id, records, []);
  }

  #inLine<Value>(thread_id: ThreadId, act: () => Promise<Value>): Promise<Value> {
    const before = this.#lines.get(thread_id) ?? Promise.resolve();
    const acting = before.then(act);
    const settled = acting.then(
      () => undefined,
      () => undefined,
    );
    this.#lines.set(thread_id, settled);
    void settled.then(() => {
      if (this.#lines.get(thread_id) === settled) this.#lines.delete(thread_id);
    });
    return acting;
  }
}
