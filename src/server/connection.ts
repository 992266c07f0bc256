/** One client's stream, over whichever transport: its calls, and what it is told. */
import { OverloadedError, TidingsError, TooLargeError } from "../domain/errors.js";
import type { JournalId } from "../domain/ids.js";
import type { Clock } from "../platform/clock.js";
import type { Turn, Turns } from "../platform/turns.js";
import type { InboxAnswer } from "../tidings.js";
import type { Caller } from "./access.js";
import type { Cursor } from "./cursor.js";
import { cursorText } from "./cursor.js";
import { type Dispatcher, idOf, type RpcId, type RpcResponse } from "./dispatcher.js";
import { type Bounds, countsFrame, heartbeatFrame, logFrame, PushFrame, resetFrame } from "./frames.js";
import { type JsonBounds, JsonShapeError, parseJson } from "./json.js";
import type { ServerLimits } from "./limits.js";
import type { Log, OnDefect } from "./log.js";
import type { Announced, Resumption, Session } from "./method.js";
import type { NotificationName, ResetReason } from "./notifications.js";
import { Outlet, type Slowness } from "./outlet.js";
import { CLOSE, type CloseCode, type Transport, type TransportClient } from "./transport.js";
import { type ClientView, wants, widens } from "./view.js";
import { rpcErrorOf } from "./wire.js";

const CALL_RETRY_MS = 100;
/** So many messages of a client are taken before others have their turn; of one that sends more at once, as time allows. */
const FREE_STEPS = 16;
const GOING = "the server is going away";
/** Nobody waits for it. */
const NOBODY = () => {};

/** All who are connected. */
export interface Audience extends Slowness {
  /** This one has gone, whether or not it was among them. */
  left(connection: Connection): void;
  /** What this one wants to hear is another thing now. */
  viewed(connection: Connection): void;
  /** Resolves when all that is committed now was pushed. */
  pushed(): Promise<void>;
  /** Whether the journal can be told from there on. */
  canResume(cursor: Cursor): Promise<Resumption>;
  /** Tells it, and goes on. `widened`: the cursor is where it is by now, in a view that had less. */
  resume(connection: Connection, cursor: Cursor, widened?: Widened): Promise<void>;
}

/** A client wants to hear more than what it was told of. */
export interface Widened {
  /** From where on it was told what `before` has. */
  readonly since: Cursor;
  readonly before: ClientView;
}

/** What every connection of a server shares. */
export interface ConnectionParts {
  readonly dispatcher: Dispatcher;
  readonly limits: ServerLimits;
  readonly clock: Clock;
  readonly turns: Turns;
  readonly audience: Audience;
  readonly log: Log;
  readonly onDefect: OnDefect;
}

/** There may be thousands that are quiet: what only those need that speak is made when they do. */
export class Connection implements Slowness, TransportClient {
  readonly caller: Caller;
  /** What it is sent, and in which order. */
  readonly outlet: Outlet;
  readonly #transport: Transport;
  readonly #parts: ConnectionParts;
  /** Of the request that has opened it; null where there was none. */
  readonly #request_id: string | null;
  #view: ClientView;
  /** Before `initialize`: from where on it was told things, of which it may want to hear more. Null after it. */
  #since: Cursor | null | undefined = undefined;
  /** Until the client has been told what waits, or what it has missed; or has gone. */
  #welcome: Welcome | undefined = new Welcome();
  #ended = false;
  #calls: Calls | undefined = undefined;
  /** Whole milliseconds: with a fraction each would be an object of its own. */
  #heartbeatAt = 0;
  #stopLog: (() => void) | undefined = undefined;

  constructor(
    transport: Transport,
    caller: Caller,
    view: ClientView,
    parts: ConnectionParts,
    request_id: string | null = null,
  ) {
    this.caller = caller;
    this.#transport = transport;
    this.#view = view;
    this.#parts = parts;
    this.#request_id = request_id;
    this.outlet = new Outlet(transport, parts.limits.outgoingBytes, this);
    this.#beatLater();
    transport.serve(this);
  }

  get view(): ClientView {
    return this.#view;
  }

  get followsConversations(): boolean {
    // What a client has that may ask for more is numbered as in the whole.
    return this.#view.conversation || (this.#since !== undefined && this.#since !== null);
  }

  wants(frame: PushFrame): boolean {
    return wants(this.#view, frame);
  }

  push(frame: PushFrame): void {
    if (this.wants(frame)) this.outlet.push(frame);
  }

  counts(frame: Buffer): void {
    if (this.#hears("inbox/counts")) this.outlet.counts(frame);
  }

  progress(frame: Buffer): void {
    if (this.#view.conversation && this.#hears("turn/progress")) this.outlet.droppable(frame);
  }

  #hears(method: NotificationName): boolean {
    return !this.#view.opt_out.has(method);
  }

  /** First what waits, oldest first, and the counts; then what came meanwhile, and from then on what comes. */
  async welcome({ items, counts, seq }: InboxAnswer, journal_id: JournalId): Promise<void> {
    for (const item of items) {
      const frame = PushFrame.ofWaiting(item, journal_id);
      if (this.wants(frame)) await this.outlet.waitingItem(frame);
      if (this.outlet.isClosing) return;
    }
    // One of them says where it is from now on.
    if (this.#hears("inbox/counts"))
      this.outlet.send(countsFrame(counts, seq, journal_id), cursorText(journal_id, seq));
    else if (this.#hears("stream/heartbeat"))
      this.outlet.send(heartbeatFrame(journal_id, this.outlet.last, seq), cursorText(journal_id, seq));
    this.caughtUp(seq);
  }

  /** What it has missed was told up to `seq`. */
  caughtUp(seq: number): void {
    this.outlet.goOn(seq);
    this.#endWelcome();
  }

  #endWelcome(): void {
    this.#welcome?.end();
    this.#welcome = undefined;
  }

  /** It has to read anew what it shows; what comes after `newest_seq` is told. */
  reset(reason: ResetReason, bounds: Bounds): void {
    this.outlet.cut();
    const { journal_id, newest_seq } = bounds;
    this.outlet.send(resetFrame(reason, bounds), cursorText(journal_id, newest_seq));
    this.#toldSince({ journal_id, after_seq: newest_seq });
  }

  /** Something older is told first, from the cursor on: whoever calls this ends it with `caughtUp`. */
  catchUp(cursor: Cursor | null): void {
    this.outlet.leaveOut(cursor);
    // Whoever waits already, waits for the same.
    this.#welcome ??= new Welcome();
    if (cursor !== null) this.#toldSince(cursor);
  }

  #toldSince(cursor: Cursor): void {
    if (this.#since === null) return;
    this.#since = cursor;
    this.#parts.audience.viewed(this);
  }

  /** After what waits, so that what it asks for is not among that; but what it has missed of it is told. */
  async initialize(view: ClientView): Promise<void> {
    // Nothing may come between the look and what follows: another waits for the same.
    while (this.#welcome !== undefined) await this.#welcome.over;
    const before = this.#view;
    const since = this.#since ?? undefined;
    this.#view = view;
    this.#since = null;
    if (this.outlet.isClosing) return;
    const { audience } = this.#parts;
    audience.viewed(this);
    if (since === undefined || !widens(before, view)) return;
    try {
      await audience.resume(this, this.outlet.cursor ?? since, { since, before });
    } catch (error) {
      this.#defect(error);
    }
  }

  /** Resolves when nothing older is being told. */
  async #settled(): Promise<void> {
    while (this.#welcome !== undefined) await this.#welcome.over;
  }

  async canResume(cursor: Cursor): Promise<Resumption> {
    await this.#settled();
    return this.#parts.audience.canResume(cursor);
  }

  resume(cursor: Cursor): void {
    this.#resumeInTurn(cursor).catch((error: unknown) => this.#defect(error));
  }

  /** After another that was asked for at the same time: what two tell at once is in no order. */
  async #resumeInTurn(cursor: Cursor): Promise<void> {
    while (this.#welcome !== undefined) await this.#welcome.over;
    if (!this.outlet.isClosing) await this.#parts.audience.resume(this, cursor);
  }

  /** Resolves when it was told of all that is committed now. */
  async told(): Promise<void> {
    if (!this.#view.conversation || this.outlet.isClosing) return;
    await this.#parts.audience.pushed();
    await this.#settled();
  }

  followLog(): void {
    this.#stopLog ??= this.#parts.log.subscribe((line) => {
      if (this.#hears("runtime/log")) this.outlet.droppable(logFrame(line));
    });
  }

  close(code: CloseCode, reason: string): void {
    if (!this.outlet.isClosing && code !== CLOSE.done && code !== CLOSE.goingAway) this.#logEnd(reason);
    this.#end();
    this.outlet.close(code, reason);
  }

  /** Begins nothing new and lets nothing wait; when all that is under way is answered, says that the server goes. */
  async drain(): Promise<void> {
    const calls = this.#calls;
    if (calls !== undefined) {
      calls.onAnswered = NOBODY;
      calls.gone.abort();
      while (calls.unanswered > 0 && !this.outlet.isClosing)
        await new Promise<void>((resolve) => {
          calls.onAnswered = resolve;
        });
    }
    this.close(CLOSE.goingAway, GOING);
  }

  #end(): void {
    this.#ended = true;
    this.#calls?.gone.abort();
  }

  shed(): void {
    this.#parts.audience.shed();
  }

  slow(reason: string): void {
    this.#parts.audience.slow(reason);
    this.#logEnd(reason);
  }

  #logEnd(reason: string): void {
    this.#parts.log.say("info", `a stream was ended: ${reason}`, { user_id: this.caller.user_id });
  }

  /** Called now and then; `read_seq` is how far the journal was pushed. */
  tick(journal_id: JournalId, read_seq: number): void {
    const { clock } = this.#parts;
    const { expires_at } = this.caller;
    if (expires_at !== null && expires_at <= clock.wall()) this.close(CLOSE.policy, "the token has expired");
    if (this.outlet.isClosing) return;
    this.#transport.tick();
    if (clock.monotonic() < this.#heartbeatAt || !this.outlet.isLevel || !this.#hears("stream/heartbeat")) return;
    this.#beatLater();
    this.outlet.droppable(
      heartbeatFrame(journal_id, this.outlet.last, read_seq),
      cursorText(journal_id, Math.max(read_seq, this.outlet.last ?? 0)),
    );
  }

  #beatLater(): void {
    const { clock, limits } = this.#parts;
    this.#heartbeatAt = Math.ceil(clock.monotonic() + limits.heartbeatMs);
  }

  /** A message as it came. Resolves when it was answered. */
  async take(message: Buffer): Promise<void> {
    const { expires_at } = this.caller;
    if (expires_at !== null && expires_at <= this.#parts.clock.wall())
      this.close(CLOSE.policy, "the token has expired");
    if (this.outlet.isClosing) return;
    const call = new CallSession(this);
    const calls = this.#callsNow();
    calls.unanswered += 1;
    try {
      const answer = await this.#answer(message, calls, call);
      if (answer !== undefined) this.#send(answer);
    } catch (error) {
      this.#defect(error);
    } finally {
      call.answered();
      calls.unanswered -= 1;
      calls.onAnswered?.();
    }
  }

  #callsNow(): Calls {
    this.#calls ??= new Calls(this.#parts.turns.enter(FREE_STEPS));
    return this.#calls;
  }

  turn(): Promise<void> | undefined {
    return this.outlet.isClosing ? undefined : this.#callsNow().turn.step();
  }

  charge(): void {
    this.#parts.dispatcher.charge(this.caller, 1);
  }

  /** Resolves when another call may come: not too many are under way, and their answers are being read. */
  async room(): Promise<void> {
    const { callsPerSocket, outgoingBytes } = this.#parts.limits;
    const calls = this.#callsNow();
    while (!this.outlet.isClosing && (calls.running >= callsPerSocket || this.outlet.waiting > outgoingBytes / 2))
      await new Promise<void>((resolve) => {
        calls.onRoom = resolve;
      });
  }

  /** Something was read, or answered. */
  madeRoom(): void {
    this.#calls?.onRoom();
  }

  /** Resolves when all calls are answered. */
  async allAnswered(): Promise<void> {
    const calls = this.#callsNow();
    while (!this.#ended && calls.running > 0)
      await new Promise<void>((resolve) => {
        calls.onRoom = resolve;
      });
  }

  #send(answer: RpcResponse | RpcResponse[]): void {
    const text = Buffer.from(JSON.stringify(answer));
    const fits = text.length <= this.#parts.limits.outgoingBytes;
    this.outlet.send(fits ? text : Buffer.from(JSON.stringify(tooLarge(answer, text.length))));
  }

  async #answer(message: Buffer, calls: Calls, session: Session): Promise<RpcResponse | RpcResponse[] | undefined> {
    const { dispatcher, limits } = this.#parts;
    const refused = (error: TidingsError) => ({
      jsonrpc: "2.0" as const,
      id: idIn(message, limits),
      error: rpcErrorOf(error),
    });
    if (calls.onAnswered !== undefined) return refused(new TidingsError("closed", GOING));
    if (calls.running >= limits.callsPerSocket) {
      this.charge();
      return refused(new OverloadedError(`${calls.running} calls are not answered yet; wait for them`, CALL_RETRY_MS));
    }
    calls.running += 1;
    if (this.#ended) calls.gone.abort();
    const { caller } = this;
    try {
      const calling = {
        caller,
        bytesMax: Math.min(limits.messageAnswerBytes, limits.outgoingBytes / 2),
        gone: calls.gone.signal,
        session,
        request_id: this.#request_id,
      };
      return await dispatcher.answer(message, calling);
    } finally {
      calls.running -= 1;
      calls.onRoom();
    }
  }

  #defect(error: unknown): void {
    this.#parts.onDefect(error, { request_id: this.#request_id });
    this.close(CLOSE.internal, "an error of the server itself");
  }

  hasRoom(bytes: number): boolean {
    return this.outlet.hasRoom(bytes);
  }

  gone(): void {
    this.#end();
    this.#endWelcome();
    this.#stopLog?.();
    this.outlet.close(CLOSE.done, "");
    this.#parts.audience.left(this);
    this.#calls?.onRoom();
    this.#calls?.onAnswered?.();
  }
}

/** The calls of a client that makes some. */
class Calls {
  readonly turn: Turn;
  /** Nobody hears their answers any more. */
  readonly gone = new AbortController();
  running = 0;
  /** Messages that came and are not answered yet, refused ones too. */
  unanswered = 0;
  onRoom: () => void = NOBODY;
  /** Set while the server is going: called when one of them is answered. */
  onAnswered: (() => void) | undefined = undefined;

  constructor(turn: Turn) {
    this.turn = turn;
  }
}

/** While a client is told what waits, or what it has missed. */
class Welcome {
  readonly over: Promise<void>;
  end: () => void = NOBODY;

  constructor() {
    this.over = new Promise((resolve) => {
      this.end = resolve;
    });
  }
}

/** One message's calls: what they cause is told around their answer. */
class CallSession implements Session {
  readonly #connection: Connection;
  readonly #announcing: Announced[] = [];
  #resumesFrom: Cursor | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  initialize(view: ClientView): Promise<void> {
    return this.#connection.initialize(view);
  }

  async resume(cursor: Cursor): Promise<Resumption> {
    const resumption = await this.#connection.canResume(cursor);
    if (resumption.reset === null) this.#resumesFrom = cursor;
    else this.#connection.reset(resumption.reset, resumption);
    return resumption;
  }

  followLog(): void {
    this.#connection.followLog();
  }

  announcing(announced: Announced): void {
    this.#announcing.push(announced);
    this.#connection.outlet.answering(announced.items);
  }

  async announce({ before }: Announced, result: unknown): Promise<void> {
    await this.#connection.told();
    if (typeof result !== "object" || result === null) return;
    const { turn_id, thread_id, successor } = result as Record<string, unknown>;
    const turns = [turn_id, (successor as { turn_id?: unknown } | null | undefined)?.turn_id];
    this.#connection.outlet.announce(
      (method, about) =>
        before.includes(method) &&
        (method.startsWith("turn/") ? turns.includes(about.turn_id) : about.thread_id === thread_id),
    );
  }

  answered(): void {
    for (const { items } of this.#announcing) this.#connection.outlet.answered(items);
    if (this.#resumesFrom !== undefined) this.#connection.resume(this.#resumesFrom);
  }
}

/** Instead of an answer that could never be sent here. The call was run. */
function tooLarge(answer: RpcResponse | RpcResponse[], bytes: number): RpcResponse | RpcResponse[] {
  if (Array.isArray(answer)) return answer.map((one) => tooLarge(one, bytes) as RpcResponse);
  const error = new TooLargeError(`the answer has ${bytes} bytes, too many for a stream; ask by POST /rpc`);
  return { jsonrpc: "2.0", id: answer.id, error: rpcErrorOf(error) };
}

/** Of a call that is refused before it is looked at; null where it has none. */
function idIn(message: Buffer, bounds: JsonBounds): RpcId {
  try {
    return idOf(parseJson(message, bounds));
  } catch (error) {
    return error instanceof JsonShapeError ? idOf(error.value) : null;
  }
}
