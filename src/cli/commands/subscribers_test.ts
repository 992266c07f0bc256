import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { type Config, EMPTY_CONFIG, parseConfig } from "../../config/config.js";
import { channelOf, effectiveAxes } from "../../domain/axes.js";
import { matchesType, type NewEvent, parseEvent } from "../../domain/event.js";
import { eventId } from "../../domain/ids.js";
import { severityAtLeast } from "../../domain/severity.js";
import { isoTime } from "../../domain/time.js";
import { derivedKey } from "../../intake/subscribers/dedupe.js";
import { type LoadedSubscriber, loadFolder } from "../../intake/subscribers/load.js";
import { problemLine } from "../../intake/subscribers/set.js";
import { muting } from "../../intake/switches.js";
import { wordsOf } from "../../intake/words.js";
import { systemClock } from "../../platform/clock.js";
import type { Row } from "../../store/contract.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, UsageError } from "../exit.js";

export const subscribersTest = defineCommand({
  name: "subscribers test",
  summary: "show what a subscriber file would make of an event",
  usage: "FILE --event FILE [options]",
  about: [
    "Nothing is stored, and no server is needed. The event's file holds one event as JSON, or an array of them, which are " +
      "then worded as a batch; - reads standard input.",
  ],
  options: {
    event: { kind: "text", value: "FILE", summary: "the event, or several; - for standard input" },
    config: { kind: "text", value: "FILE", summary: "a tidings.toml whose switches hold" },
  },
  examples: ["tidings subscribers test my_tool.toml --event event.json"],
  async run({ values, words, output }) {
    const file = resolve(oneWord(words, "FILE"));
    const subscriber = await loaded(file);
    const events = eventsOf(values.event);
    const config =
      values.config === undefined ? EMPTY_CONFIG : parseConfig(textOf(values.config, "--config"), values.config);
    const outcomeOf = (event: NewEvent) =>
      refusal(subscriber, event) ?? mutedBy(config, subscriber, event) ?? "matched";
    const matching = events.filter((event) => outcomeOf(event) === "matched");
    const now = systemClock.wall();
    const rows = rowsOf(subscriber, matching, isoTime(now));
    const { content, degraded } =
      rows.length === 0 ? { content: null, degraded: null } : wordsOf(subscriber, rows, now);
    const channel = channelOf(
      effectiveAxes(
        subscriber.axes,
        events.some((event) => event.thread_id !== null),
      ),
    );
    const { id, priority, inject_at } = subscriber;
    const outcomes = events.map(outcomeOf);
    if (output.json) {
      const keys = rows.map(({ key, count }) => ({ key, count }));
      await output.value({ subscriber_id: id, outcomes, channel, priority, inject_at, rows: keys, content, degraded });
      return EXIT.ok;
    }
    for (const [index, outcome] of outcomes.entries()) await output.line(`event ${index + 1}: ${outcome}`);
    if (content === null) return EXIT.ok;
    await output.line(`on the channel ${channel}, priority ${priority}, told at: ${inject_at}`);
    if (degraded !== null) output.remark(`degraded: ${degraded}`);
    await output.line();
    await output.line(content);
    return EXIT.ok;
  },
});

async function loaded(file: string): Promise<LoadedSubscriber> {
  const folder = await loadFolder(dirname(file));
  const found = folder.loaded.find((subscriber) => resolve(subscriber.file) === file);
  if (found !== undefined) return found;
  const problem = folder.broken.find((one) => resolve(one.subscriber_file) === file);
  const why =
    problem === undefined
      ? `no subscriber file ${basename(file)} in ${dirname(file)}`
      : problemLine({ ...problem, instead: null });
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

function mutedBy(config: Config, { id, core, priority }: LoadedSubscriber, event: NewEvent): string | undefined {
  const rule = muting(config, { event, subscriber: { id, core }, priority, disabled: [] });
  return rule === undefined ? undefined : `muted: ${rule}`;
}

/** Why the subscriber does not take it; undefined if it does. */
function refusal(subscriber: LoadedSubscriber, event: NewEvent): string | undefined {
  const { type } = event;
  const { types, sources, severity_filter } = subscriber;
  if (!types.some((pattern) => matchesType(pattern, type))) return `not matched: its type is ${type}`;
  if (sources !== null && !sources.includes(event.source)) return `not matched: its source is ${event.source}`;
  if (!severityAtLeast(event.severity, severity_filter))
    return `filtered: its severity ${event.severity} is below ${severity_filter}`;
  return undefined;
}

/** Events with one key are one row, which shows the latest. */
function rowsOf({ dedupe }: LoadedSubscriber, events: readonly NewEvent[], now: string): (Row & { key: string })[] {
  const rows = new Map<string, Row & { key: string }>();
  for (const [index, one] of events.entries()) {
    const event = { ...one, id: eventId(`event ${index + 1}`), timestamp: one.timestamp ?? now };
    const key = event.dedupe_key ?? dedupe.key?.keyOf(event) ?? derivedKey(event);
    const before = rows.get(key);
    rows.set(key, { key, event, count: (before?.count ?? 0) + 1, since: before?.since ?? event.timestamp });
  }
  return [...rows.values()];
}
