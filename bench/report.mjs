/** From what was measured to the tables that are printed and kept in docs/BENCHMARKS.md. */
import { readFileSync, writeFileSync } from "node:fs";
import { agentRatios, agentRows } from "./agent_report.mjs";
import { pipelineRatios, pipelineRows } from "./pipeline_report.mjs";
import { mebibytes, micros, millis, pairedRatio, perSecond, range } from "./rows.mjs";
import { serverRatios, serverRows } from "./server_report.mjs";
import { median } from "./statistics.mjs";
import { stoppedRatios, stoppedRows } from "./stopped_report.mjs";
import { webRatios, webRows } from "./web_report.mjs";

const EMIT_TO_RAW_MIN = 0.5;
const CYCLE_TO_PLAINJOB_MIN = 2;
const LARGE_TO_SMALL_MAX = 1.5;

const THROUGHPUT_NAMES = {
  "raw 1": "(a) raw inserts of the same rows, 64 a commit, 16 a statement, 1 user",
  "raw 100": "(a) the same, 100 users",
  "raw single 1": "(a) raw inserts of the same rows, 64 a commit, one a statement, 1 user",
  "raw single 100": "(a) the same, 100 users",
  "emit 1": "(b) durable `emit`, 64 callers, 1 user",
  "emit 100": "(b) the same, 100 users",
  "cycle 1": "(c) full cycle, `emit` and `ack`, 64 callers, 1 user",
  "cycle 100": "(c) the same, 100 users",
  "plainjob loop": "(c) plainjob, bare loop, not flushed (its setting)",
  "plainjob worker": "(c) plainjob, its own worker, not flushed",
  "plainjob flushed": "(c) plainjob, bare loop, flushed as we do",
  "pg-boss callers": "(c) pg-boss on PostgreSQL, 64 callers",
  "pg-boss batches": "(c) pg-boss on PostgreSQL, batches of 64",
};

const OPERATION_NAMES = {
  list10: "`list`, newest 10 of a user, per notification",
  list100: "`list`, newest 100 of a user, per notification",
  unread100: "`list`, newest 100 that a user has not read, per notification",
  count: "`counts` of a user, the first time",
  countAgain: "`counts` of a user, from then on",
  emit: "`emit`",
  ackRecent: "`ack` of recent ones",
  ackOld: "`ack` of random old ones",
  ackOldCheckpointed: "`ack` of random old ones, with the checkpoint after them",
};
/**
 * For the record: the checkpoint comes after every 640 operations here, and after some 10,000 in use; and a user of the
 * large store has 10,000 to count, up to the cap, one of the small store 10.
 */
const WITHOUT_BAR = new Set(["ackOldCheckpointed", "count", "countAgain"]);

function measuredRows(results) {
  const { throughput, comparison, opening, history, sizes } = results;
  const rows = [];
  if (throughput !== undefined) {
    const flush = (kind) => `${median(throughput.fdatasync.map((one) => one[kind].median)).toFixed(2)} ms`;
    const worst = (kind) => `95%: ${median(throughput.fdatasync.map((one) => one[kind].p95)).toFixed(2)} ms`;
    rows.push(["80 KiB written and flushed, over blocks that the file has", flush("inPlace"), worst("inPlace")]);
    rows.push(["80 KiB written and flushed, growing the file", flush("growing"), worst("growing")]);
    for (const [name, text] of Object.entries(THROUGHPUT_NAMES)) {
      const values = throughput[name];
      if (values !== undefined) rows.push([text, perSecond(median(values)), range(values, perSecond)]);
    }
  }
  if (history !== undefined)
    for (const [name, { seconds, bytes }] of Object.entries(history.built))
      rows.push([`(d) building ${name}`, `${seconds.toFixed(1)} s`, `${(bytes / 1e6).toFixed(0)} MB`]);
  for (const [state, runs] of Object.entries(comparison ?? {}))
    for (const [name, text] of Object.entries(OPERATION_NAMES)) {
      const of = (size) => micros(median(runs.map((run) => run[size][name])));
      rows.push([`(d) ${text}, ${state}`, of("large"), `of ${sizes.smallStore}: ${of("small")}`]);
    }
  for (const [name, runs] of Object.entries(opening ?? {})) {
    const store = name === "empty" ? "an empty store" : `${sizes.largeStore} ${name}`;
    const of = (key) => runs.map((run) => run[key]);
    rows.push([`(e) opening ${store}`, millis(median(of("openMs"))), range(of("openMs"), millis)]);
    rows.push([
      `(e) opening it again, ${sizes.memoryEmits} emits later`,
      millis(median(of("reopenMs"))),
      range(of("reopenMs"), millis),
    ]);
    const memory = (key) => mebibytes(median(of(key)));
    rows.push([
      `(e) resident with ${store} open`,
      memory("idle"),
      `before: ${memory("unopened")}, after ${sizes.memoryEmits} emits: ${memory("afterEmits")}, after 100 lists: ${memory("afterLists")}`,
    ]);
  }
  return [
    ...rows,
    ...serverRows(results),
    ...pipelineRows(results),
    ...agentRows(results),
    ...stoppedRows(results),
    ...webRows(results),
  ];
}

function ratioRows(results) {
  const { throughput, comparison, opening } = results;
  const rows = [];
  const add = (what, ratio, bar) => {
    if (bar === undefined) rows.push([what, ratio.toFixed(2), "", ""]);
    else {
      const met = bar.least === undefined ? ratio <= bar.most : ratio >= bar.least;
      const text = bar.least === undefined ? `at most ${bar.most}` : `at least ${bar.least}`;
      rows.push([what, ratio.toFixed(2), text, met ? "yes" : "**no**"]);
    }
  };
  const { "raw 1": raw } = throughput ?? {};
  for (const users of [1, 100]) {
    const emit = throughput?.[`emit ${users}`];
    if (raw === undefined || emit === undefined) continue;
    const to = (peer) => pairedRatio(emit, throughput[`${peer} ${users}`]);
    add(`(b) \`emit\` to raw, 16 a statement, ${userText(users)}`, to("raw"), { least: EMIT_TO_RAW_MIN });
    add(`(b) \`emit\` to raw, one a statement, ${userText(users)}`, to("raw single"), { least: EMIT_TO_RAW_MIN });
  }
  const cycle = throughput?.["cycle 1"];
  if (cycle !== undefined) {
    const to = (peer) => pairedRatio(cycle, throughput[peer]);
    add("(c) cycle, 1 user, to plainjob's bare loop", to("plainjob loop"), { least: CYCLE_TO_PLAINJOB_MIN });
    add(
      "(c) cycle, 100 users, to plainjob's bare loop",
      pairedRatio(throughput["cycle 100"], throughput["plainjob loop"]),
    );
    add("(c) cycle, 1 user, to plainjob's worker", to("plainjob worker"), { least: CYCLE_TO_PLAINJOB_MIN });
    add("(c) cycle, 1 user, to plainjob's bare loop, flushed", to("plainjob flushed"));
    add("(c) cycle, 1 user, to pg-boss with 64 callers", to("pg-boss callers"));
    add("(c) cycle, 1 user, to pg-boss in batches of 64", to("pg-boss batches"));
  }
  for (const [state, runs] of Object.entries(comparison ?? {}))
    for (const [name, text] of Object.entries(OPERATION_NAMES)) {
      const of = (size) => runs.map((run) => run[size][name]);
      const bar = WITHOUT_BAR.has(name) ? undefined : { most: LARGE_TO_SMALL_MAX };
      add(`(d) ${text}: large to small, ${state}`, pairedRatio(of("large"), of("small")), bar);
    }
  for (const state of ["settled", "live"]) {
    if (opening === undefined) continue;
    const of = (name, key) => opening[name].map((run) => run[key]);
    add(
      `(e) resident with the large store open to an empty one, ${state}`,
      pairedRatio(of(state, "idle"), of("empty", "idle")),
    );
  }
  serverRatios(results, add);
  pipelineRatios(results, add);
  agentRatios(results, add);
  stoppedRatios(results, add);
  webRatios(results, add);
  return rows;
}

/** Both tables as Markdown, which reads well enough on a terminal. */
export function report(results) {
  const { machine, runs, quick } = results;
  const facts = [
    `${machine.date}; ${machine.cpu}; ${machine.memory}; ${machine.system}.`,
    `${machine.software}. Load average at the start: ${machine.load}. Median of ${runs} interleaved ${runs === 1 ? "run" : "runs"}.`,
  ];
  if (quick) facts.push("**A quick run: it shows that the benchmark works; the numbers mean nothing.**");
  return [
    ...facts,
    "",
    ...table(["measured", "median", "spread, or beside it"], measuredRows(results)),
    "",
    ...table(["ratio", "median", "bar", "met"], ratioRows(results)),
  ].join("\n");
}

const DOCS = new URL("../docs/BENCHMARKS.md", import.meta.url);
/** What a run has measured of a group is put between the markers of that group; the other groups' stay. */
const GROUPS = [
  { sections: "a to c", results: ["throughput"] },
  { sections: "d and e", results: ["history", "comparison", "opening"] },
  { sections: "f and g", results: ["http", "latency"] },
  { sections: "h", results: ["fanOut"] },
  { sections: "i", results: ["boot"] },
  { sections: "j", results: ["matching"] },
  { sections: "k", results: ["pipeline"] },
  { sections: "l", results: ["burst"] },
  { sections: "m", results: ["tokens"] },
  { sections: "n", results: ["agent"] },
  { sections: "o", results: ["stopped"] },
  { sections: "p", results: ["web"] },
];

export function writeDocs(results) {
  let page = readFileSync(DOCS, "utf8");
  for (const group of GROUPS) {
    if (group.results.every((name) => results[name] === undefined)) continue;
    const others = GROUPS.filter((other) => other !== group).flatMap((other) => other.results);
    const own = Object.fromEntries(Object.entries(results).filter(([name]) => !others.includes(name)));
    page = replaced(page, group.sections, report(own));
  }
  writeFileSync(DOCS, page);
}

function replaced(page, sections, text) {
  const opening = `<!-- results of ${sections}: written by \`npm run bench -- --write-docs\`; do not edit -->`;
  const begin = page.indexOf(opening);
  const end = page.indexOf(`<!-- end of results of ${sections} -->`);
  if (begin < 0 || end < begin)
    throw new Error(`docs/BENCHMARKS.md has lost the markers around the results of ${sections}`);
  return `${page.slice(0, begin)}${opening}\n\n${text}\n\n${page.slice(end)}`;
}

function table(head, rows) {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column].length)));
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [line(head), `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`, ...rows.map(line)];
}

function userText(users) {
  return users === 1 ? "1 user" : `${users} users`;
}
