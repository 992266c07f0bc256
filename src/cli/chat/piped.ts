/** A conversation with a program: each line is a message, and its turn is over before the next one is sent. */
import type { Told } from "../../client/told.js";
import { EXIT, type ExitCode, UsageError } from "../exit.js";
import { linesOf } from "../ndjson.js";
import { type ChatContext, isCommand, messageIn, runCommand } from "./commands.js";
import type { ChatSetting } from "./setting.js";
import { Talk } from "./talk.js";
import { Transcript } from "./transcript.js";

export async function conversePiped(setting: ChatSetting): Promise<ExitCode> {
  const { remote, agent, thread_id, output } = setting;
  let talk: Talk | undefined;
  const transcript = new Transcript({
    page: { write: (text) => process.stdout.write(text) },
    output,
    streams: false,
    isOurs: (words) => talk?.isOurs(words) === true,
  });
  const tell = (told: Told) => {
    const { method, params } = told;
    if (output.json) void output.value({ method, params });
    else transcript.take(told);
  };
  if (output.json) await output.value({ chat: { thread_id, agent } });
  talk = await Talk.open(remote, thread_id, tell);
  let left = false;
  const context: ChatContext = {
    talk,
    output,
    latest: () => transcript.latest,
    leave: () => {
      left = true;
    },
  };
  const end = Promise.race([talk.gone, setting.stopped]).then((error) => {
    if (error !== undefined) throw error;
    return EXIT.ok;
  });
  try {
    return await Promise.race([readThrough(context, () => left), end]);
  } finally {
    // Nobody has to be listening for it any more.
    end.catch(() => {});
    talk.close();
    process.stdin.destroy();
  }
}

async function readThrough(context: ChatContext, isLeft: () => boolean): Promise<ExitCode> {
  const { talk } = context;
  let failed = false;
  for await (const lines of linesOf(process.stdin))
    for (const line of lines) {
      if ("problem" in line) throw new UsageError(`line ${line.number} ${line.problem}`);
      if (isCommand(line.text)) await runCommand(line.text, context);
      else {
        const turn = await talk.say(messageIn(line.text));
        // One that waits for a paused thread is not waited for.
        const isPaused = turn.state === "queued" && (await talk.thread.read({ limit: 1 })).thread.state === "paused";
        if (!isPaused && (await talk.over(turn.turn_id)).how === "failed") failed = true;
      }
      if (isLeft()) return failed ? EXIT.problem : EXIT.ok;
    }
  return failed ? EXIT.problem : EXIT.ok;
}
