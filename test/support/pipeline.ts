/**
 * The way of an event, asked at both ends: `POST /v1/events` in; `agent/collect`, `notification/*` and the journal out.
 * Every answer is the server's own.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { decode } from "@toon-format/toon";
import type { EventInput } from "../../src/domain/event.js";
import type { Change } from "../../src/domain/journal.js";
import type { NotificationView, NotificationWithEvents } from "../../src/domain/notification.js";
import { Tidings } from "../../src/index.js";
import { eventually } from "./folder.js";
import { Server, type ServerOptions } from "./server.js";

export interface Match {
  subscriber_id: string;
  outcome: "queued" | "batched" | "merged" | "filtered" | "muted";
  notification: NotificationView;
}

export interface Emitted {
  id: string;
  seq: number;
  outcome: "accepted" | "duplicate" | "unmatched";
  matches: Match[];
}

/** A notification as a carrier has it. */
export interface Carried {
  id: string;
  revision: number;
  count: number;
  kind: string;
  severity: string;
  priority: string;
  inject_at: string;
  content: string;
  subscriber_id: string;
  must_narrate: boolean;
  degraded: string | null;
  directive: string | null;
  created_at: string;
}

export interface Carrier {
  id: string;
  thread_id: string;
  point: string;
  state: "open" | "sent" | "void";
  lease: { id: string; owner: string; expires_at: string };
  notifications: Carried[];
  more: number;
}

export type Point = "turn_start" | "user_message" | "after_tool" | "turn_end" | "immediate";

/** A server for all tests of a file; `prepare` may put subscribers into the operator's folder before it starts. */
export async function sharedServer(
  prepare: (subscribers: string, data: string) => void = () => {},
  options: ServerOptions = {},
): Promise<{ server: Server; end: () => Promise<void> }> {
  const data = mkdtempSync(join(tmpdir(), "tidings-pipeline-"));
  prepare(join(data, "subscribers"), data);
  const server = await Server.start({ ...options, data, keep: true });
  const end = async () => {
    await server.kill();
    rmSync(data, { recursive: true, force: true });
  };
  return { server, end };
}

let threads = 0;

/** The name of a thread that nobody has used before. */
export function newThread(): string {
  threads += 1;
  return `thread-${threads}`;
}

/** Seed 4's own failure, of this tool. */
export function failure(tool_name: string, more: Partial<EventInput> = {}): EventInput {
  return {
    type: "tool.call.failure",
    source: "tool_executor",
    severity: "error",
    ...more,
    payload: {
      tool_name,
      error_type: "timeout",
      error_message: "Operation timed out after 5000ms",
      retry_count: 2,
      call_id: "tc_abc123",
      ...more.payload,
    },
  };
}

/** One event, over HTTP. */
export async function emit(server: Server, event: EventInput): Promise<Emitted> {
  const { status, json, text } = await server.post<Emitted>("/v1/events", event);
  if (status !== 202) throw new Error(`the event was answered with ${status}: ${text}`);
  return json;
}

/** Several, in one request, in this order. */
export async function emitAll(server: Server, events: readonly EventInput[]): Promise<Emitted[]> {
  const { status, json, text } = await server.post<Emitted[]>("/v1/events", events);
  if (status !== 202 || json.some((one) => "error" in one))
    throw new Error(`the events were answered with ${status}: ${text}`);
  return json;
}

/** The only match of an event; fails if there is another number of them. */
export function onlyMatch({ matches }: Emitted): Match {
  const [match] = matches;
  if (match === undefined || matches.length !== 1)
    throw new Error(`there is not one match: ${JSON.stringify(matches.map(({ subscriber_id }) => subscriber_id))}`);
  return match;
}

export async function collect(
  server: Server,
  thread_id: string,
  point: Point,
  more: { owner?: string; limit?: number; wait_ms?: number; auto_settle?: boolean } = {},
): Promise<Carrier | null> {
  const { carrier } = await server.call<{ carrier: Carrier | null }>("agent/collect", { thread_id, point, ...more });
  return carrier;
}

/** What is collected at this point, told to the agent and settled; empty if there was nothing. */
export async function told(server: Server, thread_id: string, point: Point): Promise<Carried[]> {
  const carrier = await collect(server, thread_id, point);
  if (carrier === null) return [];
  const { state, notifications } = await server.call<{ state: string; notifications: { state: string }[] }>(
    "agent/settle",
    { carrier_id: carrier.id },
  );
  if (state !== "sent") throw new Error(`the settled carrier is ${state}`);
  for (const one of notifications) if (one.state !== "DELIVERED") throw new Error(`a settled one is ${one.state}`);
  return carrier.notifications;
}

export function read(server: Server, id: string): Promise<NotificationWithEvents> {
  return server.call("notification/read", { id });
}

/** Every notification that there is, oldest first. */
export async function all(server: Server, filter: object = {}): Promise<NotificationView[]> {
  const found: NotificationView[] = [];
  for (let after: string | undefined; ; ) {
    const params = { limit: 1_000, ...filter, ...(after === undefined ? {} : { after }) };
    const page: { notifications: NotificationView[]; next: string | null } = await server.call(
      "notification/list",
      params,
    );
    found.push(...page.notifications);
    if (page.next === null) return found.reverse();
    after = page.next;
  }
}

/** As it is when its batch is closed, by whatever closes it. */
export function whenClosed(server: Server, id: string): Promise<NotificationWithEvents> {
  return eventually(
    () => read(server, id),
    ({ open_until }) => open_until === null,
  );
}

export async function storyOf(server: Server, id: string): Promise<string> {
  const { story } = await server.call<{ story: { text: string }[] }>("notification/explain", { id });
  return story.map(({ text }) => text).join("\n");
}

/** Every change of a notification that is in the journal, read beside the server. */
export async function changesOf(data: string, id: string): Promise<Change[]> {
  const reader = await Tidings.open({ data, mode: "read" });
  const changes: Change[] = [];
  try {
    const { last_seq } = await reader.facts();
    for await (const entry of reader.watch({ after: 0 })) {
      changes.push(...entry.changes.filter(({ notification_id }) => notification_id === id));
      if (entry.seq >= last_seq) break;
    }
  } finally {
    await reader.close();
  }
  return changes;
}

/** What a content says, read as TOON by the official decoder. */
export function decoded(content: string): Record<string, unknown> {
  return decode(content) as Record<string, unknown>;
}

/** The rows of the only table in a content. */
export function rowsOf(content: string): Record<string, unknown>[] {
  const tables = Object.values(decoded(content)).filter((value) => Array.isArray(value));
  if (tables.length !== 1) throw new Error(`there is not one table: ${content}`);
  return tables[0] as Record<string, unknown>[];
}

/** How a subscriber file differs from `FILE`; `null` leaves a key out. */
export interface FileInput {
  id: string;
  types: readonly string[];
  enabled?: boolean;
  severity_filter?: string;
  window_ms?: number;
  max_size?: number;
  dedupe_key?: string;
  dedupe_window_ms?: number;
  priority?: string;
  inject_at?: string;
  core?: boolean;
  routing?: { address?: string; target?: string; handler?: string };
  /** The template's text; without it the path of a built-in one. */
  template: string | { builtIn: string };
}

/** Writes a subscriber and its template into a folder of the operator's. */
export function writeSubscriber(folder: string, input: FileInput): string {
  const { id, types, template } = input;
  const builtIn = typeof template === "string" ? undefined : template.builtIn;
  const path = builtIn ?? `templates/${id}.j2`;
  const table = (name: string, values: Record<string, unknown>) => {
    const lines = Object.entries(values).filter(([, value]) => value !== undefined);
    return [`[${name}]`, ...lines.map(([key, value]) => `${key} = ${JSON.stringify(value)}`), ""];
  };
  const lines = [
    ...table("subscriber", { id, name: id, description: `Tells of ${id}`, version: "1.0.0", enabled: input.enabled }),
    ...table("events", { types, severity_filter: input.severity_filter }),
    ...table("batching", {
      window_ms: input.window_ms,
      max_size: input.max_size,
      dedupe_key: input.dedupe_key,
      dedupe_window_ms: input.dedupe_window_ms,
    }),
    ...table("output", {
      priority: input.priority ?? "normal",
      inject_at: input.inject_at ?? "next",
      template: path,
      core: input.core,
    }),
    ...(input.routing === undefined ? [] : table("routing", input.routing)),
  ];
  const file = join(folder, `${id}.toml`);
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  if (typeof template === "string") writeFileSync(join(folder, path), template);
  writeFileSync(file, lines.join("\n"));
  return file;
}

/** One line for one event; a table of names, with how often each came, for several. */
export const PLAIN_TEMPLATE = `{% if events | length == 1 %}
told: {{ event.payload.name }}
times: {{ count }}
{% else %}
{{ toon({"told": events | pick(name="payload.name", times="count")}) }}
{% endif %}
`;
