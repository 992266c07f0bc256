/** The calls of stateful tools, of all threads of one agent: what goes on, and what has come of what is over. */
import { TidingsError } from "../../domain/errors.js";
import { type HandleRecord, handleSubject, isHandleOver } from "../../domain/handle.js";
import type { ThreadId, UserId } from "../../domain/ids.js";
import type { JsonObject } from "../../domain/json.js";
import { HOST } from "../../domain/principal.js";
import type { Turn } from "../../domain/turn.js";
import { crashPoint } from "../../platform/crashpoint.js";
import { later } from "../../platform/timers.js";
import type { Store } from "../../store/contract.js";
import type { Emit } from "../events.js";
import type { ThreadFiles } from "../workspace/thread_files.js";
import { type Answered, liveAnswer, Refused, recordAnswer, shortened } from "./answers.js";
import { type AwaitStatus, judge, type Wish } from "./await.js";
import { Changes } from "./changes.js";
import { handleEvent } from "./events.js";
import type { HandleLimits } from "./limits.js";
import { type Ending, LiveHandle } from "./live_handle.js";
import { recoverHandles } from "./recovery.js";
import type { HandleCall, StatefulTool, TurnEndPolicy } from "./stateful_tool.js";

export interface HandlesOptions {
  readonly store: Store;
  readonly emit: Emit;
  readonly limits: HandleLimits;
  readonly files: ThreadFiles;
  /** The operator's word on what becomes of a tool's calls when a turn ends; null: as the tool says. */
  readonly turnEnd: (tool: string) => TurnEndPolicy | null;
  /** Something went wrong that is nobody's doing. */
  readonly broke: (error: unknown) => void;
}

/** Whose conversation it is. */
export interface Place {
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
}

const REPLACED_CHARS = 2_000;
const AWAITED_CHARS = 20_000;
const AWAITED_CHARS_EACH = 2_000;
const NAMES_SHOWN = 10;
/** So many have stopped since what is kept was looked through. */
const LOOK_AFTER = 100;

export class Handles {
  readonly #options: HandlesOptions;
  readonly #live = new Map<ThreadId, Map<string, LiveHandle>>();
  readonly #changes = new Changes();
  readonly #stopped = new Map<ThreadId, number>();

  constructor(options: HandlesOptions) {
    this.#options = options;
  }

  /** Whether the name is taken. */
  isLive(thread_id: ThreadId, id: string): boolean {
    return this.#live.get(thread_id)?.has(id) === true;
  }

  run(place: Place, tool: StatefulTool, call: HandleCall): Promise<Answered> {
    switch (call.action) {
      case "spawn":
        return this.#spawn(place, tool, call.handle, call.input);
      case "fetch":
        return this.#fetch(place, tool, call.handle);
      case "apply":
        return this.#apply(place, tool, call.handle, call.text ?? "");
      case "abort":
        return this.#abort(place, tool, call.handle);
    }
  }

  async #spawn(place: Place, tool: StatefulTool, id: string, input: unknown): Promise<Answered> {
    const { store, limits, files } = this.#options;
    const { thread_id } = place;
    const live = this.#of(thread_id);
    if (live.has(id)) throw collision(id);
    if (live.size >= limits.live)
      throw new Refused("too_many_handles", `${limits.live} run or wait already; abort some, or wait for them`);
    const handle = new LiveHandle({ ...place, id, tool, files: files.ofHandle(place) }, (asking) =>
      this.#asked(asking),
    );
    live.set(id, handle);
    let former: HandleRecord | undefined;
    try {
      former = await store.handle(HOST, thread_id, id);
      await store.recordHandle(HOST, { thread_id, id, tool: tool.name, state: "running", detail: emitsOf(tool) });
    } catch (error) {
      this.#remove(handle);
      throw error;
    }
    const answer = liveAnswer(handle, "");
    void handle
      .run(input)
      .then((ending) => this.#settle(handle, ending))
      .catch((error: unknown) => this.#options.broke(error));
    if (former === undefined) return { answer, observed: [] };
    // It cannot be fetched any more.
    const { shortened: _, ...replaced } = shortened(recordAnswer(former), REPLACED_CHARS);
    return { answer: { ...answer, replaced }, observed: [subjectOf(former)] };
  }

  async #fetch(place: Place, tool: StatefulTool, id: string): Promise<Answered> {
    const found = await this.#find(place, id, tool);
    if (!(found instanceof LiveHandle)) return { answer: recordAnswer(found), observed: [subjectOf(found)] };
    await found.recorded;
    return { answer: liveAnswer(found, found.log.take()), observed: askedBy(found) };
  }

  async #apply(place: Place, tool: StatefulTool, id: string, text: string): Promise<Answered> {
    const found = await this.#find(place, id, tool);
    if (!(found instanceof LiveHandle))
      throw new Refused("handle_stopped", `${id} has stopped; fetch reads its result`);
    await found.recorded;
    const observed = askedBy(found);
    let how: string;
    try {
      how = found.apply(text);
    } catch (error) {
      throw new Refused("not_taken", error instanceof Error ? error.message : String(error));
    }
    if (how === "answered") {
      found.waiting_generation = null;
      await this.#record(found, "running");
    }
    return { answer: { ...liveAnswer(found, ""), applied: how }, observed };
  }

  async #abort(place: Place, tool: StatefulTool, id: string): Promise<Answered> {
    const found = await this.#find(place, id, tool);
    if (found instanceof LiveHandle) await this.#end(found, "aborted by the agent");
    return this.#fetch(place, tool, id);
  }

  /** By its name; of this tool. */
  async #find({ thread_id }: Place, id: string, tool: StatefulTool | null): Promise<LiveHandle | HandleRecord> {
    const found = this.#live.get(thread_id)?.get(id) ?? (await this.#kept(thread_id, id));
    if (found === undefined) throw this.#unknown(thread_id, [id]);
    const name = found instanceof LiveHandle ? found.tool.name : found.tool;
    if (tool !== null && name !== tool.name) throw new Refused("wrong_tool", `${id} is a handle of ${name}`);
    return found;
  }

  /** Whether there is one of this name that has stopped, and what it came to is kept. Never rejects. */
  async hasStopped(thread_id: ThreadId, id: string): Promise<boolean> {
    if (this.isLive(thread_id, id)) return false;
    return (await this.#kept(thread_id, id).catch(() => undefined)) !== undefined;
  }

  /** What it has come to, for as long as that is kept. */
  async #kept(thread_id: ThreadId, id: string): Promise<HandleRecord | undefined> {
    const { store, limits } = this.#options;
    const record = await store.handle(HOST, thread_id, id);
    if (record === undefined || !isHandleOver(record.state)) return record;
    return store.now() - record.at > limits.retention_ms ? undefined : record;
  }

  #unknown(thread_id: ThreadId, ids: readonly string[]): Refused {
    const live = [...(this.#live.get(thread_id)?.keys() ?? [])].slice(0, NAMES_SHOWN);
    const message = "there is no such handle, or what it came to is kept no longer";
    return new Refused("unknown_handle", message, { unknown: ids.slice(0, NAMES_SHOWN), running: live });
  }

  /** Waits as it is wished; `interrupted`: somebody has something to say. `signal`: it is wanted no more. */
  async await(place: Place, wish: Wish, interrupted: AbortSignal, signal: AbortSignal): Promise<Answered> {
    const { thread_id } = place;
    const named = [...new Set([...wish.any, ...wish.all])];
    const over = new Map<string, HandleRecord>();
    let unknown: string[] = [];
    const look = async () => {
      unknown = [];
      for (const id of named) {
        if (over.has(id) || this.isLive(thread_id, id)) continue;
        const record = await this.#kept(thread_id, id);
        if (record === undefined || !isHandleOver(record.state)) unknown.push(id);
        else over.set(id, record);
      }
    };
    const asks = (id: string) => {
      const handle = this.#live.get(thread_id)?.get(id);
      return handle !== undefined && handle.waiting_generation !== null;
    };
    const judged = async () => {
      await look();
      if (unknown.length > 0) throw this.#unknown(thread_id, unknown);
      return judge(wish, (id) => over.has(id), asks);
    };
    const status = await this.#changes.until(
      thread_id,
      judged,
      wish.timeout_ms,
      AbortSignal.any([interrupted, signal]),
    );
    // Whoever asked is cut short, and is told that.
    if (status === null && signal.aborted && !interrupted.aborted) throw new Error("interrupted");
    const late: AwaitStatus = interrupted.aborted || wish.timeout_ms === 0 ? "pending" : "timed_out";
    return this.#awaited(thread_id, named, over, status ?? late);
  }

  #awaited(
    thread_id: ThreadId,
    named: readonly string[],
    over: ReadonlyMap<string, HandleRecord>,
    status: AwaitStatus,
  ): Answered {
    const chars = Math.min(AWAITED_CHARS_EACH, Math.floor(AWAITED_CHARS / named.length));
    const completed: JsonObject[] = [];
    const pending: JsonObject[] = [];
    const observed: string[] = [];
    for (const id of named) {
      const record = over.get(id);
      const handle = this.#live.get(thread_id)?.get(id);
      if (record !== undefined) {
        completed.push(shortened(recordAnswer(record), chars));
        observed.push(subjectOf(record));
      } else if (handle === undefined) pending.push({ handle: id, state: "running" });
      else {
        pending.push(liveAnswer(handle, ""));
        observed.push(...askedBy(handle));
      }
    }
    return { answer: { status, completed, pending }, observed };
  }

  /** Before a turn ends: waits for what it is to wait for, and says whether there is something to tell of it. */
  async beforeEnd(thread_id: ThreadId, stop: AbortSignal): Promise<boolean> {
    const awaited = this.#under(thread_id, "await");
    if (awaited.length === 0) return false;
    const hasNews = ({ id, waiting_generation }: LiveHandle) =>
      !this.isLive(thread_id, id) || waiting_generation !== null;
    const judged = async () => (awaited.every(hasNews) ? true : null);
    await this.#changes.until(thread_id, judged, this.#options.limits.turn_end_ms, stop);
    const news = awaited.filter(hasNews);
    await Promise.all(news.map(({ settled, over, recorded }) => (settled ? over.promise : recorded)));
    for (const { id, over_generation, waiting_generation } of news) {
      const generation = over_generation ?? waiting_generation;
      if (generation === null) continue;
      if (await this.#options.store.isPendingAbout(HOST, thread_id, handleSubject(id, generation))) return true;
    }
    return false;
  }

  /** A turn has ended: what is not to go on is ended, and what is kept too long is forgotten. */
  turnEnded({ thread_id, state }: Turn): void {
    // One that another goes on with, or that never began.
    if (state === "interrupted" || state === "removed") return;
    for (const handle of this.#under(thread_id, "abort")) {
      handle.quiet = true;
      void this.#end(handle, "ended with its turn");
    }
    if (this.#stopped.has(thread_id)) this.#forget(thread_id);
  }

  /** The thread is closed: nothing goes on in it. */
  async closeThread(thread_id: ThreadId): Promise<void> {
    const live = [...(this.#live.get(thread_id)?.values() ?? [])];
    for (const handle of live) handle.quiet = true;
    await Promise.all(live.map((handle) => this.#end(handle, "its conversation was closed")));
    this.#live.delete(thread_id);
    this.#stopped.delete(thread_id);
  }

  /** The tool is not there any more: its calls are ended, and their agents are told. */
  async removeTool(tool: StatefulTool): Promise<void> {
    const live = this.#all().filter((handle) => handle.tool === tool);
    await Promise.all(live.map((handle) => this.#end(handle, "ended: its tool was removed")));
    await tool.close?.();
  }

  /** Ends all of them; what they have come to is told when there is a host again. */
  async close(): Promise<void> {
    await Promise.all(this.#all().map((handle) => this.#end(handle, "ended: its host was closed")));
  }

  #all(): LiveHandle[] {
    return [...this.#live.values()].flatMap((handles) => [...handles.values()]);
  }

  /** After a start: what a process that is gone has left is over, and its agents are told. */
  recover(): Promise<void> {
    const { store, limits } = this.#options;
    return recoverHandles(store, limits, (record) => this.#tell(record));
  }

  #under(thread_id: ThreadId, policy: TurnEndPolicy): LiveHandle[] {
    return [...(this.#live.get(thread_id)?.values() ?? [])].filter(
      ({ tool }) => (this.#options.turnEnd(tool.name) ?? tool.turn_end ?? "keep") === policy,
    );
  }

  /** Asks it to end, and waits for that; one that takes no notice is left alone. */
  async #end(handle: LiveHandle, reason: string): Promise<void> {
    handle.abort(reason);
    const stopTimer = later(this.#options.limits.abort_ms, () => void this.#settle(handle, handle.left()));
    await handle.over.promise;
    stopTimer();
  }

  /** It waits for an answer. */
  #asked(handle: LiveHandle): void {
    handle.recorded = this.#record(handle, "waiting").then(async (record) => {
      if (record === null || handle.now.state !== "waiting") return;
      handle.waiting_generation = record.generation;
      this.#changes.happened(handle.thread_id);
      await this.#tell(record);
    });
  }

  async #settle(handle: LiveHandle, { state, detail }: Ending): Promise<void> {
    if (handle.settled) return;
    handle.settled = true;
    const { thread_id } = handle;
    await handle.recorded;
    // What it asked is asked no more.
    for (const subject of askedBy(handle)) await this.#options.store.observe(HOST, thread_id, subject).catch(() => []);
    const record = await this.#record(handle, state, detail);
    handle.over_generation = record?.generation ?? null;
    crashPoint("handle.recorded");
    this.#remove(handle);
    const told = record === null ? undefined : this.#news(handle, record);
    this.#changes.happened(thread_id);
    await told;
    handle.over.resolve();
    if (record === null) return;
    const stopped = (this.#stopped.get(thread_id) ?? 0) + 1;
    this.#stopped.set(thread_id, stopped);
    if (stopped % LOOK_AFTER === 0) this.#forget(thread_id);
  }

  async #news({ quiet }: LiveHandle, record: HandleRecord): Promise<void> {
    const { store } = this.#options;
    if (quiet) await store.observe(HOST, record.thread_id, subjectOf(record)).catch(() => undefined);
    await this.#tell(record);
  }

  /** Null: the store is over. */
  async #record(
    { thread_id, id, tool, now }: LiveHandle,
    state: HandleRecord["state"],
    said: HandleRecord["detail"] = now.question === null ? {} : { question: now.question },
  ): Promise<HandleRecord | null> {
    try {
      const detail = { ...said, ...emitsOf(tool) };
      return await this.#options.store.recordHandle(HOST, { thread_id, id, tool: tool.name, state, detail });
    } catch (error) {
      if (!(error instanceof TidingsError)) this.#options.broke(error);
      return null;
    }
  }

  /** An event that is refused, or comes too late, is told at the next start. */
  async #tell(record: HandleRecord): Promise<void> {
    const event = handleEvent(record);
    if (event === null || record.detail.emits?.includes(record.state) === false) return;
    const emitted = async () => this.#options.emit(event);
    await emitted().catch(() => undefined);
  }

  #forget(thread_id: ThreadId): void {
    this.#stopped.delete(thread_id);
    const { retention_ms, kept, kept_chars } = this.#options.limits;
    void this.#options.store
      .forgetHandles(HOST, thread_id, { retention_ms, kept, chars: kept_chars })
      .catch(() => undefined);
  }

  #of(thread_id: ThreadId): Map<string, LiveHandle> {
    const live = this.#live.get(thread_id) ?? new Map<string, LiveHandle>();
    this.#live.set(thread_id, live);
    return live;
  }

  #remove({ thread_id, id }: LiveHandle): void {
    const live = this.#live.get(thread_id);
    live?.delete(id);
    if (live?.size === 0) this.#live.delete(thread_id);
  }
}

/** The name is that of one that still runs or waits. */
export function collision(id: string): Refused {
  const message = `${id} is the name of a call that has not stopped; choose another. Nothing of this batch was run`;
  return new Refused("handle_collision", message, { handle: id });
}

/** Kept with what it has come to: at a start its tool may not be there yet. */
function emitsOf({ emits }: StatefulTool): Pick<HandleRecord["detail"], "emits"> {
  return emits === undefined ? {} : { emits: [...emits] };
}

function subjectOf({ id, generation }: HandleRecord): string {
  return handleSubject(id, generation);
}

function askedBy({ id, waiting_generation }: LiveHandle): readonly string[] {
  return waiting_generation === null ? [] : [handleSubject(id, waiting_generation)];
}
