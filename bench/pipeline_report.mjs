/** The rows of sections j to m. */
import { fine, micros, pairedRatio, percent, perSecond, range } from "./rows.mjs";
import { median } from "./statistics.mjs";

const MANY_TO_FEW_MAX = 2;
const PIPELINE_TO_WRITE_MAX = 1;
const QUIET_MS_MAX = 100;
const SAVED_MIN = 0.4;

const PIPELINE_NAMES = {
  write: "(k) the journal write alone: an event that nobody takes",
  match: "(k) match, and the key of dedup",
  render: "(k) render, batches of 10",
  whole: "(k) all of it: journal write, match, dedup, batch, render",
  emit: "(k) durable `emit` of the same, parsed and answered",
  "raw entries": "(k) raw inserts of the entries that nobody takes",
  "raw batches": "(k) raw inserts of all rows of the batches",
};

const RATE_NAMES = {
  "emit many": "(k) through all of it by `emitMany`, 64 in flight",
  plainjob: "(k) plainjob's `add`, not flushed (its setting)",
  "plainjob flushed": "(k) plainjob's `add`, flushed as we do",
};

export function pipelineRows({ matching, pipeline, burst, tokens, sizes }) {
  return [
    ...(matching === undefined ? [] : matchingRows(matching, sizes.matching)),
    ...(pipeline === undefined ? [] : costRows(pipeline)),
    ...(burst === undefined ? [] : burstRows(burst, sizes.burst)),
    ...(tokens === undefined ? [] : tokenRows(tokens)),
  ];
}

function matchingRows(matching, sizes) {
  return ["few", "many"].map((name) => {
    const values = matching.map((run) => run[name]);
    const text = `(j) CPU to match an event among ${sizes[name].toLocaleString("en-US")} subscribers, 4 of which take it`;
    return [text, shortMicros(median(values)), range(values, shortMicros)];
  });
}

function costRows(pipeline) {
  const cost = ([name, text]) => {
    const values = pipeline[name].map((run) => run.micros / 1_000);
    return [`${text}: CPU an event`, micros(median(values)), range(values, micros)];
  };
  const rate = ([name, text]) => {
    const values = pipeline[name].map((run) => run.perSecond);
    const cpu = micros(median(pipeline[name].map((run) => run.micros / 1_000)));
    return [text, perSecond(median(values)), `${range(values, perSecond)}; ${cpu} of CPU each`];
  };
  const rest = decidedAndKept(pipeline).map((value) => value / 1_000);
  return [
    ...Object.entries(PIPELINE_NAMES).map(cost),
    ["(k) dedup and batch: what is left of all of it: CPU an event", micros(median(rest)), range(rest, micros)],
    ...Object.entries(RATE_NAMES).map(rate),
  ];
}

/** Deciding where an event belongs, and writing it there: what was not measured by itself. */
function decidedAndKept({ whole, write, match, render }) {
  return whole.map((run, index) => run.micros - write[index].micros - match[index].micros - render[index].micros);
}

/** If deciding were free, and the rows of batches were written by nothing but SQLite. */
function floorOf({ match, render, "raw entries": entries, "raw batches": batches }) {
  return match.map((run, index) => run.micros + render[index].micros + batches[index].micros - entries[index].micros);
}

function burstRows(burst, { events }) {
  const all = events.toLocaleString("en-US");
  const seconds = burst.map((run) => run.ms / 1_000);
  const delay = (name, text) => {
    const medians = burst.map((run) => median(run[name]));
    const worst = Math.max(...burst.flatMap((run) => run[name]));
    const count = burst.reduce((sum, run) => sum + run[name].length, 0);
    return [text, fine(median(medians)), `worst of ${count}: ${fine(worst)}`];
  };
  const memory = (name) => median(burst.map((run) => run.memory[name]));
  const mib = (name) => `${memory(name).toFixed(0)} MiB`;
  const [{ account }] = burst;
  const { waiting, folded, merged, filtered, notifications } = account;
  const number = (value) => value.toLocaleString("en-US");
  return [
    [
      `(l) a burst of ${all} events over HTTP`,
      `${median(seconds).toFixed(1)} s`,
      range(seconds, (value) => `${value.toFixed(1)} s`),
    ],
    delay("during", "(l) the quiet source meanwhile, emit to WebSocket frame, half within"),
    delay("calm", "(l) the quiet source before it, half within"),
    [
      "(l) resident memory of the server, at its highest",
      mib("most"),
      `before: ${mib("before")}, first half: ${mib("firstHalf")}, second half: ${mib("secondHalf")}, after: ${mib("after")}`,
    ],
    [
      `(l) where the ${all} are, the sum`,
      number(waiting + folded + merged + filtered),
      `rows that wait ${number(waiting)} + rows that were folded ${number(folded)} + counted to a row ${number(merged)} + below the filter ${number(filtered)}; ${number(notifications.waiting)} notifications wait, ${number(notifications.folded)} are folded into a summary`,
    ],
  ];
}

function tokenRows(tokens) {
  const row = ({ id, rows, toon, compact, indented }) => [
    `(m) \`${id}\`, ${rows === 1 ? "1 row" : `${rows} rows`}`,
    `${toon} tokens`,
    `JSON: compact ${compact}, indented ${indented}; saved ${percent(1 - toon / compact)} and ${percent(1 - toon / indented)}`,
  ];
  return tokens.map(row);
}

/** Calls `add(what, ratio, bar?)` for each ratio. */
export function pipelineRatios({ matching, pipeline, burst, tokens, sizes }, add) {
  if (matching !== undefined) {
    const of = (name) => matching.map((run) => run[name]);
    const text = `(j) ${sizes.matching.many.toLocaleString("en-US")} subscribers to ${sizes.matching.few}`;
    add(text, pairedRatio(of("many"), of("few")), { most: MANY_TO_FEW_MAX });
  }
  if (pipeline !== undefined) {
    const write = pipeline.write.map((run) => run.micros);
    const ratio = (values) => pairedRatio(values, write);
    add(
      "(k) match, dedup, batch and render, to the journal write",
      ratio(pipeline.whole.map((run, index) => run.micros - write[index])),
      { most: PIPELINE_TO_WRITE_MAX },
    );
    add("(k) of that: match", ratio(pipeline.match.map((run) => run.micros)));
    add("(k) of that: render", ratio(pipeline.render.map((run) => run.micros)));
    add("(k) of that: dedup and batch, with their rows in the store", ratio(decidedAndKept(pipeline)));
    add("(k) match, render, and raw inserts of the further rows: what nothing can be below", ratio(floorOf(pipeline)));
    const rate = (name) => pipeline[name].map((run) => run.perSecond);
    add("(k) through all of it, to plainjob's `add`", pairedRatio(rate("emit many"), rate("plainjob")));
    add(
      "(k) through all of it, to plainjob's `add`, flushed",
      pairedRatio(rate("emit many"), rate("plainjob flushed")),
    );
  }
  if (burst !== undefined) {
    const of = (name) => burst.map((run) => median(run[name]));
    add("(l) milliseconds to half of the quiet source's frames", median(of("during")), { most: QUIET_MS_MAX });
    add("(l) the same, to those before the burst", pairedRatio(of("during"), of("calm")));
    const memory = (name) => burst.map((run) => run.memory[name]);
    add("(l) highest memory of the second half to the first", pairedRatio(memory("secondHalf"), memory("firstHalf")));
  }
  if (tokens !== undefined) tokenRatios(tokens, add);
}

function tokenRatios(tokens, add) {
  for (const rows of [...new Set(tokens.map((one) => one.rows))]) {
    const those = tokens.filter((one) => one.rows === rows);
    const sum = (name) => those.reduce((all, one) => all + one[name], 0);
    const text = `(m) saved over all with ${rows === 1 ? "1 row, which is no batch" : `${rows} rows`}, against`;
    add(`${text} indented JSON`, 1 - sum("toon") / sum("indented"), rows === 1 ? undefined : { least: SAVED_MIN });
    add(`${text} compact JSON`, 1 - sum("toon") / sum("compact"));
  }
  // A sum can hide one that falls short.
  const saved = tokens.filter((one) => one.rows > 1).map(({ toon, indented }) => 1 - toon / indented);
  add("(m) the batch that saves least, against indented JSON", Math.min(...saved), { least: SAVED_MIN });
}

function shortMicros(ms) {
  return `${(ms * 1_000).toFixed(2)} µs`;
}
