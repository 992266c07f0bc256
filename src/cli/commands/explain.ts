import type { Explanation, StoryLine } from "../../delivery/explain.js";
import { isMiss } from "../../domain/errors.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, exitCodeOfMiss } from "../exit.js";
import type { Output } from "../output.js";
import { withPlane } from "../plane.js";
import { mark, showMiss, times } from "../show.js";
import { oneLine, wrap } from "../text.js";

const WIDEST = 110;
const TIME_COLUMNS = 12;

export const explain = defineCommand({
  usage: "ID [options]",
  about: ["What matched, what was merged, who owned it when, and how it ended. Times are UTC."],
  options: { user: { kind: "text", value: "USER", summary: "as this user sees it; without it, anybody's" } },
  examples: ["tidings explain 0199f0a2-…", "tidings explain 0199f0a2-… --json"],
  async run({ values, words, settings, output }) {
    const id = oneWord(words, "ID");
    const { user } = values;
    const answer = await withPlane({ settings, output }, "read", (tidings) =>
      (user === undefined ? tidings : tidings.as(user)).explain(id),
    );
    if (output.json) await output.value(answer);
    else if (isMiss(answer)) showMiss(answer, output);
    else await showExplanation(answer, output);
    return isMiss(answer) ? exitCodeOfMiss(answer) : EXIT.ok;
  },
});

export async function showExplanation(explanation: Explanation, output: Output): Promise<void> {
  for (const line of wrap(oneLine(explanation.summary), output.columns(WIDEST)))
    await output.line(output.style("bold", line));
  for (const notification of explanation.notifications) {
    const text = [oneLine(notification.content), times(notification)].filter((part) => part !== "").join("  ");
    const [first = "", ...rest] = wrap(text, output.columns(WIDEST) - 4);
    await output.line(`  ${mark(notification.severity, output)} ${first}`);
    for (const line of rest) await output.line(`    ${line}`);
  }
  await output.line();
  await showStory(explanation.story, output, 2);
}

/** Each line with its time, each day with its date; what happened at once has its time once. */
export async function showStory(story: readonly StoryLine[], output: Output, indent: number): Promise<void> {
  const margin = " ".repeat(indent);
  const hanging = " ".repeat(indent + TIME_COLUMNS + 2);
  let day = "";
  let time = "";
  for (const { at, text } of story) {
    if (at.slice(0, 10) !== day) {
      day = at.slice(0, 10);
      time = "";
      await output.line(`${margin}${output.style("gray", day)}`);
    }
    const [first = "", ...rest] = wrap(oneLine(text), output.columns(WIDEST) - hanging.length);
    const shown = at.slice(11, 11 + TIME_COLUMNS);
    await output.line(`${margin}${output.style("gray", shown === time ? " ".repeat(TIME_COLUMNS) : shown)}  ${first}`);
    for (const line of rest) await output.line(`${hanging}${line}`);
    time = shown;
  }
}
