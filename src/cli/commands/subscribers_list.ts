import { LOCAL_USER } from "../../domain/ids.js";
import type { SubscriberState, SubscriberView } from "../../intake/listing.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import type { Output, Style } from "../output.js";
import { ownUser, withPlane } from "../plane.js";
import { counted, oneLine, pad, widthOf } from "../text.js";

export const subscribersList = defineCommand({
  usage: "[--user USER] [options]",
  about: [
    "The built-in ones, those of your folder, and what is wrong with their files. With --json: {subscribers, problems, " +
      "without_effect}; the last are switches that are off and concern a core subscriber, which stays on, or nothing that " +
      "a subscriber takes. " +
      "docs/SUBSCRIBERS.md describes them.",
  ],
  terms: {
    heading: "States",
    rows: [
      ["active", "it takes events, and the user is told"],
      ["disabled", "the user has switched it off; `tidings subscribers enable ID` switches it on again"],
      ["loaded", "its file has enabled = false: it takes no events"],
      ["broken", "its file is; the last good version, or the built-in one, is in effect where there is one"],
    ],
  },
  options: {
    user: {
      kind: "text",
      value: "USER",
      summary: "for whom",
      preset: `the token's user with --server, else ${LOCAL_USER}`,
    },
  },
  examples: ["tidings subscribers list", "tidings subscribers list --user ada --json"],
  async run({ values, words, settings, output }) {
    noWords(words);
    const list = await withPlane({ settings, output }, "read", async (plane) =>
      plane.subscribers(values.user ?? (await ownUser(plane))),
    );
    if (output.json) {
      await output.value(list);
      return EXIT.ok;
    }
    const columns = Math.max(...list.subscribers.map(({ id }) => widthOf(oneLine(id))));
    for (const subscriber of list.subscribers) await show(subscriber, columns, output);
    for (const { text } of list.problems) await output.line(`${output.style("red", "✖")} ${oneLine(text)}`);
    const problems = list.problems.length === 0 ? "" : `; ${counted(list.problems.length, "problem")}`;
    await output.line(output.style("gray", `${counted(list.subscribers.length, "subscriber")}${problems}.`));
    return EXIT.ok;
  },
});

const STYLES: Record<SubscriberState, Style> = { active: "green", disabled: "yellow", loaded: "gray", broken: "red" };
const STATE_COLUMNS = 8;

async function show(subscriber: SubscriberView, columns: number, output: Output): Promise<void> {
  const { id, state, name, core, built_in, types } = subscriber;
  const marks = [core === true ? "core" : "", built_in ? "built in" : ""].filter((mark) => mark !== "");
  const words = [oneLine(name ?? ""), (types ?? []).join(", "), marks.length === 0 ? "" : `(${marks.join(", ")})`];
  const about = words.filter((word) => word !== "").join("  ");
  await output.line(
    `${output.style(STYLES[state], pad(state, STATE_COLUMNS))}  ${output.style("bold", pad(oneLine(id), columns))}  ${about}`,
  );
}
