/** The rows of section o. */
import { fine, mebibytes, pairedRatio, range } from "./rows.mjs";
import { median } from "./statistics.mjs";

const KIB = 1_024;
/** What may wait for one client, in bytes. */
const WAITING_MAX = 1_048_576;

export function stoppedRows({ stopped, sizes }) {
  if (stopped === undefined) return [];
  const { clients, rate, words } = sizes.stopped;
  const times = (which) => {
    const of = (key) => stopped.map((run) => run[which][key]);
    const worst = `99% within ${fine(median(of("p99")))}, ${range(of("p99"), fine)}`;
    return [fine(median(of("p50"))), `${range(of("p50"), fine)}; ${worst}`];
  };
  const rounds = roundsOf(stopped);
  const grown = rounds.map((round) => round.grown / KIB);
  const waiting = rounds.map((round) => round.waiting / KIB);
  const kibibytes = (value) => `${value.toFixed(0)} KiB`;
  const { seen } = rounds[0].reader;
  const connections = rounds.map(({ reader }) => reader.connections);
  const told = `over ${range(connections, String)} connections`;
  return [
    [
      `(o) emit to frame, ${clients} clients, ${rate} notifications of ${words} characters a second, all of them read`,
      ...times("without"),
    ],
    ["(o) the same, one of them does not", ...times("with")],
    ["(o) the most that waited for it in the server", kibibytes(median(waiting)), range(waiting, kibibytes)],
    ["(o) what the server's memory grew meanwhile", mebibytes(median(grown)), range(grown, mebibytes)],
    ["(o) rounds in which it was closed with its cursor", `${closedIn(rounds)} of ${rounds.length}`, ""],
    ["(o) what it had been told in the end, each once", `${seen} of ${seen}`, told],
  ];
}

function roundsOf(stopped) {
  return stopped.flatMap((run) => run.stopped);
}

function closedIn(rounds) {
  return rounds.filter(({ closed }) => closed).length;
}

/** Calls `add(what, ratio, bar?)` for each ratio. */
export function stoppedRatios({ stopped }, add) {
  if (stopped === undefined) return;
  for (const [key, text] of Object.entries({ p50: "in the median", p99: "for 99%" })) {
    const of = (which) => stopped.map((run) => run[which][key]);
    add(`(o) emit to frame ${text}, with one that stops reading, to without`, pairedRatio(of("with"), of("without")));
  }
  const most = Math.max(...roundsOf(stopped).map(({ waiting }) => waiting));
  add("(o) the most that waited for it in the server, to the 1 MiB that may", most / WAITING_MAX, { most: 1 });
}
