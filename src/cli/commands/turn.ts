import { readFileSync } from "node:fs";
import { RemoteTidings } from "../../client/remote.js";
import type { Told } from "../../client/told.js";
import { ConflictError } from "../../domain/errors.js";
import type { ThreadView, TurnView } from "../../runtime/conversation.js";
import { noAgent } from "../chat/host.js";
import { type Ending, Talk } from "../chat/talk.js";
import { Transcript } from "../chat/transcript.js";
import { defineCommand } from "../command.js";
import { EXIT, type ExitCode, UsageError } from "../exit.js";
import type { Output } from "../output.js";
import { PROGRAM } from "../program.js";
import { serverFor } from "../served.js";
import { type Settings, shellWord } from "../settings.js";
import { oneLine } from "../text.js";

const MODES = ["start", "steer", "interrupt"] as const;
type Mode = (typeof MODES)[number] | "deliver";

/** What became of what was said. */
interface Sent {
  readonly how: "started" | "queued" | "steered" | "interrupted";
  /** The turn that goes on with it; with `interrupted` and nothing else to say, the one that was stopped. */
  readonly turn: TurnView;
}

export const turn = defineCommand({
  usage: "THREAD [TEXT] [options]",
  about: [
    "Says something in a conversation of the running server, and follows what its agent makes of it to the end of the turn: its answer as it is made, " +
      "tool calls with the first line of their results, what the system shows there, and what the agent was told. - reads the text from standard input.",
    "Without a further word it is for the turn that runs, which takes it up at its next step, or else it begins a turn; which of them is said on " +
      "standard error. Ctrl+C ends the following, and not the turn.",
    "The exit code is 1 if the turn failed. With --json: first {how, turn}, then what happens as {method, params}, one a line, and at the end {over: {turn_id, how}}.",
  ],
  options: {
    start: { kind: "flag", summary: "a turn of its own; it waits while another runs" },
    steer: { kind: "flag", summary: "only for the turn that runs; refused if none does" },
    interrupt: { kind: "flag", summary: "stop the turn that runs; with a TEXT, its agent goes on with that" },
    "no-wait": { kind: "flag", summary: "do not follow it" },
  },
  examples: [
    'tidings turn support "What about the deployment?"',
    "tidings turn support --interrupt",
    "git diff | tidings turn review - --start --no-wait",
  ],
  async run({ values, words, settings, output }) {
    const [thread_id, text, extra] = words;
    if (thread_id === undefined) throw new UsageError(`THREAD is missing; \`${PROGRAM} threads\` shows them`, "THREAD");
    if (extra !== undefined)
      throw new UsageError(`unexpected ${JSON.stringify(extra)}: there is one TEXT; quote it if it has spaces`, "TEXT");
    const mode = modeOf(values);
    if (text === undefined && mode !== "interrupt")
      throw new UsageError("TEXT is missing: what is to be said; - for standard input", "TEXT");
    const content = text === "-" ? readFileSync(0, "utf8") : text;
    const stopped = new Promise<"stopped">((resolve) => {
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve("stopped"));
    });
    const endpoint = await serverFor(settings, output, "only a server hosts an agent");
    const remote = new RemoteTidings(endpoint);
    if ((await remote.agent()) === null) throw noAgent(endpoint);
    const { thread } = await remote.thread(thread_id).read({ before: Number.MAX_SAFE_INTEGER, limit: 1 });
    if (values["no-wait"]) {
      const sent = await send(remote, thread_id, mode, content);
      await tell(sent, output);
      return EXIT.ok;
    }
    await mayFollow(remote, thread);
    return new Following(remote, thread, settings, output).run(mode, content, stopped);
  },
});

function modeOf(values: Readonly<Record<(typeof MODES)[number], boolean>>): Mode {
  const [mode, other] = MODES.filter((name) => values[name]);
  if (other !== undefined) throw new UsageError(`--${mode} and --${other}: choose one of them`, `--${other}`);
  return mode ?? "deliver";
}

/** What happens in a conversation is told to its own user. */
async function mayFollow(remote: RemoteTidings, { thread_id, user_id }: ThreadView): Promise<void> {
  if ((await remote.user()) === user_id) return;
  const create = `${PROGRAM} token create --user ${shellWord(user_id)} --scope read --scope agent`;
  throw new UsageError(
    `${thread_id} is a conversation of ${user_id}: to follow it, use a token of theirs (\`${create}\`) with --server and --token; or say it with --no-wait`,
    "THREAD",
  );
}

async function send(remote: RemoteTidings, thread_id: string, mode: Mode, content: string | undefined): Promise<Sent> {
  const thread = remote.thread(thread_id);
  switch (mode) {
    case "deliver":
      return thread.deliver(content ?? "");
    case "start": {
      const begun = await thread.say(content ?? "");
      return { how: begun.state === "queued" ? "queued" : "started", turn: begun };
    }
    case "steer":
      return { how: "steered", turn: await thread.steer(content ?? "") };
    case "interrupt": {
      const active = (await thread.turns()).find(({ state }) => state === "active");
      if (active === undefined)
        throw new ConflictError(
          "turn_not_active",
          `no turn is active in ${JSON.stringify(thread_id)}; nothing was stopped`,
        );
      const { turn: stopped, successor } = await remote.turns.interrupt(active.turn_id, { content });
      return { how: "interrupted", turn: successor ?? stopped };
    }
  }
}

const SAID: Readonly<Record<Sent["how"], string>> = {
  started: "a turn has begun",
  queued: "it waits for its turn",
  steered: "for the turn that runs, which takes it up at its next step",
  interrupted: "the turn that ran was stopped",
};

async function tell({ how, turn: { turn_id, ...view } }: Sent, output: Output): Promise<void> {
  if (output.json) await output.value({ how, turn: { turn_id, ...view } });
  else output.remark(`tidings: ${how}: ${SAID[how]} (${turn_id})`);
}

/** One turn, from what was said to its end. */
class Following {
  readonly #remote: RemoteTidings;
  readonly #thread: ThreadView;
  readonly #settings: Settings;
  readonly #output: Output;
  readonly #transcript: Transcript;
  /** What came before it was known which turn it is. */
  #early: Told[] | null = [];
  /** The turn, and those that went on in its place. */
  readonly #turns = new Set<string>();
  #writing: Promise<void> = Promise.resolve();

  constructor(remote: RemoteTidings, thread: ThreadView, settings: Settings, output: Output) {
    this.#remote = remote;
    this.#thread = thread;
    this.#settings = settings;
    this.#output = output;
    this.#transcript = new Transcript({
      page: { write: (text) => process.stdout.write(text) },
      output,
      streams: output.terminal,
      // What is said by users stands in the command that was typed, or is another's.
      isOurs: () => true,
    });
  }

  async run(mode: Mode, content: string | undefined, stopped: Promise<"stopped">): Promise<ExitCode> {
    const { thread_id } = this.#thread;
    const talk = await Talk.open(this.#remote, thread_id, (told) => this.#take(told));
    try {
      const sent = await send(this.#remote, thread_id, mode, content);
      await tell(sent, this.#output);
      const { turn_id, state } = sent.turn;
      this.#know(turn_id);
      if (state === "queued" && this.#thread.state === "paused") {
        this.#output.remark("tidings: the conversation is paused: it begins when its agent goes on");
        return EXIT.ok;
      }
      const gone = talk.gone.then((error) => error ?? ("stopped" as const));
      const end = await Promise.race([talk.over(turn_id), gone, stopped]);
      if (end instanceof Error) throw end;
      if (end === "stopped") return this.#left();
      return await this.#over(turn_id, end);
    } finally {
      talk.close();
      this.#transcript.endLine();
      await this.#writing;
    }
  }

  #know(turn_id: string): void {
    this.#turns.add(turn_id);
    const early = this.#early ?? [];
    this.#early = null;
    for (const told of early) this.#take(told);
  }

  #take(told: Told): void {
    if (this.#early !== null) {
      this.#early.push(told);
      return;
    }
    const { method, params } = told;
    // What comes to the inbox is not of this conversation.
    if (method === "notification/created") return;
    const about = "turn_id" in params ? params.turn_id : null;
    if (about !== null && !this.#turns.has(about)) return;
    if (method === "turn/interrupted" && told.params.continued_by !== null) this.#turns.add(told.params.continued_by);
    if (this.#output.json) this.#writing = this.#writing.then(() => this.#output.value({ method, params }));
    else this.#transcript.take(told);
  }

  async #over(turn_id: string, { how }: Ending): Promise<ExitCode> {
    await this.#writing;
    if (this.#output.json) await this.#output.value({ over: { turn_id, how } });
    return how === "failed" ? EXIT.problem : EXIT.ok;
  }

  #left(): ExitCode {
    const { thread_id } = this.#thread;
    const again = `${PROGRAM} turn ${shellWord(thread_id)} --interrupt${this.#settings.dataFlag}`;
    this.#output.remark(`tidings: the turn goes on; to stop it: ${oneLine(again)}`);
    return EXIT.ok;
  }
}
