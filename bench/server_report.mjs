/** The rows of sections f to i. */
import { fine, mebibytes, micros, millis, pairedRatio, percent, perSecond, range } from "./rows.mjs";
import { median } from "./statistics.mjs";

const FAN_OUT_TO_BARE_MIN = 0.8;
const CLIENT_TO_BARE_MAX = 1.3;

const HTTP_NAMES = {
  "tidings 1": "(f) durable emits over HTTP, one a request, 64 connections",
  "fastify 1": "(f) bare Fastify, the same requests, answered and forgotten",
  "tidings 100": "(f) durable emits over HTTP, 100 a request",
  "fastify 100": "(f) bare Fastify, the same requests",
  emit: "(f) durable `emit` in process, 64 callers, as in (b)",
};

const LATENCY_NAMES = {
  tidings: "(g) emit to WebSocket frame",
  "bare ws": "(g) bare `ws`, request to frame",
};

export function serverRows({ http, latency, fanOut, boot, sizes }) {
  return [
    ...(http === undefined ? [] : httpRows(http)),
    ...(latency === undefined ? [] : latencyRows(latency, sizes.latency)),
    ...(fanOut === undefined ? [] : fanOutRows(fanOut, sizes.fanOut)),
    ...(boot === undefined ? [] : bootRows(boot, sizes)),
  ];
}

function httpRows(http) {
  return Object.entries(HTTP_NAMES).map(([name, text]) => {
    const values = http[name].map((run) => run.perSecond);
    const busy = http[name].map((run) => run.busy).filter((part) => part !== undefined);
    const generator = busy.length === 0 ? "" : `; load generator ${percent(median(busy))} busy`;
    return [text, perSecond(median(values)), `${range(values, perSecond)}${generator}`];
  });
}

function latencyRows(latency, { rate }) {
  return Object.entries(LATENCY_NAMES).flatMap(([name, text]) =>
    ["p50", "p99"].map((key) => {
      const values = latency[name].map((run) => run[key]);
      const share = key === "p50" ? "half" : "99%";
      const waited = Math.max(...latency[name].map((run) => run.waitedMost));
      const beside = waited === 0 ? "" : `; it fell behind by ${waited.toLocaleString("en-US")} events`;
      const what = `${text}, ${rate.toLocaleString("en-US")}/s, ${share} within`;
      return [what, fine(median(values)), `${range(values, fine)}${beside}`];
    }),
  );
}

function fanOutRows(fanOut, { clients }) {
  const row = (name, text) => {
    const values = fanOut[name].map((run) => run.perSecond);
    const busy = median(fanOut[name].map((run) => run.busy));
    const parts = [range(values, perSecond), `clients at most ${percent(busy)} busy`];
    const work = median(fanOut[name].map((run) => run.workMs));
    if (!Number.isNaN(work)) parts.push(`${micros(work)} of the server's own work a frame`);
    return [text, perSecond(median(values)), parts.join("; ")];
  };
  const size = `${fanOut.frameBytes} bytes`;
  return [
    row("tidings", `(h) frames of ${size} to ${clients.toLocaleString("en-US")} clients of one user`),
    row("bare ws", "(h) bare `ws` broadcast of the same"),
  ];
}

function bootRows(boot, { bootStore, idleClients }) {
  const of = (name, key) => boot[name].map((run) => run[key]);
  const ready = (name, text) => [text, millis(median(of(name, "readyMs"))), range(of(name, "readyMs"), millis)];
  const idle = (name, text) => {
    const mib = of(name, "idle").map((kib) => kib / 1_024);
    return [text, mebibytes(median(mib)), range(mib, mebibytes)];
  };
  const client = (name, text) => {
    const beside = (key, what) => `${what} ${coarse(median(of(name, key)))}, ${range(of(name, key), coarse)}`;
    const resident = [beside("resident", "resident"), beside("all", "with the young generation")].join("; ");
    return [text, kibibytes(median(of(name, "heap"))), `${range(of(name, "heap"), kibibytes)}; ${resident}`];
  };
  const store = `${bootStore.toLocaleString("en-US")} notifications`;
  return [
    ready("empty", "(i) boot to ready, empty folder"),
    ready("history", `(i) boot to ready, ${store}`),
    ready("bare node", "(i) a Node process that prints one line"),
    idle("empty", "(i) resident idle, empty folder"),
    idle("history", `(i) resident idle, ${store}`),
    idle("bare ws", "(i) resident idle, bare `ws`"),
    client("empty", `(i) for each of ${idleClients.toLocaleString("en-US")} idle clients, nothing waits for them`),
    client("history", `(i) for each, after ${Math.min(100, bootStore / 100)} items at connect`),
    client("bare ws", "(i) for each, bare `ws`"),
  ];
}

/** Calls `add(what, ratio, bar?)` for each ratio. */
export function serverRatios({ http, latency, fanOut, boot }, add) {
  if (http !== undefined) {
    const of = (name) => http[name].map((run) => run.perSecond);
    add("(f) one a request, to bare Fastify", pairedRatio(of("tidings 1"), of("fastify 1")));
    add("(f) one a request, to `emit` in process", pairedRatio(of("tidings 1"), of("emit")));
    add("(f) 100 a request, to bare Fastify", pairedRatio(of("tidings 100"), of("fastify 100")));
    add("(f) 100 a request, to `emit` in process", pairedRatio(of("tidings 100"), of("emit")));
  }
  if (latency !== undefined)
    for (const [key, text] of [
      ["p50", "half of the frames"],
      ["p99", "99% of the frames"],
    ]) {
      const of = (name) => latency[name].map((run) => run[key]);
      add(`(g) time to ${text}, to bare \`ws\``, pairedRatio(of("tidings"), of("bare ws")));
    }
  if (fanOut !== undefined) {
    const of = (name) => fanOut[name].map((run) => run.perSecond);
    add("(h) fan-out to bare `ws` broadcast", pairedRatio(of("tidings"), of("bare ws")), {
      least: FAN_OUT_TO_BARE_MIN,
    });
    const work = (name) => fanOut[name].map((run) => run.workMs);
    const ratio = pairedRatio(work("tidings"), work("bare ws"));
    if (!Number.isNaN(ratio)) add("(h) the server's own work a frame, to bare `ws`", ratio);
  }
  if (boot !== undefined) {
    const of = (name, key) => boot[name].map((run) => run[key]);
    add("(i) boot to a bare Node process", pairedRatio(of("empty", "readyMs"), of("bare node", "readyMs")));
    const client = (key) => pairedRatio(of("empty", key), of("bare ws", key));
    add("(i) an idle client to one of bare `ws`", client("heap"), { most: CLIENT_TO_BARE_MAX });
    add("(i) the same, resident without the young generation", client("resident"));
    add("(i) the same, resident with it", client("all"));
  }
}

function kibibytes(value) {
  return `${value.toFixed(2)} KiB`;
}

function coarse(value) {
  return `${value.toFixed(1)} KiB`;
}
