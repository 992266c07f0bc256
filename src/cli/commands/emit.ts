import { createReadStream } from "node:fs";
import type { Plane } from "../../client/remote.js";
import { InvalidInputError, TidingsError } from "../../domain/errors.js";
import type { EventInput } from "../../domain/event.js";
import { SEVERITIES } from "../../domain/severity.js";
import type { EmitAnswer, EmitOutcome } from "../../tidings.js";
import { oneWord } from "../arguments.js";
import { type Call, defineCommand } from "../command.js";
import { EXIT, type ExitCode, reportOf, UsageError } from "../exit.js";
import { type Line, linesOf } from "../ndjson.js";
import type { Output } from "../output.js";
import { withPlane } from "../plane.js";
import { stateWord } from "../show.js";
import { counted, oneLine } from "../text.js";

const DEFAULT_SOURCE = "cli";
const SLICE = 512;

const options = {
  type: { kind: "text", value: "TYPE", summary: "the type, instead of the argument" },
  source: { kind: "text", value: "SOURCE", summary: "what reports it", preset: DEFAULT_SOURCE },
  severity: { kind: "choice", value: "WORD", choices: SEVERITIES, summary: "how bad", preset: "info" },
  payload: { kind: "json", value: "JSON", summary: "the facts, as an object" },
  message: { kind: "text", value: "TEXT", summary: "short for the payload's `message`" },
  user: { kind: "text", value: "USER", summary: "whose", preset: "local" },
  thread: { kind: "text", value: "THREAD", summary: "in which conversation" },
  "dedupe-key": { kind: "text", value: "KEY", summary: "events with the same key merge for a while" },
  subject: { kind: "text", value: "SUBJECT", summary: "what it is about, for example a tool handle" },
  id: { kind: "text", value: "ID", summary: "the producer's own id: the same one again is the same event" },
  timestamp: { kind: "text", value: "TIME", summary: "when it happened, ISO 8601 with a zone" },
  file: { kind: "text", value: "FILE", summary: "many events from a file, one JSON object a line; - for stdin" },
} as const;

/** Those that make no sense as a default for many events. */
const ONE_EVENT_ONLY = ["type", "payload", "message", "dedupe-key", "subject", "id", "timestamp"] as const;

export const emit = defineCommand({
  usage: "TYPE [options] | --file FILE.ndjson | -",
  about: [
    "It answers when the event is on disk. Which subscribers match it decides who is told; an event of a type like " +
      "cli.anything goes to its user's inbox.",
    "From a file or a pipe: one event a line; --source, --severity, --user and --thread are for lines that do not " +
      "say. A line that is refused does not hold up the others, and makes the exit code 2. With --json there is one " +
      "answer a line, {line, error} for a refused one.",
  ],
  options,
  examples: [
    'tidings emit cli.build.finished --message "All 412 tests passed"',
    'tidings emit tool.call.failure --source shell --severity error --payload \'{"tool_name":"grep"}\'',
    "tidings emit --file events.ndjson --json",
    "gunzip -c events.ndjson.gz | tidings emit - --user ada",
  ],
  async run(call) {
    const { values, words } = call;
    const file = words.length === 1 && words[0] === "-" ? "-" : values.file;
    if (file !== undefined) return emitMany(call, file);
    return emitOne(call, words.length === 0 && values.type !== undefined ? values.type : oneWord(words, "TYPE"));
  },
});

async function emitOne({ values, settings, output }: Call<typeof options>, type: string): Promise<ExitCode> {
  const { message, payload } = values;
  const answer = await withPlane({ settings, output }, "write", (tidings) =>
    tidings.emit({
      type,
      source: values.source ?? DEFAULT_SOURCE,
      severity: values.severity,
      payload: message === undefined ? payload : { ...payload, message },
      user_id: values.user,
      thread_id: values.thread,
      dedupe_key: values["dedupe-key"],
      subject: values.subject,
      id: values.id,
      timestamp: values.timestamp,
    }),
  );
  if (output.json) await output.value(answer);
  else await showAnswer(answer, output);
  return EXIT.ok;
}

async function showAnswer(answer: EmitAnswer, output: Output): Promise<void> {
  const { id, outcome, matches } = answer;
  const said = outcome === "duplicate" ? "known already, nothing was added" : outcome;
  await output.line(`Event ${id}: ${said}.`);
  if (matches.length === 0)
    await output.line(
      output.style("gray", "  No subscriber matches this type: it is kept in the journal, and nobody is told."),
    );
  for (const { subscriber_id, outcome: made, notification } of matches) {
    const where = `${stateWord(notification.state, output)} on the channel ${notification.channel}`;
    await output.line(`  ${oneLine(subscriber_id)} ${made}: ${where}, ${notification.id}`);
  }
}

interface Tally {
  accepted: number;
  duplicate: number;
  unmatched: number;
  refused: number;
}

async function emitMany(call: Call<typeof options>, file: string): Promise<ExitCode> {
  const { values, words, settings, output } = call;
  const odd = ONE_EVENT_ONLY.find((name) => values[name] !== undefined);
  if (odd !== undefined) throw new UsageError(`--${odd} is for one event, not for many from a file`, `--${odd}`);
  if (words.length > (file === "-" && words[0] === "-" ? 1 : 0))
    throw new UsageError("give one event's TYPE, or a file of events, not both", "--file");
  const defaults = {
    source: values.source ?? DEFAULT_SOURCE,
    ...(values.severity === undefined ? {} : { severity: values.severity }),
    ...(values.user === undefined ? {} : { user_id: values.user }),
    ...(values.thread === undefined ? {} : { thread_id: values.thread }),
  };
  const tally: Tally = { accepted: 0, duplicate: 0, unmatched: 0, refused: 0 };
  const progress = output.progress();
  const taken = () => tally.accepted + tally.duplicate + tally.unmatched;
  const slices = slicesOf(file);
  // Kept until it is answered: another plane may have to take it.
  let slice: Line[] | undefined;
  try {
    await withPlane({ settings, output }, "write", async (tidings) => {
      for (;;) {
        slice ??= (await slices.next()).value ?? undefined;
        if (slice === undefined) return;
        await emitSlice(tidings, slice, defaults, tally, output);
        slice = undefined;
        progress.show(`${counted(taken(), "event")} taken in, ${tally.refused} refused`);
      }
    });
  } catch (error) {
    if (error instanceof TidingsError && taken() > 0)
      output.remark(`tidings: ${counted(taken(), "event")} had been answered, and are stored, before this happened`);
    throw error;
  } finally {
    progress.end();
  }
  if (!output.json) await output.line(tallyText(tally));
  return tally.refused === 0 ? EXIT.ok : EXIT.usage;
}

function tallyText({ accepted, duplicate, unmatched, refused }: Tally): string {
  const parts = [`${accepted} accepted`];
  if (unmatched > 0) parts.push(`${unmatched} that no subscriber matches`);
  if (duplicate > 0) parts.push(`${duplicate} known already`);
  if (refused > 0) parts.push(`${refused} refused`);
  return `${counted(accepted + duplicate + unmatched + refused, "event")}: ${parts.join(", ")}.`;
}

async function emitSlice(
  tidings: Plane,
  lines: readonly Line[],
  defaults: Partial<EventInput>,
  tally: Tally,
  output: Output,
): Promise<void> {
  const read = lines.map((line) => ({ line, event: eventOf(line, defaults) }));
  const good = read.flatMap(({ event }) => (event instanceof Error ? [] : [event]));
  const outcomes = (await tidings.emitMany(good)).values();
  for (const { line, event } of read) {
    const outcome: EmitOutcome = event instanceof Error ? { error: event } : (outcomes.next().value as EmitOutcome);
    if (!("error" in outcome)) {
      tally[outcome.outcome] += 1;
      if (output.json) await output.value(outcome);
      continue;
    }
    tally.refused += 1;
    const error = reportOf(outcome.error);
    if (output.json) await output.value({ line: line.number, error });
    else output.remark(`line ${line.number}: ${oneLine(error.message)}`);
  }
}

/** The border checks the rest; what is not even an object is told here. */
function eventOf(line: Line, defaults: Partial<EventInput>): EventInput | InvalidInputError {
  if ("problem" in line) return new InvalidInputError("", line.problem);
  let value: unknown;
  try {
    value = JSON.parse(line.text);
  } catch (error) {
    return new InvalidInputError("", `is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return new InvalidInputError("", "must be a JSON object, one event a line");
  return { ...defaults, ...value } as EventInput;
}

async function* slicesOf(file: string): AsyncGenerator<Line[], undefined> {
  for await (const lines of linesOf(chunksOf(file)))
    for (let start = 0; start < lines.length; start += SLICE) yield lines.slice(start, start + SLICE);
}

async function* chunksOf(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* file === "-" ? process.stdin : createReadStream(file);
  } catch (error) {
    if (error instanceof Error && "syscall" in error)
      throw new UsageError(`--file: cannot read ${JSON.stringify(file)}: ${error.message}`, "--file");
    throw error;
  }
}
