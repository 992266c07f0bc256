/** What speaks to the servers of sections f to i. Every server gets the same from the same code. */
import { quantile } from "../statistics.mjs";
import { HttpConnection, openWebSocket, requestOf, sharedMs } from "../wire.mjs";
import { eventOf, OF_THIS_PROCESS, userOf } from "../workload.mjs";

/**
 * Posts `warmup` events and then `events` timed ones, `perRequest` of them in one body, over `connections` that each
 * wait for their answer before the next request. `busy` is the part of the time that this process itself worked.
 */
export async function postEvents({ server, connections, warmup = 0, events, perRequest = 1 }) {
  const all = requestsOf(server, warmup + events, perRequest);
  const first = warmup / perRequest;
  const open = await Promise.all(Array.from({ length: connections }, () => HttpConnection.open(server.url)));
  await postAll(open, all.slice(0, first));
  const cpu = process.cpuUsage();
  const startedAt = sharedMs();
  await postAll(open, all.slice(first));
  const ms = sharedMs() - startedAt;
  const busy = busyPart(cpu, ms);
  for (const connection of open) connection.close();
  return { perSecond: (events * 1_000) / ms, startedAt, busy };
}

function requestsOf(server, events, perRequest) {
  const requests = [];
  for (let from = 0; from < events; from += perRequest) {
    const bodies = Array.from({ length: perRequest }, (_, index) => eventOf(from + index, 1));
    requests.push(requestOf(server, perRequest === 1 ? bodies[0] : bodies));
  }
  return requests;
}

async function postAll(connections, requests) {
  let next = 0;
  await Promise.all(
    connections.map(async (connection) => {
      while (next < requests.length) {
        const request = requests[next];
        next += 1;
        mustBeAccepted(await connection.send(request));
      }
    }),
  );
}

/** 202 for an event, 200 for a call. */
function mustBeAccepted(status) {
  if (status !== 202 && status !== 200) throw new Error(`an event was answered with ${status}`);
}

const MISSING_MS = 30_000;

/**
 * Posts `rate` events a second by the clock, whether or not the earlier ones were answered, and holds a WebSocket of
 * the same user: milliseconds from an event's turn to its frame. One that finds every connection busy waits for one,
 * and that counts. `late` is how far behind the clock the turns were. `words`: what is told has so many characters.
 */
export async function emitToFrame({ server, connections, rate, warmup, events, words = 0 }) {
  const total = warmup + events;
  const requests = Array.from({ length: total }, (_, index) =>
    words === 0 ? requestOf(server, eventWithSubject(index)) : requestOf(server, noticeOf(index, words), "/rpc"),
  );
  const begunAt = new Float64Array(total);
  const frameMs = new Float64Array(total).fill(-1);
  const lateMs = new Float64Array(total);
  const idle = await Promise.all(Array.from({ length: connections }, () => HttpConnection.open(server.url)));
  const waiting = [];
  let waitedMost = 0;

  await new Promise((resolve, reject) => {
    let framed = 0;
    let answered = 0;
    const done = () => {
      if (framed === total && answered === total) resolve();
    };
    const post = async (connection, first) => {
      for (let index = first; index !== undefined; index = waiting.shift()) {
        mustBeAccepted(await connection.send(requests[index]));
        answered += 1;
        done();
      }
      idle.push(connection);
    };
    const onText = (text) => {
      const index = indexOf(text);
      if (index === undefined || frameMs[index] >= 0) return;
      frameMs[index] = performance.now() - begunAt[index];
      framed += 1;
      done();
    };
    const begin = async () => {
      await openWebSocket(server, onText, reject);
      const started = performance.now();
      let next = 0;
      const tick = () => {
        const now = performance.now();
        for (; next < total && started + (next * 1_000) / rate <= now; next += 1) {
          begunAt[next] = performance.now();
          lateMs[next] = begunAt[next] - started - (next * 1_000) / rate;
          const connection = idle.shift();
          if (connection === undefined) waitedMost = Math.max(waitedMost, waiting.push(next));
          else post(connection, next).catch(reject);
        }
        const missing = () => reject(new Error(`of ${total} events ${answered} were answered and ${framed} seen`));
        if (next < total) setTimeout(tick, 1);
        else setTimeout(missing, MISSING_MS).unref();
      };
      tick();
    };
    begin().catch(reject);
  });
  const timed = frameMs.subarray(warmup);
  return {
    p50: quantile(timed, 0.5),
    p99: quantile(timed, 0.99),
    max: quantile(timed, 1),
    late: quantile(lateMs.subarray(warmup), 0.99),
    waitedMost,
  };
}

/** No other process has these: a client is also told what waits from before. */
const SUBJECT = `event ${OF_THIS_PROCESS} `;
const SUBJECT_IN_FRAME = `"subject":"${SUBJECT}`;
const DIGITS = 6;

function subjectOf(index) {
  return `${SUBJECT}${String(index).padStart(DIGITS, "0")}`;
}

/** What a frame has of its event is the subject, whoever sends it. */
function eventWithSubject(index) {
  return { ...eventOf(index, 1), subject: subjectOf(index) };
}

/** A call that tells the user so many characters: the words of an event are cut. */
function noticeOf(index, words) {
  const content = "words that say no more ".repeat(Math.ceil(words / 23)).slice(0, words);
  const params = { content, target: "user", user_id: userOf(0, 1), subject: subjectOf(index) };
  return {
    ...{ jsonrpc: "2.0", id: index, method: "notification/notify" },
    params: { ...params, dedupe_key: subjectOf(index) },
  };
}

function indexOf(text) {
  const at = text.indexOf(SUBJECT_IN_FRAME);
  if (at < 0) return undefined;
  const start = at + SUBJECT_IN_FRAME.length;
  return Number(text.latin1Slice(start, start + DIGITS));
}

/** How many sockets are opened at once: fewer than a server lets wait to be accepted. */
const WAVE = 100;

/**
 * Holds `clients` WebSockets of each of `servers`, which are given by name. Tells when all are connected, and for each
 * server and each of `marks` when every client has had so many frames of `bytesMin` or more: what is shorter is no push.
 */
export async function audience({ servers, clients, marks, bytesMin }, tell) {
  const ended = new Promise((_, reject) => {
    const connect = async () => {
      for (const [name, server] of Object.entries(servers)) {
        const onText = counter(clients, marks, bytesMin, (mark, busy) =>
          tell({ progress: { step: `${name} ${mark}`, at: sharedMs(), busy } }),
        );
        for (let from = 0; from < clients; from += WAVE) {
          const wave = Array.from({ length: Math.min(WAVE, clients - from) }, (_, index) =>
            openWebSocket(server, onText(from + index), reject),
          );
          await Promise.all(wave);
        }
      }
      tell({ progress: { step: "connected" } });
    };
    connect().catch(reject);
  });
  await ended;
}

/** Counts each client's frames, and calls `reached` when the last one has come to a mark. */
function counter(clients, marks, bytesMin, reached) {
  const frames = new Uint32Array(clients);
  const arrived = new Map(marks.map((mark) => [mark, 0]));
  /** When the first frame after a mark came, and what this process had worked by then. */
  let since;
  return (client) => (text) => {
    if (text.length < bytesMin) return;
    since ??= { cpu: process.cpuUsage(), at: sharedMs() };
    frames[client] += 1;
    const before = arrived.get(frames[client]);
    if (before === undefined) return;
    arrived.set(frames[client], before + 1);
    if (before + 1 < clients) return;
    reached(frames[client], busyPart(since.cpu, sharedMs() - since.at));
    since = undefined;
  };
}

function busyPart(cpu, ms) {
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / 1_000 / ms;
}
