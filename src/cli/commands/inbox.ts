import type { Plane } from "../../client/remote.js";
import { isSystemChannel } from "../../domain/axes.js";
import { LOCAL_USER } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import type { NotificationView } from "../../domain/notification.js";
import type { ListAnswer, ListInput } from "../../tidings.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import { ownUser, withPlane } from "../plane.js";
import { PROGRAM } from "../program.js";
import { firstRedrivable, redrivenOf } from "../redriven.js";
import { flag } from "../settings.js";
import { showCard } from "../show.js";
import { counted, oneLine } from "../text.js";

const LIMIT = 100;

export const inbox = defineCommand({
  usage: "[--user USER] [--all] [options]",
  about: [
    "What the system shows to the user itself, newest first: the inbox, and the floor of their conversations. An item " +
      "is unread until it is clicked or dismissed. With --json: {notifications, next}; `next` goes into --after.",
  ],
  options: {
    user: {
      kind: "text",
      value: "USER",
      summary: "whose",
      preset: `the token's user with --server, else ${LOCAL_USER}`,
    },
    all: { kind: "flag", summary: "everything that was ever shown, also what was read" },
    limit: {
      kind: "integer",
      value: "N",
      min: 1,
      max: LIMITS.listLimit,
      summary: "at most so many",
      preset: String(LIMIT),
    },
    after: { kind: "text", value: "CURSOR", summary: "the page after this cursor" },
  },
  examples: ["tidings inbox", "tidings inbox --user ada --all --limit 20"],
  async run({ values, words, settings, output }) {
    noWords(words);
    const { all, limit = LIMIT, after } = values;
    const { user, page, redriven, unread } = await withPlane({ settings, output }, "read", async (tidings) => {
      const whose = values.user ?? (await ownUser(tidings));
      const found = await shown(tidings, { user_id: whose, ...(all ? {} : { unread: true }), after }, limit);
      return {
        user: whose,
        page: found,
        redriven: output.json ? {} : await redrivenOf(tidings, found.notifications),
        unread: await tidings.counts(whose),
      };
    });
    if (output.json) {
      await output.value(page);
      return EXIT.ok;
    }
    const name = oneLine(user);
    if (page.notifications.length === 0) {
      await output.line(all ? `Nothing was shown to ${name} yet.` : `Nothing unread for ${name}.`);
      return EXIT.ok;
    }
    const many = unread.unread >= unread.cap ? `${unread.cap} or more` : String(unread.unread);
    const heading = all
      ? `${counted(page.notifications.length, "item")} shown to ${name}`
      : `${many} unread for ${name}`;
    await output.line(output.style("bold", heading));
    await output.line();
    for (const notification of page.notifications) {
      await showCard(notification, output, redriven[notification.id]);
      await output.line();
    }
    const whose = flag("user", values.user);
    const again = `${whose}${settings.dataFlag}`;
    if (page.next !== null && page.notifications.length >= limit) {
      const asked = `${all ? " --all" : ""}${whose}${flag("limit", values.limit)}${flag("after", page.next)}`;
      await output.line(`More:             ${PROGRAM} inbox${asked}${settings.dataFlag}`);
    }
    const hint = (what: string, command: string) => output.line(output.style("gray", `${what}${PROGRAM} ${command}`));
    const open = page.notifications.filter(isOpen);
    if (open.length > 0) await hint("Done with one:    ", `ack ${onlyId(open)} --action dismissed${again}`);
    const dead = firstRedrivable(page.notifications, redriven);
    if (dead !== undefined) await hint("Send one again:   ", `dead redrive ${dead.id}${again}`);
    await hint("Why it is here:   ", `explain ${onlyId(page.notifications)}${settings.dataFlag}`);
    return EXIT.ok;
  },
});

/**
 * Both system channels as one list. A page may be shorter than asked for: each further one asks for no more than is
 * still wanted, so that its cursor fits.
 */
async function shown(tidings: Plane, filter: ListInput, limit: number): Promise<ListAnswer> {
  const notifications: NotificationView[] = [];
  let { after } = filter;
  for (;;) {
    const page = await tidings.list({ ...filter, limit: limit - notifications.length, after });
    notifications.push(...page.notifications.filter(wasShown));
    if (page.next === null || notifications.length >= limit) return { notifications, next: page.next };
    after = page.next;
  }
}

/** Whether the user can be done with it: not yet so, and no dead letter, which takes no acknowledgement. */
function isOpen({ state, read_at }: NotificationView): boolean {
  return state !== "FAILED" && read_at === null;
}

/** Of one there is no choice. */
function onlyId(notifications: readonly NotificationView[]): string {
  const [first, ...others] = notifications;
  return first === undefined || others.length > 0 ? "ID" : first.id;
}

function wasShown({ channel, state }: NotificationView): boolean {
  return isSystemChannel(channel) && state !== "SUPPRESSED";
}
