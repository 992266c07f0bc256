/** One conversation through a server: what is said, and how far its turns are. */
import type { TidingsClient } from "../../client/client.js";
import type { ThreadCalls } from "../../client/conversation.js";
import type { RemoteTidings } from "../../client/remote.js";
import type { Told } from "../../client/told.js";
import type { InterruptAnswer, TurnView } from "../../runtime/conversation.js";

/** How a turn ended. */
export interface Ending {
  readonly how: "completed" | "interrupted" | "failed";
  readonly continued_by: string | null;
}

/** Endings that are kept for whoever asks after them. */
const ENDINGS_MAX = 1_000;

export class Talk {
  readonly remote: RemoteTidings;
  readonly thread: ThreadCalls;
  /** Resolves when nothing is told any more, with why. */
  readonly gone: Promise<Error | undefined>;
  readonly #client: TidingsClient;
  readonly #turns: Turns;
  /** What we have said and not yet seen. */
  readonly #said: string[] = [];

  private constructor(remote: RemoteTidings, thread: ThreadCalls, client: TidingsClient, turns: Turns) {
    this.remote = remote;
    this.thread = thread;
    this.#client = client;
    this.#turns = turns;
    // Who speaks is told at once that nobody listens, and is not kept waiting for somebody to come back.
    this.gone = new Promise((resolve) => {
      client.onStatus((status, { error }) => {
        if (status === "waiting" || status === "closed") resolve(error);
      });
    });
  }

  /** `tell` is told what happens in the conversation, and what comes to the inbox, from now on. */
  static async open(remote: RemoteTidings, thread_id: string, tell: (told: Told) => void): Promise<Talk> {
    const turns = new Turns();
    const client = await remote.follow({ observe: true });
    const talk = new Talk(remote, remote.thread(thread_id), client, turns);
    client.listen((told) => {
      if (!concerns(told, thread_id)) return;
      turns.take(told);
      tell(told);
    });
    return talk;
  }

  /** The turn that runs now. */
  get active(): string | null {
    return this.#turns.active;
  }

  async say(words: string): Promise<TurnView> {
    this.#said.push(words);
    return this.#kept(words, this.thread.say(words));
  }

  /** To the turn that runs, else a turn of its own. */
  async deliver(words: string): Promise<TurnView> {
    this.#said.push(words);
    return (await this.#kept(words, this.thread.deliver(words))).turn;
  }

  /** With words, the agent goes on with these; they begin a turn of their own where it was over already. */
  async interrupt(turn_id: string, words?: string): Promise<InterruptAnswer> {
    if (words === undefined) return this.remote.turns.interrupt(turn_id);
    this.#said.push(words);
    const answer = await this.#kept(words, this.remote.turns.interrupt(turn_id, { content: words }));
    if (answer.successor !== null || answer.outcome === "cancel_requested") return answer;
    return { ...answer, successor: await this.#kept(words, this.thread.say(words)) };
  }

  /** Whether these words are ours; asked once for each that is seen. */
  isOurs(words: string): boolean {
    const at = this.#said.indexOf(words);
    if (at >= 0) this.#said.splice(at, 1);
    return at >= 0;
  }

  /** Resolves when the turn is over, and those that went on in its place. */
  async over(turn_id: string): Promise<Ending> {
    const ending = await this.#turns.ended(turn_id);
    return ending.continued_by === null ? ending : this.over(ending.continued_by);
  }

  close(): void {
    this.#client.close();
  }

  /** What was not taken is not waited for. */
  async #kept<Value>(words: string, answer: Promise<Value>): Promise<Value> {
    try {
      return await answer;
    } catch (error) {
      this.isOurs(words);
      throw error;
    }
  }
}

function concerns(told: Told, thread_id: string): boolean {
  if (told.method === "notification/created") return told.params.notification.channel === "inbox";
  return "thread_id" in told.params && told.params.thread_id === thread_id;
}

class Turns {
  active: string | null = null;
  readonly #endings = new Map<string, Ending>();
  readonly #waiting = new Map<string, ((ending: Ending) => void)[]>();

  take(told: Told): void {
    switch (told.method) {
      case "turn/started":
        this.active = told.params.turn_id;
        return;
      case "turn/interrupted":
        this.#over(told.params.turn_id, { how: "interrupted", continued_by: told.params.continued_by });
        return;
      case "turn/completed":
      case "turn/failed":
        this.#over(told.params.turn_id, { how: told.params.state, continued_by: null });
    }
  }

  #over(turn_id: string, ending: Ending): void {
    if (this.active === turn_id) this.active = null;
    this.#end(turn_id, ending);
  }

  ended(turn_id: string): Promise<Ending> {
    const known = this.#endings.get(turn_id);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve) => {
      this.#waiting.set(turn_id, [...(this.#waiting.get(turn_id) ?? []), resolve]);
    });
  }

  #end(turn_id: string, ending: Ending): void {
    if (this.#endings.size >= ENDINGS_MAX) this.#endings.clear();
    this.#endings.set(turn_id, ending);
    for (const resolve of this.#waiting.get(turn_id) ?? []) resolve(ending);
    this.#waiting.delete(turn_id);
  }
}
