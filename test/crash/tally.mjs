/** What was done, over all folders of a run: the proof that it happened. */

export function newTally() {
  return {
    /** Ended by SIGKILL, as planned. */
    kills: 0,
    moments: 0,
    openings: 0,
    /** Of all kills, those that came before the store was open. */
    unopened: 0,
    points: {},
    /** Ended by SIGTERM, in order. */
    terms: 0,
    folders: 0,
    answers: {},
    /** How many notifications came to each channel at first. */
    channels: {},
    events: 0,
    notifications: 0,
    /** Batches that were closed and worded. */
    closed: 0,
    /** Notifications that were folded into a summary, since too much waited. */
    folded: 0,
    audited: 0,
    auditedBeside: 0,
    backups: 0,
    /** Servers that started with the file of a dead one in the folder. */
    stale: 0,
    /** WebSocket clients, the frames that they were sent, and what of it waited for them when they came back. */
    sockets: 0,
    frames: 0,
    shownAgain: 0,
    problems: [],
  };
}

/** Answers of several lives and folders, by operation. */
export function sum(one, other) {
  const both = { ...one };
  for (const [name, number] of Object.entries(other)) both[name] = (both[name] ?? 0) + number;
  return both;
}

export function total(numbers) {
  return Object.values(numbers).reduce((all, one) => all + one, 0);
}

/** A life that met its planned end is counted; otherwise says what happened instead. */
export function countEnd(tally, end, { code, signal, stderr, overdue, opened }) {
  const name = `(${JSON.stringify(end)})`;
  const asPlanned = end.how === "term" ? code === 0 : signal === "SIGKILL";
  if (overdue) return `${name} did not meet its end in time: ${stderr}`;
  if (!asPlanned) return `${name} ended by itself: code ${code}, signal ${signal}: ${stderr}`;
  if (end.how === "term") {
    tally.terms += 1;
    return undefined;
  }
  tally.kills += 1;
  if (end.how === "point") tally.points[end.point] = (tally.points[end.point] ?? 0) + 1;
  if (end.how === "moment") tally.moments += 1;
  if (end.how === "opening") tally.openings += 1;
  if (!opened) tally.unopened += 1;
  return undefined;
}
