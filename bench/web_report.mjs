/** The rows of section p. */
import { millis, pairedRatio, range } from "./rows.mjs";
import { median } from "./statistics.mjs";

const FRAMES_MIN = 55;
const KILOBYTES_MAX = 250;
const USABLE_MS_MAX = 1_000;

export function webRows({ web }) {
  if (web === undefined) return [];
  const of = (runs, key) => runs.map((run) => run[key]);
  const frames = (value) => value.toFixed(1);
  const loads = (key) => of(web.loads, key);
  return [
    ["(p) first load: usable after", millis(median(loads("ms"))), range(loads("ms"), millis)],
    [
      "(p) frames a second of an empty page meanwhile, the machine's own limit",
      frames(median(of(web.empty, "perSecond"))),
      `${range(of(web.empty, "perSecond"), frames)}; longest ${millis(median(of(web.empty, "worstMs")))}`,
    ],
    ...Object.keys(web.still).flatMap((view) =>
      [
        ["still", web.still[view]],
        [`while ${median(of(web.arriving[view], "sent"))} notifications arrive`, web.arriving[view]],
      ].map(([how, runs]) => [
        `(p) frames a second in the ${view}, ${how}`,
        frames(median(of(runs, "perSecond"))),
        `${range(of(runs, "perSecond"), frames)}; longest ${millis(median(of(runs, "worstMs")))}`,
      ]),
    ),
    ...largeRows(web.large),
  ];
}

function largeRows({ rows, endMs, reading, dragged, arriving, most, bytes, bytesAtFirst }) {
  const name = `(p) a ledger of ${rows.toLocaleString("en")}`;
  const megabytes = (value) => `${(value / 1e6).toFixed(0)} MB`;
  const drawn = ({ perSecond, worstMs }) => [perSecond.toFixed(1), `longest ${millis(worstMs)}; once`];
  return [
    [`${name}: to its end by the End key`, `${(endMs / 1_000).toFixed(1)} s`, "all of it is read; once"],
    [`${name}: frames a second meanwhile`, ...drawn(reading)],
    [`${name}: frames a second while its scroll bar is dragged through it`, ...drawn(dragged)],
    [`${name}: frames a second while more arrive`, ...drawn(arriving)],
    [`${name}: what the page's script holds`, megabytes(bytes), `${megabytes(bytesAtFirst)} with its first page`],
    [`${name}: rows on the page at once`, String(most), ""],
  ];
}

/** Calls `add(what, ratio, bar?)` for each ratio. */
export function webRatios({ web }, add) {
  if (web === undefined) return;
  add("(p) kilobytes of compressed script at first load", median(web.loads.map((run) => run.kilobytes)), {
    most: KILOBYTES_MAX,
  });
  add("(p) milliseconds until it is usable", median(web.loads.map((run) => run.ms)), { most: USABLE_MS_MAX });
  for (const [view, runs] of Object.entries(web.arriving)) {
    const of = (list) => list.map((run) => run.perSecond);
    add(`(p) frames a second in the ${view}, while notifications arrive`, median(of(runs)), { least: FRAMES_MIN });
    add(`(p) the same, to those of the view when nothing arrives`, pairedRatio(of(runs), of(web.still[view])));
    add(`(p) the same, to those of an empty page`, pairedRatio(of(runs), of(web.empty)));
  }
}
