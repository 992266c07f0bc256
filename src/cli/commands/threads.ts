import type { Plane } from "../../client/remote.js";
import { LOCAL_USER } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import type { ThreadSummaryView } from "../../runtime/conversation.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import type { Output } from "../output.js";
import { ownUser, withPlane } from "../plane.js";
import { PROGRAM } from "../program.js";
import { flag } from "../settings.js";
import { ageOf } from "../show.js";
import { ago, counted, cut, oneLine, pad, widthOf } from "../text.js";

const LIMIT = 20;
const TITLE_COLUMNS_MIN = 20;
const STATE_COLUMNS = 9;
const AGE_COLUMNS = 8;

export const threads = defineCommand({
  usage: "[--user USER] [--all] [options]",
  about: [
    "A user's conversations, the most recently active first: how each is, when something was last done in it, its id, and what it is about: " +
      "the user's first words. With --json: {threads, next}; `next` goes into --after.",
  ],
  terms: {
    heading: "How it is",
    rows: [
      ["answering", "a turn of its agent runs"],
      ["open", "its agent waits for somebody to speak, or for something to happen"],
      ["paused", "its agent rests: what is said waits"],
      ["closed", "it is over; shown with --all"],
    ],
  },
  options: {
    user: {
      kind: "text",
      value: "USER",
      summary: "whose",
      preset: `the token's user with --server, else ${LOCAL_USER}`,
    },
    all: { kind: "flag", summary: "also those that are closed" },
    limit: {
      kind: "integer",
      value: "N",
      min: 1,
      max: LIMITS.listLimit,
      summary: "at most so many",
      preset: String(LIMIT),
    },
    after: { kind: "text", value: "ID", summary: "those after this one" },
  },
  examples: ["tidings threads", "tidings threads --user ada --all --json"],
  async run({ values, words, settings, output }) {
    noWords(words);
    const { all, limit = LIMIT, after } = values;
    const { user, page } = await withPlane({ settings, output }, "read", async (plane) => {
      const whose = values.user ?? (await ownUser(plane));
      return { user: whose, page: await pageOf(plane, whose, { all, limit, after }) };
    });
    if (output.json) {
      await output.value(page);
      return EXIT.ok;
    }
    const name = oneLine(user);
    if (page.threads.length === 0) {
      await output.line(
        all ? `${name} has no conversations.` : `${name} has no open conversations; --all shows the closed ones too.`,
      );
      return EXIT.ok;
    }
    const columns = Math.max(...page.threads.map(({ thread_id }) => widthOf(oneLine(thread_id))));
    for (const thread of page.threads) await show(thread, columns, output);
    if (page.next !== null) {
      const asked = `${all ? " --all" : ""}${flag("user", values.user)}${flag("limit", values.limit)}`;
      await output.line(`More:  ${PROGRAM} threads${asked}${flag("after", page.next)}${settings.dataFlag}`);
    }
    return EXIT.ok;
  },
});

interface ThreadsPage {
  readonly threads: ThreadSummaryView[];
  readonly next: string | null;
}

/** As many as are wanted: those that are closed are passed over, unless all are wanted. */
async function pageOf(
  plane: Plane,
  user_id: string,
  { all, limit, after }: { readonly all: boolean; readonly limit: number; readonly after: string | undefined },
): Promise<ThreadsPage> {
  const threads: ThreadSummaryView[] = [];
  for (let last = after; ; ) {
    const found = await plane.threads({ user_id, limit, ...(last === undefined ? {} : { after: last }) });
    for (const thread of found) {
      last = thread.thread_id;
      if (!all && thread.state === "closed") continue;
      threads.push(thread);
      if (threads.length === limit) return { threads, next: last };
    }
    if (found.length < limit) return { threads, next: null };
  }
}

async function show(thread: ThreadSummaryView, columns: number, output: Output): Promise<void> {
  const { thread_id, active_at, title, queued, unread } = thread;
  const state = stateOf(thread);
  const facts = [
    ...(queued > 0 ? [`${counted(queued, "message")} ${queued === 1 ? "waits" : "wait"}`] : []),
    ...(unread > 0 ? [`${unread} unread`] : []),
  ].join(", ");
  const beside = facts === "" ? "" : `  (${facts})`;
  const head = `${pad(state, STATE_COLUMNS)}  ${pad(ago(ageOf(active_at)), AGE_COLUMNS)}  ${pad(oneLine(thread_id), columns)}`;
  const room = Math.max(TITLE_COLUMNS_MIN, output.width - widthOf(head) - widthOf(beside) - 2);
  const style = state === "answering" ? "green" : state === "open" ? "bold" : "gray";
  const words = title === null ? output.style("gray", "(nothing said yet)") : cut(oneLine(title), room);
  const shown = output.style(style, pad(state, STATE_COLUMNS));
  await output.line(`${shown}${head.slice(STATE_COLUMNS)}  ${words}${output.style("yellow", beside)}`);
}

function stateOf({ state, active_turn_id }: ThreadSummaryView): string {
  return state === "open" && active_turn_id !== null ? "answering" : state;
}
