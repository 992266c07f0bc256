/** Subscribers that batch, as files of the operator's: the same for both rigs. Their words show every row and its count. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decode } from "@toon-format/toon";

const TEMPLATE = '{{ toon({"rows": events | pick(token="payload.token", times="count")}) }}\n';
/** Longer than a life: what is the same one stays the same one. */
const DEDUPE_WINDOW_MS = 60_000;

const AGENT_TOLD = { address: "session", target: "agent", handler: "system" };
const INBOX = { address: "user", target: "user", handler: "system" };
const NARRATED = { address: "session", target: "user", handler: "agent" };

/** `strict` takes the events of `rows` too, from errors on; `bell` is for the inbox, at once. */
export const BATCHED = {
  rows: { types: ["load.rows"], window_ms: 400, max_size: 4, routing: AGENT_TOLD },
  strict: { types: ["load.rows"], window_ms: 5_000, max_size: 10, routing: AGENT_TOLD, severity_filter: "error" },
  inbox_rows: { types: ["load.inbox_rows"], window_ms: 300, max_size: 3, routing: INBOX },
  narrate_rows: { types: ["load.narrate_rows"], window_ms: 250, max_size: 3, routing: NARRATED },
  low_rows: {
    types: ["load.low_rows"],
    window_ms: 200,
    max_size: 5,
    routing: AGENT_TOLD,
    priority: "low",
    inject_at: "turn_end",
  },
  bell: { types: ["load.bell"], window_ms: 0, max_size: 10, routing: INBOX },
};

export const BATCHED_TYPES = [...new Set(Object.values(BATCHED).flatMap(({ types }) => types))];

/** What a user may switch off. */
export const SWITCHED = ["rows", "inbox_rows", "low_rows", "bell"];

/** Some of them, now and then all, now and then none. */
export function newChoice(random) {
  return SWITCHED.filter(() => random.chance(0.3));
}

export function subscribersOf(type) {
  return Object.entries(BATCHED)
    .filter(([, { types }]) => types.includes(type))
    .map(([id]) => id);
}

/** Puts them into the data folder, where whoever opens it finds them. */
export function writeSubscribers(data) {
  const folder = join(data, "subscribers");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "rows.j2"), TEMPLATE);
  for (const [id, subscriber] of Object.entries(BATCHED))
    writeFileSync(join(folder, `${id}.toml`), fileOf(id, subscriber));
}

function fileOf(id, { types, severity_filter = "debug", window_ms, max_size, priority, inject_at, routing }) {
  return `[subscriber]
id = "${id}"
name = "${id}"
description = "Load of the crash test"
version = "1"

[events]
types = ${JSON.stringify(types)}
severity_filter = "${severity_filter}"

[batching]
window_ms = ${window_ms}
max_size = ${max_size}
dedupe_window_ms = ${DEDUPE_WINDOW_MS}

[output]
priority = "${priority ?? "normal"}"
inject_at = "${inject_at ?? "next"}"
template = "rows.j2"

[routing]
address = "${routing.address}"
target = "${routing.target}"
handler = "${routing.handler}"
`;
}

/** The rows that a text shows, `[token, times]` each; undefined if it shows none. */
export function rowsIn(content) {
  try {
    const { rows } = decode(content);
    return rows.map(({ token, times }) => [token, times]);
  } catch {
    return undefined;
  }
}
