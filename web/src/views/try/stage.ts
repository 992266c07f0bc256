/** Where a situation is played: a conversation of its own, and the same methods that anybody uses. */
import type { ParamsOf, StartedTurn, TidingsClient, Told } from "tidings/client";
import type { Agent } from "./agent.js";

/** What has come of it so far. */
export interface Found {
  readonly thread_id: string | null;
  readonly event_ids: readonly string[];
  readonly notification_ids: readonly string[];
  /** What is being done now; null when all of it is done. */
  readonly doing: string | null;
}

export const NOTHING: Found = { thread_id: null, event_ids: [], notification_ids: [], doing: null };

/** Who reports what happens here, in the journal. */
const SOURCE = "try-it";
/** Pushes wake who waits; this is for what nobody is told of. */
const LOOK_MS = 500;
const LIMIT_MS = 60_000;

export class Stage {
  readonly client: TidingsClient;
  readonly agent: Agent;
  readonly #report: (found: Found) => void;
  readonly #heard: Told[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #stop: () => void;
  #found: Found = NOTHING;

  private constructor(client: TidingsClient, agent: Agent, report: (found: Found) => void) {
    this.client = client;
    this.agent = agent;
    this.#report = report;
    this.#stop = client.listen((told) => {
      if (!("thread_id" in told.params) || told.params.thread_id !== this.#found.thread_id) return;
      this.#heard.push(told);
      for (const wake of [...this.#waiting]) wake();
    });
  }

  /** With a conversation that was started for it. */
  static async open(
    client: TidingsClient,
    agent: Agent,
    start: ParamsOf<"thread/start">,
    report: (found: Found) => void,
  ): Promise<Stage> {
    const stage = new Stage(client, agent, report);
    try {
      stage.doing("Starting a conversation");
      const { thread_id } = await client.call("thread/start", start);
      stage.#know({ thread_id });
    } catch (error) {
      stage.close();
      throw error;
    }
    return stage;
  }

  close(): void {
    this.#stop();
  }

  get thread_id(): string {
    return this.#found.thread_id ?? "";
  }

  doing(words: string | null): void {
    this.#know({ doing: words });
  }

  async emit(event: Omit<ParamsOf<"event/emit">, "source" | "thread_id">): Promise<void> {
    this.doing(`Sending the event ${event.type}`);
    const { id, matches } = await this.client.call("event/emit", {
      ...event,
      source: SOURCE,
      thread_id: this.thread_id,
    });
    this.#know({ event_ids: [...this.#found.event_ids, id] });
    this.find(matches.map(({ notification }) => notification.id));
  }

  async notify(input: Omit<ParamsOf<"notification/notify">, "thread_id">): Promise<void> {
    this.doing("Sending the notification");
    const { id } = await this.client.call("notification/notify", { ...input, thread_id: this.thread_id });
    this.find([id]);
  }

  async say(input: string): Promise<StartedTurn> {
    this.doing("Saying something to the agent");
    return this.client.call("turn/start", { thread_id: this.thread_id, input });
  }

  /** Has the rehearsal model call a tool; resolves when its turn is over. */
  async use(words: string, tool: string, input: object, ends: "completed" | "failed" = "completed"): Promise<void> {
    await this.say(`${words}\ncall ${tool} ${JSON.stringify(input)}`);
    await this.quiet();
    const { items } = await this.client.call("thread/read", { thread_id: this.thread_id });
    const call = items.findLast((item) => item.type === "tool_call");
    if (call?.content.name === tool && call.status === ends) return;
    throw new Error(`It was not to be like this: ${call?.content.output ?? `${tool} was not called`}`);
  }

  /** Waits until so many events of these kinds have become notifications of the conversation. */
  async untilTold(words: string, isWanted: (kind: string) => boolean, events: number): Promise<void> {
    await this.until(words, async () => {
      const { notifications } = await this.client.call("notification/list", { thread_id: this.thread_id });
      const wanted = notifications.filter(({ kind }) => isWanted(kind)).toReversed();
      this.find(wanted.map(({ id }) => id));
      return wanted.reduce((sum, { rows }) => sum + rows, 0) >= events;
    });
  }

  /** Notifications that belong to it. */
  find(ids: readonly string[]): void {
    this.#know({ notification_ids: [...new Set([...this.#found.notification_ids, ...ids])] });
  }

  /** Waits until no turn runs or waits in the conversation. */
  quiet(): Promise<void> {
    return this.until("Waiting for the agent to finish", async () => {
      const { turns } = await this.client.call("queue/list", { thread_id: this.thread_id });
      return turns.length === 0;
    });
  }

  /** Waits until the agent is in the middle of an answer. */
  speaking(): Promise<void> {
    return this.until("Waiting for the agent to speak", () =>
      this.#heard.some(({ method }) => method === "turn/progress" || method === "turn/completed"),
    );
  }

  /** Asks again with each push about the conversation, and now and then. */
  async until(words: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    this.doing(words);
    const late = performance.now() + LIMIT_MS;
    while (!(await isSo())) {
      if (performance.now() > late)
        throw new Error(`${words} took longer than a minute; the ledger shows how it stands.`);
      await this.#next();
    }
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, LOOK_MS);
      this.#waiting.add(wake);
    });
  }

  #know(news: Partial<Found>): void {
    this.#found = { ...this.#found, ...news };
    this.#report(this.#found);
  }
}
