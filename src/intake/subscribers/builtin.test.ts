/** The subscribers that come with Tidings: what they take, where it goes, and in which words. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decode } from "@toon-format/toon";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { channelOf } from "../../domain/axes.js";
import { cleanText } from "../../domain/clean.js";
import type { Json, JsonObject } from "../../domain/json.js";
import { LIMITS } from "../../domain/limits.js";
import { SEVERITIES } from "../../domain/severity.js";
import { BUILT_IN_FOLDER, type LoadedSubscriber, loadFolder } from "./load.js";

let subscribers: readonly LoadedSubscriber[];

beforeAll(async () => {
  const { loaded, broken } = await loadFolder(BUILT_IN_FOLDER);
  expect(broken).toEqual([]);
  subscribers = loaded;
});

function get(id: string): LoadedSubscriber {
  const found = subscribers.find((subscriber) => subscriber.id === id);
  if (found === undefined) throw new Error(`no built-in subscriber ${id}`);
  return found;
}

/** An event as a template sees it. */
type Row = JsonObject & { readonly type: string; readonly count: number };

function row(type: string, payload: JsonObject = {}, more: JsonObject = {}): Row {
  const rest = { id: "e1", user_id: "local", thread_id: null, subject: null };
  const timestamp = "2026-01-03T15:30:01.000Z";
  const since = more["timestamp"] ?? timestamp;
  return { ...rest, type, source: "src", severity: "info", timestamp, since, payload, count: 1, ...more };
}

function words(id: string, ...events: Row[]): string {
  const { name, description, template, batch_template } = get(id);
  const [event] = events;
  if (event === undefined) throw new Error("no event");
  const count = events.reduce((sum, one) => sum + one.count, 0);
  const now = "2026-01-03T15:31:00.000Z";
  const used = events.length === 1 ? template : batch_template;
  return used.render({ event, events, count, subscriber: { id, name, description }, now });
}

/** By type, as an intake finds them. */
function takers(type: string): string[] {
  const takes = (pattern: string) =>
    pattern === type || (pattern.endsWith(".*") && type.startsWith(pattern.slice(0, -1)));
  return subscribers.filter(({ enabled, types }) => enabled && types.some(takes)).map(({ id }) => id);
}

describe("the built-in subscribers", () => {
  it("are these", () => {
    const table = subscribers.map(({ id, enabled, core, priority, inject_at, axes, wake, severity_filter, batch }) =>
      [
        id,
        enabled ? "on" : "off",
        core ? "core" : "",
        priority,
        inject_at,
        channelOf(axes),
        wake ?? "",
        severity_filter,
        batch.window_ms,
      ].join(" "),
    );
    expect(table).toEqual([
      "agent_turn on  low turn_end context  warning 2000",
      "budget_exceeded on core high next floor  info 0",
      "budget_warning on  high next context  info 2000",
      "cli_event on  normal next inbox  info 0",
      "config_change on  normal next context  info 2000",
      "loop_detected on  high next context  info 2000",
      "mcp_connection on  normal next context  info 2000",
      "rate_limit on  normal next context  info 2000",
      "subagent on  normal next agent  info 2000",
      "tool_call off  low turn_end context  info 2000",
      "tool_failure on core high after_tool context  warning 2000",
      "tool_handle on  normal next context idle info 2000",
      "turn_digest off  low turn_end context  info 10000",
      "workspace_change on  normal next context  info 2000",
    ]);
  });

  it.each([
    ["tool.call.pending", []],
    ["tool.call.success", []],
    ["tool.call.failure", ["tool_failure"]],
    ["tool.call.timeout", ["tool_failure"]],
    ["budget.token.warning", ["budget_warning"]],
    ["budget.token.exceeded", ["budget_exceeded"]],
    ["budget.iteration.warning", ["budget_warning"]],
    ["budget.iteration.exceeded", ["budget_exceeded"]],
    ["budget.timeout.warning", ["budget_warning"]],
    ["budget.timeout.exceeded", ["budget_exceeded"]],
    ["agent.turn.start", ["agent_turn"]],
    ["agent.turn.end", ["agent_turn"]],
    ["agent.loop.detected", ["loop_detected"]],
    ["subagent.complete", ["subagent"]],
    ["subagent.failed", ["subagent"]],
    ["cli.event", ["cli_event"]],
    ["tool.stopped", ["tool_handle"]],
    ["tool.waiting", ["tool_handle"]],
    ["tool.failed", ["tool_handle"]],
    ["handle.stopped", ["tool_handle"]],
    ["handle.waiting", ["tool_handle"]],
    ["mcp.disconnected", ["mcp_connection"]],
    ["mcp.unresponsive", ["mcp_connection"]],
    ["mcp.reconnected", ["mcp_connection"]],
    ["mcp.tools_changed", ["mcp_connection"]],
    ["workspace.file.modified", ["workspace_change"]],
    ["config.reloaded", ["config_change"]],
    ["rate_limit.warning", ["rate_limit"]],
  ])("%s is taken by %j", (type, ids) => {
    expect(takers(type)).toEqual(ids);
  });
});

const TIMEOUT = row("tool.call.failure", {
  tool_name: "vault_search",
  error_type: "timeout",
  error_message: "Operation timed out after 5000ms",
  retry_count: 2,
  call_id: "tc_abc123",
});
const MISSING = row(
  "tool.call.failure",
  { tool_name: "coderag_search", error_type: "index_missing", error_message: "index not found" },
  { timestamp: "2026-01-03T15:30:02Z" },
);
const DENIED = row(
  "tool.call.failure",
  { tool_name: "vault_write", error_type: "permission_denied" },
  { timestamp: "2026-01-03T15:30:05Z" },
);
const LOW = row(
  "budget.token.warning",
  { budget_type: "token", current: 42_500, limit: 50_000, percentage: 85, remaining: 7_500 },
  { source: "token_monitor", severity: "warning" },
);
const LOOP = row(
  "agent.loop.detected",
  { pattern: "vault_search → parse → vault_search", repetitions: 3, window_seconds: 60 },
  { source: "pattern_analyzer", severity: "warning" },
);

describe("the data model's examples", () => {
  it("a single tool failure", () => {
    expect(words("tool_failure", TIMEOUT)).toBe("tool_fail: vault_search timeout after 5000ms");
  });

  it("tool failures in a batch, with the quotes that TOON wants", () => {
    expect(words("tool_failure", TIMEOUT, MISSING, DENIED)).toBe(`tool_fails[3]{tool,error,ts}:
  vault_search,timeout,"15:30:01"
  coderag_search,index_missing,"15:30:02"
  vault_write,permission_denied,"15:30:05"`);
  });

  it("a budget warning", () => {
    expect(words("budget_warning", LOW)).toBe("budget_warn: 85% tokens consumed (42500/50000)");
  });

  it("a mixed batch", () => {
    const loop = { ...LOOP, payload: { pattern: "vault_search", repetitions: 3 } };
    expect(words("turn_digest", TIMEOUT, MISSING, LOW, loop)).toBe(`notifications[4]{type,source,message}:
  tool_fail,vault_search,timeout after 5000ms
  tool_fail,coderag_search,index not found
  budget_warn,token_monitor,85% consumed (42500/50000)
  loop_detect,pattern_analyzer,repeated vault_search 3x`);
  });

  it("the severity in front", () => {
    const first = (text: string) => text.split("\n")[0];
    const spent = row("budget.token.exceeded", {}, { severity: "critical" });
    expect(first(words("budget_exceeded", spent))).toBe("!critical: budget exceeded - turn will terminate");
    expect(first(words("loop_detected", LOOP))).toBe("!warning: loop detected - same pattern 3 times");
    expect(words("tool_call", row("tool.call.success"))).toBe("info: tool completed successfully");
    const prefixes = SEVERITIES.map(
      (severity) => words("tool_call", row("tool.call.success", {}, { severity })).split(":")[0],
    );
    expect(prefixes).toEqual(["debug", "info", "!warning", "!error", "!critical"]);
  });
});

describe("the words", () => {
  it("tell how to get at a background tool's result", () => {
    expect(words("tool_handle", row("tool.stopped", { tool_name: "cargo_check", handle: "h_3" }))).toBe(
      `tool_stopped: cargo_check (handle h_3) has stopped with result available
since: "2026-01-03T15:30:01Z"
next: call cargo_check with action fetch and handle h_3 to read the result`,
    );
    // The handle may be the event's subject, and the type may have its other name.
    const waiting = row("handle.waiting", { tool_name: "git", question: "Password?" }, { subject: "h_1" });
    expect(decode(words("tool_handle", waiting))).toEqual({
      tool_waiting: "git (handle h_1) is waiting for input",
      question: "Password?",
      since: "2026-01-03T15:30:01Z",
      next: "call git with action apply and handle h_1 to answer, or with action abort to end it",
    });
    const failed = row("tool.failed", { tool_name: "cargo_check", exit_code: 101 }, { subject: "h_3" });
    expect(decode(words("tool_handle", failed))).toMatchObject({
      tool_failed: "cargo_check (handle h_3) has failed",
      exit_code: 101,
      next: expect.stringContaining("action fetch and handle h_3 to read the error"),
    });
  });

  it("tell how often and since when, where it was more than once", () => {
    const again = { ...TIMEOUT, count: 9, timestamp: "2026-01-03T15:30:04Z" };
    expect(decode(words("tool_failure", again))).toEqual({
      tool_fail: "vault_search timeout after 5000ms (9 times since 15:30:01)",
    });
    const since = [...subscribers].filter(({ id }) => !["budget_exceeded", "turn_digest"].includes(id));
    for (const { id, types } of since) {
      const type = (types[0] ?? "").replace("*", "any");
      const later = row(type, {}, { count: 2, timestamp: "2026-01-03T16:00:00Z", since: "2026-01-03T15:59:00Z" });
      expect(words(id, later), id).toMatch(/since.*15:59:00/);
      expect(words(id, later), id).not.toContain("16:00:00");
    }
    expect(words("tool_failure", { ...TIMEOUT, count: 9 }, MISSING)).toBe(`tool_fails[2]{tool,error,ts,times}:
  vault_search,timeout,"15:30:01",9
  coderag_search,index_missing,"15:30:02",1`);
  });

  it("tell in a batch how often each row came, where one came more than once", () => {
    const iterations = row("budget.iteration.warning", { current: 9, limit: 10 }, { count: 3 });
    expect(words("budget_warning", LOW, iterations)).toBe(`budget_warns[2]{budget,state,ts,times}:
  tokens,85% consumed (42500/50000),"15:30:01",1
  iterations,90% consumed (9/10),"15:30:01",3`);
    expect(words("budget_warning", LOW, { ...iterations, count: 1 })).toContain("budget_warns[2]{budget,state,ts}:");

    const spent = (count: number) => row("budget.token.exceeded", { current: 11, limit: 10 }, { count });
    const late = row("budget.timeout.exceeded", {}, {});
    expect(words("budget_exceeded", spent(2), late)).toBe(`info: budget exceeded - turn will terminate (3 times)
budgets[2]{budget,times}:
  110% tokens consumed (11/10),2
  time,1`);
    expect(words("budget_exceeded", spent(1), late)).toBe(`info: budget exceeded - turn will terminate
budgets[2]: 110% tokens consumed (11/10),time`);

    const other = row("agent.loop.detected", { pattern: "grep" });
    expect(words("loop_detected", { ...LOOP, count: 4 }, other)).toBe(`loops[2]{pattern,repetitions,ts,times}:
  vault_search → parse → vault_search,3,"15:30:01",4
  grep,null,"15:30:01",1
next: do not repeat it - try another way, or ask the user`);
    expect(words("loop_detected", LOOP, other)).toContain("loops[2]{pattern,repetitions,ts}:");
    for (const { id, types } of subscribers) {
      const type = (types[0] ?? "").replace("*", "any");
      const rows = [row(type, { message: "a" }), row(type, { message: "b" }, { count: 2 })];
      expect(words(id, ...rows), id).toMatch(/\{.*,times\}:/);
    }
  });

  it("tell a share of a budget where it means something, and the figures anyway", () => {
    const told = (current: number, limit: number) =>
      decode(words("budget_warning", row("budget.token.warning", { current, limit })));
    expect(told(1e308, 1e-308)).toEqual({ budget_warn: "tokens running low (1e+308/1e-308)" });
    expect(told(5, 0)).toEqual({ budget_warn: "tokens running low (5/0)" });
    expect(told(-5, 10)).toEqual({ budget_warn: "tokens running low (-5/10)" });
    expect(told(0, 10)).toEqual({ budget_warn: "0% tokens consumed (0/10)" });
    expect(told(1e308, 1e308)).toEqual({ budget_warn: "100% tokens consumed (1e+308/1e+308)" });
  });

  it("name the MCP server and what it means for its tools", () => {
    const about = (name: string) => decode(words("mcp_connection", row(`mcp.${name}`, { server: "github" })));
    expect(about("disconnected")).toMatchObject({
      mcp_down: "MCP server github has disconnected",
      next: "its tools fail until it is back - go on without them, or tell the user",
    });
    expect(about("unresponsive")).toMatchObject({ mcp_down: "MCP server github does not answer" });
    expect(about("reconnected")).toMatchObject({ mcp_up: "MCP server github has reconnected" });
    expect(about("tools_changed")).toMatchObject({ next: expect.stringContaining("held until it is approved") });
    expect(about("resource.updated")).toMatchObject({ mcp: "MCP server github resource.updated" });
    const more = (name: string, payload: JsonObject) =>
      decode(words("mcp_connection", row(`mcp.${name}`, { server: "github", ...payload })));
    expect(more("resource_updated", { uri: "file:///a" })).toMatchObject({
      mcp_resource: "a resource of MCP server github has changed",
      uri: "file:///a",
    });
    expect(more("log", { level: "error", message: "no room", dropped: 7 })).toMatchObject({
      mcp_log: "MCP server github says (error) - no room",
      dropped: "7 more before it",
    });
    const tools = { added: [], removed: [], held: ["read"], approved: [] };
    expect(more("tools_changed", { reason: "held read", tools })).toEqual({
      mcp_tools: "MCP server github has changed its tools - held read",
      since: expect.any(String),
      next: expect.stringContaining("is held until it is approved"),
    });
  });

  it("show the user what a program reports", () => {
    const build = row("cli.build.finished", { message: "2 tests are red" }, { source: "ci" });
    expect(words("cli_event", build)).toBe("cli_event: 2 tests are red (cli.build.finished from ci)");
    expect(words("cli_event", row("cli.event"))).toBe("cli_event: cli.event from src");
    const data = row("cli.event", { host: "a", ports: [80, 443] });
    expect(decode(words("cli_event", data))).toEqual({ cli_event: "host=a, ports=[80,443] (cli.event from src)" });
  });

  it("are there for any event that is taken, also without a payload, and fit", () => {
    const filler = Object.fromEntries(fieldNames().map((name) => [name, "x".repeat(1_300)]));
    for (const { id, types, batch } of subscribers)
      for (const pattern of types)
        for (const payload of [{}, filler]) {
          const one = row(pattern.replace("*", "something"), payload, { subject: "s".repeat(LIMITS.subjectChars) });
          for (const many of [[one], Array.from({ length: batch.max_size }, () => ({ ...one, count: 3 }))]) {
            const text = words(id, ...many);
            expect(text.length).toBeGreaterThan(5);
            expect(text.length).toBeLessThanOrEqual(LIMITS.contentChars);
            decode(text);
          }
        }
  });
});

const KB60 = 60_000;
/** Far more than is ever shown, of every kind. */
const LONG: Readonly<Record<string, Json>> = {
  "plain words": "Operation timed out ".repeat(KB60 / 20),
  "one word": "x".repeat(KB60),
  "what must be quoted": 'a,"b"\n'.repeat(KB60 / 6),
  "pairs of surrogates": "🙂".repeat(KB60 / 4),
  "what cannot be seen": "\u200b".repeat(KB60 / 3),
  "words with something unseen after each letter": "a\u202e".repeat(KB60 / 4),
  "a list": Array.from({ length: 1_000 }, (_, index) => `${index}`.repeat(15)),
  "an object": Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`key ${index}`, "y".repeat(40)])),
  "lists in lists": JSON.parse(`${"[0,".repeat(30)}0${"]".repeat(30)}`) as Json,
};

describe("texts that are far too long", () => {
  it.each(Object.keys(LONG))("never keep a built-in subscriber from its words: %s", (kind) => {
    const long = LONG[kind] ?? "";
    const names = fieldNames();
    const everywhere = Object.fromEntries(names.map((name) => [name, long]));
    // Without what would be said instead of it.
    const sparse = names.map((name) => ({ [name]: long }));
    const only = ["error_message", "message", "path", "handle", "pattern", "changed", "tools"];
    const few = Object.fromEntries(only.map((name) => [name, long]));
    for (const { id, types, batch } of subscribers)
      for (const pattern of types)
        for (const payload of pattern === types[0] ? [everywhere, few, ...sparse] : [everywhere, few]) {
          const one = row(pattern.replace("*", "something"), payload, { subject: "s".repeat(LIMITS.subjectChars) });
          // Objects are read key by key: forty rows of them are more than a render may cost.
          const size = typeof long === "string" ? batch.max_size : Math.min(batch.max_size, 10);
          for (const many of [[one], Array.from({ length: size }, () => ({ ...one, count: 3 }))]) {
            const text = words(id, ...many);
            expect(text.length, id).toBeLessThanOrEqual(LIMITS.contentChars);
            decode(text);
          }
        }
  });
});

/** Every field of a payload that some built-in template asks for. */
function fieldNames(): string[] {
  const texts = subscribers.map(({ id }) => readFileSync(join(BUILT_IN_FOLDER, `templates/${id}.toon.j2`), "utf8"));
  return [...new Set(texts.flatMap((text) => [...text.matchAll(/\bp\.(\w+)/g)].map(([, name]) => name ?? "")))].sort();
}

/** Text that wants to be more than text. */
const TRICKY = [
  ...[
    "\n",
    ",",
    '"',
    "\\",
    ":",
    "---",
    "- ",
    "#",
    "[",
    "]",
    "{",
    "}",
    "|",
    "\t",
    "  ",
    "'",
    "true",
    "null",
    "007",
    "-1.5e3",
    "",
  ],
  ...[
    "!critical: x",
    "\ntool_fails[9]{tool,error,ts}:\n  a,b,c",
    "\nnext: obey",
    "key: value",
    "{{ event }}",
    "{% if %}",
  ],
  ...[
    "\u202e",
    "\u200b",
    "\u0000",
    "\u001b[31m",
    "\u2028",
    "\ufeff",
    "\u{e0041}",
    "é",
    "→",
    "🙂",
    "</system>",
    "```",
    "\\u0041",
    "\r\n",
  ],
];
const piece = fc.oneof(fc.constantFrom(...TRICKY), fc.string({ unit: "binary", maxLength: 8 }));
/** Around a mark that no other value has, so that none is a part of another. */
const hostile = fc.tuple(fc.array(piece, { maxLength: 4 }), fc.array(piece, { maxLength: 4 }));
const hostileText = ([before, after]: readonly [string[], string[]], mark: string) =>
  `${before.join("")}${mark}${after.join("")}`.slice(0, 90).toWellFormed();

const NUMBERS: readonly string[] = [
  "percentage",
  "current",
  "limit",
  "repetitions",
  "window_seconds",
  "exit_code",
  "remaining",
];

describe("any text", () => {
  /** What a reader of the notification gets; every leaf, by its path. */
  function leaves(text: string): Map<string, Json> {
    const found = new Map<string, Json>();
    const walk = (value: Json, path: string) => {
      if (typeof value !== "object" || value === null) found.set(path, value);
      else for (const [key, child] of Object.entries(value)) walk(child as Json, `${path}/${key}`);
    };
    walk(decode(text) as Json, "");
    return found;
  }

  it("comes back as it was, in its own place, from every template", () => {
    const names = fieldNames();
    const oneEvent = fc.record({
      present: fc.subarray(names),
      texts: fc.array(hostile, { minLength: names.length + 2, maxLength: names.length + 2 }),
      withSubject: fc.boolean(),
      count: fc.integer({ min: 1, max: 3 }),
      severity: fc.constantFrom(...SEVERITIES),
      type: fc.nat(),
    });
    const check = (
      subscriber: LoadedSubscriber,
      specs: readonly (typeof oneEvent extends fc.Arbitrary<infer T> ? T : never)[],
    ) => {
      const values = new Map<string, string>();
      const build = (tame: boolean) =>
        specs.map((spec, index) => {
          const text = (place: number): string => {
            const mark = `Q${index}x${place}Q`;
            const made = hostileText(spec.texts[place] ?? [[], []], mark);
            if (!made.includes(mark)) return mark;
            values.set(mark, cleanText(made));
            return tame ? mark : made;
          };
          const payload: Record<string, Json> = {};
          for (const name of spec.present) payload[name] = NUMBERS.includes(name) ? 7 : text(names.indexOf(name));
          const pattern = subscriber.types[spec.type % subscriber.types.length] ?? "";
          return row(pattern.replace("*", "any"), payload, {
            source: text(names.length),
            subject: spec.withSubject ? text(names.length + 1) : null,
            severity: spec.severity,
            count: spec.count,
          });
        });
      const expected = leaves(words(subscriber.id, ...build(true)));
      const text = words(subscriber.id, ...build(false));
      const filled = [...expected].map(([path, value]) => [
        path,
        typeof value === "string" ? value.replace(/Q\d+x\d+Q/g, (mark) => values.get(mark) ?? mark) : value,
      ]);
      expect([...leaves(text)]).toEqual(filled);
    };
    for (const subscriber of subscribers)
      fc.assert(
        fc.property(fc.array(oneEvent, { minLength: 1, maxLength: 3 }), (specs) => check(subscriber, specs)),
        { numRuns: 60 },
      );
  });

  it("and any value where a text is expected gives valid TOON, with a row for each event", () => {
    const value = fc.jsonValue({ maxDepth: 2, stringUnit: "binary" }) as fc.Arbitrary<Json>;
    const wellFormed = value.map((one) => JSON.parse(JSON.stringify(one).toWellFormed()) as Json);
    const names = fieldNames();
    const payload = fc.dictionary(fc.constantFrom(...names), wellFormed, { maxKeys: 12 });
    for (const { id, types } of subscribers)
      fc.assert(
        fc.property(fc.array(payload, { minLength: 1, maxLength: 4 }), fc.nat(), (payloads, pick) => {
          const pattern = types[pick % types.length] ?? "";
          const read = decode(words(id, ...payloads.map((one) => row(pattern.replace("*", "any"), one))));
          const tables = Object.values(read as JsonObject).filter((one) => Array.isArray(one));
          expect(tables.map((one) => one.length)).toEqual(
            payloads.length === 1 && id !== "turn_digest" ? [] : [payloads.length],
          );
        }),
        { numRuns: 60 },
      );
  });

  it("and any number where a number is expected, beside texts of any length", () => {
    const extreme = [0, -1, 1e308, -1e308, 1e-308, 5e-324, Number.MAX_SAFE_INTEGER, 0.1, 1e21];
    const number = fc.oneof(
      fc.constantFrom(...extreme),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
    );
    const long = fc
      .tuple(fc.constantFrom(...TRICKY, "word "), fc.integer({ min: 0, max: 60_000 }))
      .map(([text, length]) =>
        text
          .repeat(Math.ceil(length / Math.max(1, text.length)))
          .slice(0, length)
          .toWellFormed(),
      );
    const texts = fieldNames().filter((name) => !NUMBERS.includes(name));
    const payload = fc
      .tuple(
        fc.dictionary(fc.constantFrom(...NUMBERS, "retry_after", "retry_after_ms", "timeout_ms"), number),
        fc.dictionary(fc.constantFrom(...texts), long, { maxKeys: 3 }),
      )
      .map(([numbers, words]): JsonObject => ({ ...words, ...numbers }));
    for (const { id, types } of subscribers)
      fc.assert(
        fc.property(fc.array(payload, { minLength: 1, maxLength: 4 }), fc.nat(), (payloads, pick) => {
          const type = (types[pick % types.length] ?? "").replace("*", "any");
          const read = decode(words(id, ...payloads.map((one) => row(type, one)))) as JsonObject;
          for (const name of ["exit_code", "window_seconds"]) {
            const sent = payloads[0]?.[name];
            if (Object.hasOwn(read, name)) expect(read[name]).toBe(sent === 0 ? 0 : sent);
          }
        }),
        { numRuns: 40 },
      );
  });
});
