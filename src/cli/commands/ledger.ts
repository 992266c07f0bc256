import type { Plane } from "../../client/remote.js";
import { CHANNELS } from "../../domain/axes.js";
import { LIMITS } from "../../domain/limits.js";
import type { NotificationView } from "../../domain/notification.js";
import { STATES } from "../../domain/transitions.js";
import type { ListInput } from "../../tidings.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import { withReadingPlane } from "../plane.js";
import { Table } from "../show.js";
import { oneLine } from "../text.js";

const LIMIT = 50;
const PAGE = 200;

export const ledger = defineCommand({
  usage: "[options]",
  about: [
    `Newest first: the latest ${LIMIT} as a table, or, with --json, all of them, one a line. It reads beside any ` +
      "writer and holds up nobody, however long the list is.",
  ],
  options: {
    user: { kind: "text", value: "USER", summary: "only this user's" },
    thread: { kind: "text", value: "THREAD", summary: "only this thread's" },
    channel: { kind: "choice", value: "CHANNEL", choices: CHANNELS, summary: "only on this channel" },
    state: { kind: "choice", value: "STATE", choices: STATES, summary: "only in this state" },
    limit: { kind: "integer", value: "N", min: 1, summary: "at most so many", preset: `${LIMIT}; with --json all` },
    after: { kind: "text", value: "CURSOR", summary: "older than this cursor, which the table ends with" },
    "all-pages": { kind: "flag", summary: "the table without an end" },
  },
  examples: ["tidings ledger", "tidings ledger --user ada --state FAILED", "tidings ledger --json | jq -r .content"],
  async run({ values, words, settings, output }) {
    noWords(words);
    const { user, thread, channel, state, after } = values;
    const limit = values.limit ?? (output.json || values["all-pages"] ? Number.POSITIVE_INFINITY : LIMIT);
    const filter: ListInput = { user_id: user, thread_id: thread, channel, state, after };
    return withReadingPlane({ settings, output }, async (tidings) => {
      let table: Table | undefined;
      for await (const { notifications, next } of pages(tidings, filter, limit)) {
        if (output.json) {
          for (const notification of notifications) await output.value(notification);
          continue;
        }
        if (table === undefined && notifications.length > 0) {
          const users = new Set(notifications.map((one) => oneLine(one.user_id)));
          const several = user === undefined && (users.size > 1 || !users.has("local"));
          table = new Table(output, several ? [...users] : []);
          await table.header();
        }
        for (const notification of notifications) await table?.row(notification);
        if (next !== null)
          await output.line(output.style("gray", `More: the same with --after ${next}, or with --all-pages.`));
      }
      if (table === undefined && !output.json) await output.line("No notifications.");
      return EXIT.ok;
    });
  },
});

/** Pages until the limit; `next` only where the limit ended it. */
async function* pages(
  tidings: Pick<Plane, "list">,
  filter: ListInput,
  limit: number,
): AsyncGenerator<{ notifications: NotificationView[]; next: string | null }> {
  let left = limit;
  let { after } = filter;
  for (;;) {
    const page = await tidings.list({ ...filter, after, limit: Math.min(left, PAGE, LIMITS.listLimit) });
    left -= page.notifications.length;
    yield { notifications: page.notifications, next: left <= 0 ? page.next : null };
    if (page.next === null || left <= 0) return;
    after = page.next;
  }
}
