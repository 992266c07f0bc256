import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { EMPTY_CONFIG, parseConfig } from "../../config/config.js";
import { type NewEvent, parseEvent } from "../../domain/event.js";
import { type PreviewedOutcome, preview } from "../../intake/preview.js";
import { subscriberOf } from "../../intake/subscriber.js";
import { type LoadedSubscriber, loadFolder } from "../../intake/subscribers/load.js";
import { problemLine } from "../../intake/subscribers/set.js";
import { muting } from "../../intake/switches.js";
import { toonProblem } from "../../intake/template/toon.js";
import { systemClock } from "../../platform/clock.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, UsageError } from "../exit.js";
import { counted } from "../text.js";

export const subscribersTest = defineCommand({
  usage: "FILE --event FILE [options]",
  about: [
    "Nothing is stored, and no server is needed. The event's file holds one event as JSON, or an array of them, which are " +
      "taken to come one right after the other; - reads standard input. They are merged and batched as the file says, " +
      "and become one notification or several.",
    "With --json: {subscriber_id, enabled, priority, inject_at, outcomes, notifications: [{channel, rows: [{key, count}], " +
      "content, degraded, toon_problem}]}. " +
      "What is told is TOON: `toon_problem` says why a text is not, which is then told as it is.",
  ],
  options: {
    event: { kind: "text", value: "FILE", summary: "the event, or several; - for standard input" },
    config: { kind: "text", value: "FILE", summary: "a tidings.toml whose switches hold" },
  },
  examples: ["tidings subscribers test my_tool.toml --event event.json"],
  async run({ values, words, output }) {
    const subscriber = await loaded(resolve(oneWord(words, "FILE")));
    const events = eventsOf(values.event);
    const config =
      values.config === undefined ? EMPTY_CONFIG : parseConfig(textOf(values.config, "--config"), values.config);
    const { id, core, enabled, priority, inject_at } = subscriber;
    const muted = (event: NewEvent) => muting(config, { event, subscriber: { id, core }, priority, disabled: [] });
    const previewed = preview(subscriberOf(subscriber), events, muted, systemClock.wall());
    const outcomes = previewed.outcomes.map(outcomeLine);
    const notifications = previewed.notifications.map(({ error: _, ...one }) => ({
      ...one,
      toon_problem: toonProblem(one.content),
    }));
    if (output.json) {
      await output.value({ subscriber_id: id, enabled, priority, inject_at, outcomes, notifications });
      return EXIT.ok;
    }
    if (!enabled) await output.line("enabled = false: as it is, the file takes no events; if it were on:");
    for (const [index, outcome] of outcomes.entries()) await output.line(`event ${index + 1}: ${outcome}`);
    await output.line(`${counted(notifications.length, "notification")}, priority ${priority}, told at: ${inject_at}`);
    for (const { channel, content, degraded, toon_problem } of notifications) {
      await output.line();
      await output.line(output.style("gray", `on the channel ${channel}${degraded === null ? "" : ", degraded"}:`));
      if (degraded !== null) output.remark(`degraded: ${degraded}`);
      if (toon_problem !== null) output.remark(`this is not TOON, and is told as it is: ${toon_problem}`);
      await output.line(content);
    }
    return EXIT.ok;
  },
});

function outcomeLine({ outcome, reason }: PreviewedOutcome): string {
  return reason === null ? outcome : `${outcome.replace("_", " ")}: ${reason}`;
}

async function loaded(file: string): Promise<LoadedSubscriber> {
  const folder = await loadFolder(dirname(file));
  const found = folder.loaded.find((subscriber) => resolve(subscriber.file) === file);
  if (found !== undefined) return found;
  const problems = folder.broken.filter((one) => resolve(one.subscriber_file) === file);
  const why =
    problems.length === 0
      ? `no subscriber file ${basename(file)} in ${dirname(file)}`
      : problems.map((problem) => problemLine({ ...problem, instead: null })).join("; ");
  throw new UsageError(why, "FILE");
}

function eventsOf(file: string | undefined): NewEvent[] {
  if (file === undefined)
    throw new UsageError("--event is missing: the file of an event, or - for standard input", "--event");
  let content: unknown;
  try {
    content = JSON.parse(textOf(file === "-" ? 0 : file, "--event"));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`--event: ${error.message}`, "--event");
  }
  return (Array.isArray(content) ? content : [content]).map((one) => parseEvent(one));
}

function textOf(file: string | 0, option: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`${option}: ${error instanceof Error ? error.message : String(error)}`, option);
  }
}
