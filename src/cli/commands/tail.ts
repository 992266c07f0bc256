import type { TidingsClient } from "../../client/client.js";
import type { Cursor } from "../../client/methods.js";
import { SlowConsumerError } from "../../client/reader.js";
import { RemoteTidings } from "../../client/remote.js";
import type { Told, ToldName } from "../../client/told.js";
import { NOTIFICATION_NAMES } from "../../server/notifications.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, UsageError } from "../exit.js";
import { didYouMean } from "../nearest.js";
import type { Output } from "../output.js";
import { serverFor } from "../served.js";
import { oneLine } from "../text.js";
import { toldLine } from "../told_lines.js";

/** Without a word about it these are left out: they say nothing that does not come otherwise. */
const LEFT_OUT: readonly string[] = ["inbox/counts", "turn/progress"];
const NAMES = NOTIFICATION_NAMES.filter((name): name is ToldName => name !== "stream/heartbeat");

export const tail = defineCommand({
  usage: "[--methods NAMES] [--thread ID] [--since SEQ] [options]",
  about: [
    "What a running server tells the token's user, as it happens, a line each: its time (UTC), what it is, who it is from, and " +
      "what it says. Ctrl+C ends it. With --json: {method, params}, one a line.",
    "A connection that breaks is made again, and what happened meanwhile is told then: nothing is left out and nothing told " +
      "twice, or stream/reset says that something is missing. What is said of connections goes to standard error.",
    "Another user's stream needs a token of theirs: `tidings token create --user USER --scope read`, then --server and --token.",
  ],
  options: {
    methods: {
      kind: "text",
      value: "NAMES",
      summary: "only these, separated by commas, like notification/created,turn/failed",
      preset: `all but ${LEFT_OUT.join(" and ")}`,
    },
    thread: { kind: "text", value: "ID", summary: "only what is about this conversation" },
    since: {
      kind: "integer",
      value: "SEQ",
      min: 0,
      summary: "first what has happened after this entry of the journal; 0: all of it",
      preset: "from now on",
    },
    observe: { kind: "flag", summary: "also what the agent was told" },
  },
  examples: [
    "tidings tail",
    "tidings tail --since 0 --methods notification/created --json | jq .params.notification.content",
    "tidings tail --thread support --observe",
  ],
  async run({ values, words, settings, output }) {
    noWords(words);
    const { thread, since, observe } = values;
    const methods = methodsOf(values.methods);
    const stopped = new Promise<undefined>((resolve) => {
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve(undefined));
    });
    const remote = new RemoteTidings(await serverFor(settings, output, "only a server tells"));
    const opt_out = NAMES.filter((name) => name !== "stream/reset" && !methods.has(name)) as Exclude<
      ToldName,
      "stream/reset"
    >[];
    for (let from: { readonly cursor?: Cursor | null; readonly since?: number | undefined } = { since }; ; ) {
      const client = await remote.follow({ observe, opt_out, ...from });
      remark(client, output);
      try {
        await Promise.race([stopped, follow(client, thread, output)]);
        return EXIT.ok;
      } catch (error) {
        if (!(error instanceof SlowConsumerError)) throw error;
        // Whoever reads our lines is slow: the rest is still there.
        from = { cursor: error.cursor };
      } finally {
        client.close();
      }
    }
  },
});

async function follow(client: TidingsClient, thread: string | undefined, output: Output): Promise<void> {
  for await (const told of client.notifications()) {
    if (thread !== undefined && told.method !== "stream/reset" && threadOf(told) !== thread) continue;
    const { method, params } = told;
    await (output.json ? output.value({ method, params }) : output.line(toldLine(told, output)));
  }
}

function threadOf({ params }: Told): string | null {
  if ("notification" in params) return params.notification.thread_id;
  return "thread_id" in params ? params.thread_id : null;
}

/** Says that the connection is gone, once, and that it is back. */
function remark(client: TidingsClient, output: Output): void {
  let gone = false;
  client.onStatus((status, { error }) => {
    if (status === "waiting" && !gone) {
      gone = true;
      output.remark(`tidings: ${oneLine(error?.message ?? "the connection is gone")}; trying again`);
    } else if (status === "open" && gone) {
      gone = false;
      output.remark("tidings: connected again");
    }
  });
}

function methodsOf(text: string | undefined): ReadonlySet<string> {
  if (text === undefined) return new Set(NAMES.filter((name) => !LEFT_OUT.includes(name)));
  return new Set(
    text.split(",").map((word) => {
      const name = NAMES.find((one) => one === word.trim());
      if (name !== undefined) return name;
      const hint = didYouMean(word.trim(), NAMES) || ".";
      throw new UsageError(
        `--methods: a server tells no ${JSON.stringify(word)}${hint} There are ${NAMES.join(", ")}.`,
        "--methods",
      );
    }),
  );
}
