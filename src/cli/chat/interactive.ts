/** A conversation with a person at a terminal. */
import type { Told } from "../../client/told.js";
import { isMiss } from "../../domain/errors.js";
import { agentWords } from "../agent_options.js";
import { EXIT, type ExitCode, reportOf } from "../exit.js";
import { PROGRAM } from "../program.js";
import { oneLine } from "../text.js";
import { isCommand, messageIn, runCommand } from "./commands.js";
import { Prompt } from "./prompt.js";
import type { ChatSetting } from "./setting.js";
import { Talk } from "./talk.js";
import { Transcript } from "./transcript.js";

const OVER: ReadonlySet<string> = new Set(["turn/completed", "turn/interrupted", "turn/failed"]);

export async function converseAtTerminal(setting: ChatSetting): Promise<ExitCode> {
  const chat = new Conversing(setting);
  return chat.run();
}

class Conversing {
  readonly #setting: ChatSetting;
  readonly #transcript: Transcript;
  readonly #prompt: Prompt;
  #talk: Talk | undefined;
  /** The user is asked what is to become of the answer. */
  #choosing = false;
  #leave: () => void = () => {};

  constructor(setting: ChatSetting) {
    this.#setting = setting;
    const { output, remote } = setting;
    this.#prompt = new Prompt(output.style("green", "you › "), {
      line: (text) => void this.#line(text.trim()),
      interrupt: () => void this.#interrupt(),
      end: () => this.#leave(),
    });
    this.#transcript = new Transcript({
      page: this.#prompt,
      output,
      streams: true,
      isOurs: (words) => this.#talk?.isOurs(words) === true,
      shown: ({ id, revision }) => {
        // Shown is what it is; whether that could be recorded is not the user's concern.
        remote.ack({ id, revision, action: "rendered" }).catch(() => {});
      },
    });
  }

  async run(): Promise<ExitCode> {
    const { remote, agent, thread_id, before, output, dataFlag, stopped } = this.#setting;
    const transcript = this.#transcript;
    const left = new Promise<undefined>((resolve) => {
      this.#leave = () => resolve(undefined);
    });
    transcript.note(`A conversation with ${oneLine(agentWords(agent))}. /help shows what you can do; Ctrl+C leaves.`);
    for (const item of before) transcript.item(item);
    const talk = await Talk.open(remote, thread_id, (told) => this.#tell(told));
    this.#talk = talk;
    if (talk.active === null) this.#prompt.show();
    try {
      const gone = await Promise.race([left, talk.gone, stopped]);
      if (gone instanceof Error) throw gone;
    } finally {
      this.#prompt.close();
      talk.close();
      transcript.endLine();
    }
    await output.line(output.style("gray", `To go on with it:  ${PROGRAM} chat --thread ${thread_id}${dataFlag}`));
    return EXIT.ok;
  }

  #tell(told: Told): void {
    const { method } = told;
    const speaks = method === "turn/started" || method === "turn/progress";
    if (speaks && !this.#choosing) this.#prompt.hide();
    this.#transcript.take(told);
    if (OVER.has(method)) this.#rest();
  }

  /** It is the user's turn again, if nothing runs. */
  #rest(): void {
    if (this.#talk?.active !== null || this.#choosing) return;
    this.#transcript.endLine();
    this.#prompt.show();
  }

  async #line(text: string): Promise<void> {
    const talk = this.#talk;
    if (talk === undefined) return;
    const { output } = this.#setting;
    const transcript = this.#transcript;
    try {
      if (text === "") return;
      if (isCommand(text)) {
        transcript.endLine();
        await runCommand(text, { talk, output, latest: () => transcript.latest, leave: () => this.#leave() });
        return;
      }
      const words = messageIn(text);
      const steers = talk.active !== null;
      const turn = steers ? await talk.deliver(words) : await talk.say(words);
      if (steers) transcript.note(`you, meanwhile: ${oneLine(words)}`);
      if (turn.state === "queued") transcript.note("it waits for its turn");
      else await talk.over(turn.turn_id);
    } catch (error) {
      this.#complain(error);
    } finally {
      this.#rest();
    }
  }

  /**
   * While the agent answers, what it says is held back until the user has chosen: nothing is cut off that is then to go
   * on. Where nothing is said, Ctrl+C leaves.
   */
  async #interrupt(): Promise<void> {
    const talk = this.#talk;
    if (talk === undefined || talk.active === null) {
      this.#leave();
      return;
    }
    if (this.#choosing) return;
    this.#choosing = true;
    const transcript = this.#transcript;
    transcript.endLine();
    transcript.hold();
    try {
      const choice = await this.#choice();
      const turn_id = talk.active;
      if (choice === "continue") return;
      if (choice === "stop") {
        if (turn_id !== null) await talk.interrupt(turn_id);
        return;
      }
      if (turn_id === null) await talk.say(choice.reply);
      else await talk.interrupt(turn_id, choice.reply);
    } catch (error) {
      this.#complain(error);
    } finally {
      this.#choosing = false;
      transcript.release();
      this.#rest();
    }
  }

  async #choice(): Promise<"continue" | "stop" | { readonly reply: string }> {
    const { output } = this.#setting;
    for (;;) {
      const answer = await this.#prompt.ask(output.style("yellow", "reply, continue or stop? [r/c/s] "));
      switch (answer?.trim().toLowerCase()[0]) {
        case "c":
          return "continue";
        case undefined:
          if (answer !== null) return "continue";
          return "stop";
        case "s":
          return "stop";
        case "r": {
          const reply = (await this.#prompt.ask(output.style("green", "you › ")))?.trim();
          if (reply !== undefined && reply !== "") return { reply };
        }
      }
    }
  }

  #complain(error: unknown): void {
    this.#transcript.note(`✖ ${oneLine(isMiss(error) ? error.message : reportOf(error).message)}`, "red");
  }
}
