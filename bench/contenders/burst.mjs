/** Section l: one source that sends all it can, another that sends one event a second, and what became of all of it. */

import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import Database from "better-sqlite3";
import { matchesOf } from "../../dist/domain/journal.js";
import { Tidings } from "../../dist/index.js";
import { HttpConnection, openWebSocket, requestOf, sharedMs } from "../wire.mjs";
import { eventOf, failureOf } from "../workload.mjs";

const PER_REQUEST = 100;
/** Of each twenty, one is below the filter of its subscriber and one is the one before once more; the others all differ. */
const CYCLE = 20;
const FILTERED = 7;
const REPEATED = 13;

function burstEventOf(index) {
  if (index % CYCLE === FILTERED) return { ...failureOf(index), severity: "info" };
  return failureOf(index % CYCLE === REPEATED ? index - 1 : index);
}

/** Posts `events` over `connections`, 100 a request, each connection waiting for its answer. Tells how far it has come. */
export async function burst({ server, events, connections }, tell) {
  const requests = Array.from({ length: events / PER_REQUEST }, (_, request) =>
    requestOf(
      server,
      Array.from({ length: PER_REQUEST }, (_, index) => burstEventOf(request * PER_REQUEST + index)),
    ),
  );
  const open = await Promise.all(Array.from({ length: connections }, () => HttpConnection.open(server.url)));
  const startedAt = sharedMs();
  let next = 0;
  let answered = 0;
  await Promise.all(
    open.map(async (connection) => {
      while (next < requests.length) {
        const request = requests[next];
        next += 1;
        const status = await connection.send(request);
        if (status !== 202) throw new Error(`100 events were answered with ${status}`);
        answered += PER_REQUEST;
        if (answered === events / 2) tell({ progress: { halfAt: sharedMs() } });
      }
    }),
  );
  for (const connection of open) connection.close();
  return { startedAt, endedAt: sharedMs() };
}

const PERIOD_MS = 1_000;
const MISSING_MS = 60_000;
const SUBJECT = '"subject":"quiet ';

/** Posts an event a second by the clock, and tells when each was sent and when its frame came. Goes on until it is ended. */
export async function quietSource({ server }, tell) {
  const sentAt = [];
  await new Promise((_, reject) => {
    const onText = (text) => {
      const at = text.indexOf(SUBJECT);
      if (at < 0) return;
      const index = Number.parseInt(text.latin1Slice(at + SUBJECT.length), 10);
      if (sentAt[index] === undefined) return;
      tell({ progress: { at: sentAt[index], ms: sharedMs() - sentAt[index] } });
      sentAt[index] = undefined;
    };
    const begin = async () => {
      await openWebSocket(server, onText, reject);
      // One of its own for each: the next one is sent whether or not the last one was answered.
      for (let index = 0; ; index += 1) {
        const body = { ...eventOf(index, 1), source: "quiet", subject: `quiet ${index}` };
        const connection = await HttpConnection.open(server.url);
        sentAt[index] = sharedMs();
        const answered = connection.send(requestOf(server, body)).then((status) => {
          connection.close();
          if (status !== 202) throw new Error(`an event of the quiet source was answered with ${status}`);
        });
        answered.catch(reject);
        const missing = () => sentAt[index] !== undefined && reject(new Error("an event of the quiet source is lost"));
        setTimeout(missing, MISSING_MS).unref();
        await pause(PERIOD_MS);
      }
    };
    begin().catch(reject);
  });
}

/** From the journal and from the ledger, what became of each event of the burst. They must agree, and `audit` with them. */
export async function accountFor({ data, events }) {
  const tidings = await Tidings.open({ data, mode: "read" });
  const { source, user_id } = failureOf(0);
  const seen = new Set();
  const outcomes = { batched: 0, merged: 0, filtered: 0 };
  const { last_seq } = await tidings.facts();
  for await (const entry of tidings.watch({ after: 0 })) {
    if (entry.type === "event" && entry.event.source === source) {
      const matches = matchesOf(entry.changes);
      if (matches.length !== 1 || seen.has(entry.event.id))
        throw new Error(`event ${entry.event.id} is not in one place`);
      seen.add(entry.event.id);
      outcomes[matches[0].outcome] += 1;
    }
    if (entry.seq >= last_seq) break;
  }
  const { ok, problems } = await tidings.audit();
  await tidings.close();
  if (!ok) throw new Error(`audit: ${JSON.stringify(problems.slice(0, 3))}`);

  const ledger = ledgerOf(data, user_id);
  const { waiting, folded, merged, filtered } = ledger;
  mustBe("events in the journal", seen.size, events);
  mustBe("rows", waiting + folded, outcomes.batched);
  mustBe("merges", merged, outcomes.merged);
  mustBe("filtered", filtered, outcomes.filtered);
  mustBe("the sum", waiting + folded + merged + filtered, events);
  mustBe("events that the summary tells of", ledger.summarized, ledger.foldedEvents);
  return ledger;
}

function ledgerOf(data, user_id) {
  const reader = new Database(join(data, "tidings.db"), { readonly: true });
  const groups = reader
    .prepare(
      `SELECT d.state AS state, d.reason AS reason, count(*) AS notifications, sum(d.count) AS events, sum(d.rows) AS rows
       FROM deliveries d JOIN notifications n ON n.number = d.number
       WHERE d.user_id = ? AND n.subscriber_id = 'tool_failure' GROUP BY d.state, d.reason`,
    )
    .all(user_id);
  const summaries = reader.prepare("SELECT data FROM notifications WHERE subscriber_id = 'overflow'").pluck().all();
  reader.close();
  const group = (state, reason) =>
    groups.find((one) => one.state === state && one.reason === reason) ?? { notifications: 0, events: 0, rows: 0 };
  const [waiting, folded, filtered] = [
    group("PENDING", null),
    group("SUPPRESSED", "folded"),
    group("SUPPRESSED", "filtered"),
  ];
  return {
    waiting: waiting.rows,
    folded: folded.rows,
    foldedEvents: folded.events,
    merged: waiting.events - waiting.rows + (folded.events - folded.rows),
    filtered: filtered.events,
    notifications: { waiting: waiting.notifications, folded: folded.notifications },
    summarized: summaries.reduce((sum, text) => sum + JSON.parse(text).events, 0),
  };
}

function mustBe(what, value, wanted) {
  if (value !== wanted) throw new Error(`${what}: ${value}, not ${wanted}`);
}
