/**
 * One conversation, made of pages that were read and of what was told since: each thing counts once, and what is older
 * than what is known of it changes nothing. It knows nothing of the page that shows it.
 */
import type { Methods, ThreadItem, Told, ToldParams } from "tidings/client";

export type Page = Methods["thread/read"]["result"];
export type PageTurn = Page["turns"][number];
type Saying = NonNullable<Page["saying"]>;
type Pushed = ToldParams["item/created"] | ToldParams["item/updated"];
type TurnPush = Extract<Told, { method: `turn/${string}` }>;

/** As of which entry it is known. */
interface Known<Value> {
  readonly value: Value;
  readonly as_of: number;
}

interface KnownItem extends Known<ThreadItem> {
  /** Where it stands among those of its entry. */
  readonly rank: number;
  readonly arrival: number;
}

export interface Conversation {
  readonly thread: Page["thread"];
  /** In the order of the conversation. */
  readonly items: readonly ThreadItem[];
  readonly turns: ReadonlyMap<string, PageTurn>;
  /** The turn that runs. */
  readonly active: PageTurn | null;
  readonly saying: Saying | null;
  /** Where older items are to be read from; null: there are none. */
  readonly previous: number | null;
}

export class ThreadState {
  readonly #thread_id: string;
  readonly #items = new Map<string, KnownItem>();
  readonly #turns = new Map<string, Known<PageTurn>>();
  /** Items that are gone, and since which entry. */
  readonly #gone = new Map<string, number>();
  /** The newest answer of each turn. */
  readonly #saidAt = new Map<string, number>();
  #thread: Known<Page["thread"]> | null = null;
  #saying: Saying | null = null;
  #previous: number | null = null;
  #sorted: readonly ThreadItem[] | null = [];
  #turnViews: ReadonlyMap<string, PageTurn> | null = new Map();
  #arrivals = 0;
  /** Some of what is being said was not told. */
  isMissing = false;

  constructor(thread_id: string) {
    this.#thread_id = thread_id;
  }

  /** Null until a page was read. */
  get view(): Conversation | null {
    if (this.#thread === null) return null;
    this.#sorted ??= [...this.#items.values()].sort(inOrder).map(({ value }) => value);
    this.#turnViews ??= new Map([...this.#turns].map(([id, { value }]) => [id, value]));
    const active = [...this.#turnViews.values()].find(({ state }) => state === "active") ?? null;
    return {
      thread: this.#thread.value,
      items: this.#sorted,
      turns: this.#turnViews,
      active,
      saying: active !== null && this.#saying?.turn_id === active.turn_id ? this.#saying : null,
      previous: this.#previous,
    };
  }

  /** Something may have been missed: all is read anew. */
  forget(): void {
    this.#items.clear();
    this.#turns.clear();
    this.#gone.clear();
    this.#saidAt.clear();
    this.#thread = null;
    this.#saying = null;
    this.#previous = null;
    this.#changed();
  }

  /** A page that was read; `isNewest`: the end of the conversation. */
  read(page: Page, isNewest: boolean): void {
    const { thread, items, turns, seq, previous } = page;
    const isFirst = this.#thread === null;
    if (this.#thread === null || this.#thread.as_of <= seq) this.#thread = { value: thread, as_of: seq };
    if (isFirst || !isNewest) this.#previous = previous;
    // Of those that were told of before, what is older is read when it is wanted.
    if (isFirst) for (const [id, { value }] of this.#items) if (value.seq < (previous ?? 0)) this.#items.delete(id);
    for (const item of items) this.#put(item, seq);
    for (const turn of turns) this.#putTurn(turn, seq);
    if (isNewest) this.#heardSoFar(page);
    this.#changed();
  }

  /** What is being said as it was read, unless it has become an item meanwhile. */
  #heardSoFar({ saying, seq }: Page): void {
    this.isMissing = false;
    if (saying === null) return;
    if (this.#saidSince(saying.turn_id, seq)) return;
    const known = this.#saying?.turn_id === saying.turn_id ? this.#saying.text : "";
    if (saying.text.length >= known.length || !known.startsWith(saying.text)) this.#saying = saying;
  }

  /** Answers whether it is about this conversation. */
  hear(told: Told): boolean {
    if (!("thread_id" in told.params) || told.params.thread_id !== this.#thread_id) return false;
    switch (told.method) {
      case "item/created":
      case "item/updated":
        this.#hearItem(told.params);
        break;
      case "item/deleted":
        this.#delete(told.params.item_id, told.params.seq);
        break;
      case "turn/progress":
        return this.#progress(told.params);
      case "thread/started":
      case "thread/paused":
      case "thread/resumed":
      case "thread/closed":
        this.#hearThread(told.params.state, told.params.seq);
        break;
      case "turn/started":
      case "turn/completed":
      case "turn/interrupted":
      case "turn/failed":
        this.#hearTurn(told);
        break;
      default:
        return false;
    }
    this.#changed();
    return true;
  }

  #hearItem(pushed: Pushed): void {
    const { seq } = pushed;
    const item = itemOf(pushed, this.#items.get(pushed.item_id)?.value);
    // Of what was not read yet only the place is known; it is read when it is wanted.
    if (this.#thread !== null && item.seq < (this.#previous ?? 0)) return;
    this.#put(item, seq);
    const ends = item.type === "tool_call" || (item.type === "message" && item.role === "assistant");
    if (ends && item.turn_id === this.#saying?.turn_id) this.#saying = null;
  }

  #put(item: ThreadItem, as_of: number): void {
    const known = this.#items.get(item.item_id);
    if (known !== undefined && known.as_of > as_of) return;
    if ((this.#gone.get(item.item_id) ?? -1) > as_of) return;
    this.#arrivals += 1;
    const arrival = known?.arrival ?? this.#arrivals;
    if (item.type === "message" && item.role === "assistant" && item.turn_id !== null)
      this.#saidAt.set(item.turn_id, Math.max(item.seq, this.#saidAt.get(item.turn_id) ?? -1));
    this.#items.set(item.item_id, { value: item, as_of, rank: rankOf(item.item_id), arrival });
  }

  #delete(item_id: string, seq: number): void {
    this.#gone.set(item_id, seq);
    this.#items.delete(item_id);
  }

  #hearThread(state: Page["thread"]["state"], seq: number): void {
    if (this.#thread === null || this.#thread.as_of > seq) return;
    this.#thread = { value: { ...this.#thread.value, state }, as_of: seq };
  }

  #hearTurn({ method, params }: Exclude<TurnPush, { method: "turn/progress" }>): void {
    const { turn_id, thread_id, state, started_at, seq } = params;
    const known = this.#turns.get(turn_id)?.value;
    const stopped = method === "turn/interrupted" && params.continued_by === null;
    this.#putTurn(
      {
        turn_id,
        thread_id,
        state: stopped ? "stopped" : state,
        source: method === "turn/started" ? params.source : (known?.source ?? "user"),
        internal: false,
        created_at: known?.created_at ?? started_at,
        note: method === "turn/interrupted" || method === "turn/failed" ? params.message : null,
        continued_by: method === "turn/interrupted" ? params.continued_by : null,
      },
      seq,
    );
    if (method !== "turn/started" && this.#saying?.turn_id === turn_id) this.#saying = null;
  }

  #putTurn(turn: PageTurn, as_of: number): void {
    if ((this.#turns.get(turn.turn_id)?.as_of ?? -1) > as_of) return;
    this.#turns.set(turn.turn_id, { value: turn, as_of });
  }

  /** A piece of an answer: it follows on what is known of it, or something is missing. */
  #progress({ turn_id, delta, offset, after_seq }: ToldParams["turn/progress"]): boolean {
    if (this.#saidSince(turn_id, after_seq)) return false;
    const text = this.#saying?.turn_id === turn_id ? this.#saying.text : "";
    if (offset === 0) this.#saying = { turn_id: turn_id as Saying["turn_id"], text: delta };
    else if (offset > text.length) {
      this.isMissing = true;
      return true;
    } else if (offset + delta.length > text.length)
      this.#saying = { turn_id: turn_id as Saying["turn_id"], text: text.slice(0, offset) + delta };
    return true;
  }

  /** Whether what was said then is an item by now, or its turn is over. */
  #saidSince(turn_id: string, seq: number): boolean {
    const turn = this.#turns.get(turn_id)?.value;
    if (turn !== undefined && turn.state !== "active") return true;
    return (this.#saidAt.get(turn_id) ?? -1) > seq;
  }

  #changed(): void {
    this.#sorted = null;
    this.#turnViews = null;
  }
}

function inOrder(one: KnownItem, other: KnownItem): number {
  return one.value.seq - other.value.seq || one.rank - other.rank || one.arrival - other.arrival;
}

const TOLD = 1_000_000;

/** An item's id says which entry it came with, and what it is of it. */
function rankOf(item_id: string): number {
  const rest = item_id.slice(item_id.indexOf(".") + 1);
  if (rest === "queued") return -1;
  if (/^\d+$/.test(rest)) return Number(rest);
  return rest.startsWith("told.") ? TOLD : TOLD + 1;
}

/** As `thread/read` has it. */
function itemOf(pushed: Pushed, known: ThreadItem | undefined): ThreadItem {
  const { item_id, item_type, role, status, content, thread_id, turn_id, timestamp } = pushed;
  return {
    item_id,
    thread_id,
    turn_id,
    seq: Number(item_id.slice(0, item_id.indexOf("."))),
    // An update has the time of the change.
    timestamp: known?.timestamp ?? timestamp,
    type: item_type,
    ...(role === undefined ? {} : { role }),
    status,
    content,
  } as ThreadItem;
}
