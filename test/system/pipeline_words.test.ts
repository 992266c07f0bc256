/** What the built-in subscribers make of real events: seed 4's examples, and every kind of event that there is. */
import { beforeAll, describe, expect, test } from "vitest";
import type { EventInput } from "../../src/domain/event.js";
import {
  all,
  decoded,
  emit,
  emitAll,
  failure,
  newThread,
  onlyMatch,
  read,
  rowsOf,
  sharedServer,
  told,
  writeSubscriber,
} from "../support/pipeline.js";
import type { Server } from "../support/server.js";

let server: Server;

beforeAll(async () => {
  const shared = await sharedServer();
  server = shared.server;
  return shared.end;
});

const budget = (type: string, more: object = {}): EventInput => ({
  type,
  source: "token_monitor",
  severity: "warning",
  payload: { budget_type: "token", current: 42500, limit: 50000, percentage: 85, remaining: 7500 },
  ...more,
});

const loop = (pattern: string): EventInput => ({
  type: "agent.loop.detected",
  source: "pattern_analyzer",
  severity: "warning",
  payload: { pattern, repetitions: 3, window_seconds: 60 },
});

describe("the examples of the data model", () => {
  test("a single tool failure", async () => {
    const thread_id = newThread();
    await emit(server, failure("vault_search", { thread_id }));
    const [carried] = await told(server, thread_id, "after_tool");
    expect(carried?.content).toBe("tool_fail: vault_search timeout after 5000ms");
  });

  test("batched tool failures", async () => {
    const thread_id = newThread();
    const rows = [
      { tool: "vault_search", error: "timeout", ts: "15:30:01" },
      { tool: "coderag_search", error: "index_missing", ts: "15:30:02" },
      { tool: "vault_write", error: "permission_denied", ts: "15:30:05" },
    ];
    await emitAll(
      server,
      rows.map(({ tool, error, ts }) =>
        failure(tool, { thread_id, timestamp: `2026-01-03T${ts}Z`, payload: { error_type: error } }),
      ),
    );
    const [carried] = await told(server, thread_id, "after_tool");
    expect(carried?.content).toMatch(/^tool_fails\[3\]\{tool,error,ts\}:\n {2}vault_search,timeout,/);
    expect(decoded(carried?.content ?? "")).toEqual({ tool_fails: rows });
  });

  test("a budget warning", async () => {
    const thread_id = newThread();
    await emit(server, { ...budget("budget.token.warning"), thread_id });
    const [carried] = await told(server, thread_id, "after_tool");
    expect(carried?.content).toBe("budget_warn: 85% tokens consumed (42500/50000)");
  });

  test("a mixed batch, and the severity prefixes, from subscribers that the operator has switched on", async () => {
    const { server: own, end } = await sharedServer((folder) => {
      writeSubscriber(folder, {
        id: "turn_digest",
        types: ["tool.call.failure", "budget.*", "agent.loop.detected"],
        window_ms: 10_000,
        max_size: 40,
        priority: "low",
        inject_at: "turn_end",
        template: { builtIn: "templates/turn_digest.toon.j2" },
      });
      writeSubscriber(folder, {
        id: "tool_call",
        types: ["tool.call.pending", "tool.call.success"],
        priority: "low",
        inject_at: "turn_end",
        template: { builtIn: "templates/tool_call.toon.j2" },
      });
    });
    try {
      const thread_id = newThread();
      const events = [
        failure("vault_search"),
        failure("coderag_search", { payload: { error_type: "index_missing", error_message: "index not found" } }),
        budget("budget.token.warning"),
        loop("vault_search"),
      ];
      // One after the other: what comes in one request from several sources is taken from each in turn.
      for (const event of events) await emit(own, { ...event, thread_id });
      const digest = (await told(own, thread_id, "turn_end")).find(
        ({ subscriber_id }) => subscriber_id === "turn_digest",
      );
      expect(digest?.content).toMatch(/^notifications\[4\]\{type,source,message\}:\n/);
      expect(rowsOf(digest?.content ?? "")).toEqual([
        { type: "tool_fail", source: "vault_search", message: "timeout after 5000ms" },
        { type: "tool_fail", source: "coderag_search", message: "index not found" },
        { type: "budget_warn", source: "token_monitor", message: "85% consumed (42500/50000)" },
        { type: "loop_detect", source: "pattern_analyzer", message: "repeated vault_search 3x" },
      ]);

      const quiet = newThread();
      const { matches } = await emit(own, {
        ...budget("budget.token.exceeded", { severity: "critical" }),
        thread_id: quiet,
      });
      const exceeded = matches.find(({ subscriber_id }) => subscriber_id === "budget_exceeded");
      expect(exceeded?.notification.content.split("\n")[0]).toBe("!critical: budget exceeded - turn will terminate");
      await emit(own, { ...loop("vault_search → parse → vault_search"), thread_id: quiet });
      const success: EventInput = {
        type: "tool.call.success",
        source: "tools",
        payload: { tool_name: "vault_search" },
      };
      await emit(own, { ...success, thread_id: quiet });
      const lines = (await told(own, quiet, "turn_start")).map(({ content }) => content.split("\n")[0]);
      expect(lines).toContain("!warning: loop detected - same pattern 3 times");
      expect(lines).toContain("info: tool completed successfully");
    } finally {
      await end();
    }
  });
});

interface Outcome {
  subscriber: string;
  outcome: "queued" | "batched" | "filtered";
  channel: "inbox" | "floor" | "agent" | "context";
  priority: "high" | "normal" | "low";
  /** What its words must say. */
  says: RegExp;
}

const context = (subscriber: string, priority: Outcome["priority"], says: RegExp): Outcome => ({
  subscriber,
  outcome: "batched",
  channel: "context",
  priority,
  says,
});

const handle = { tool_name: "cargo_check", handle: "h_3" };
const mcp = { server: "github" };

/** Every type of seed 4 and every kind of seeds 1 and 2; null is for those that are off until they are switched on. */
const KINDS: [EventInput, Outcome | null][] = [
  [{ type: "tool.call.pending", source: "tools", payload: { tool_name: "a" } }, null],
  [{ type: "tool.call.success", source: "tools", payload: { tool_name: "a" } }, null],
  [failure("vault_search"), context("tool_failure", "high", /^tool_fail: vault_search timeout after 5000ms$/)],
  [
    { ...failure("vault_search", { payload: { error_type: null } }), type: "tool.call.timeout" },
    context("tool_failure", "high", /^tool_fail: vault_search timeout after 5000ms$/),
  ],
  [budget("budget.token.warning"), context("budget_warning", "high", /85% tokens consumed \(42500\/50000\)/)],
  [
    budget("budget.iteration.warning", { payload: { budget_type: "iteration", current: 9, limit: 10 } }),
    context("budget_warning", "high", /90% iterations consumed \(9\/10\)/),
  ],
  [
    budget("budget.timeout.warning", { payload: { budget_type: "timeout", percentage: 80 } }),
    context("budget_warning", "high", /80% time consumed/),
  ],
  ...["token", "iteration"].map((what): [EventInput, Outcome] => [
    budget(`budget.${what}.exceeded`, { severity: "error" }),
    {
      subscriber: "budget_exceeded",
      outcome: "queued",
      channel: "floor",
      priority: "high",
      says: /^!error: budget exceeded - turn will terminate/,
    },
  ]),
  ...["start", "end"].flatMap((name): [EventInput, Outcome][] => [
    [
      { type: `agent.turn.${name}`, source: "loop", severity: "info", payload: { turn_id: "t" } },
      { ...context("agent_turn", "low", /./), outcome: "filtered" },
    ],
    [
      { type: `agent.turn.${name}`, source: "loop", severity: "warning", payload: { turn_id: "t", reason: "was cut" } },
      context("agent_turn", "low", /agent_turn: t (start|end) - was cut/),
    ],
  ]),
  [
    loop("vault_search → parse → vault_search"),
    context("loop_detected", "high", /^!warning: loop detected - same pattern 3 times\npattern: /),
  ],
  ...[
    ["complete", /has completed - all green/],
    ["failed", /has failed - all green/],
  ].map(([name, says]): [EventInput, Outcome] => [
    { type: `subagent.${name}`, source: "agents", payload: { name: "reviewer", summary: "all green" } },
    { ...context("subagent", "normal", says as RegExp), channel: "agent" },
  ]),
  [
    { type: "cli.event", source: "ci", payload: { message: "2 tests are red" } },
    { subscriber: "cli_event", outcome: "queued", channel: "inbox", priority: "normal", says: /2 tests are red/ },
  ],
  ...["tool", "handle"].flatMap((source): [EventInput, Outcome][] => [
    [
      { type: `${source}.stopped`, source: "handles", severity: "info", payload: handle },
      context("tool_handle", "normal", /cargo_check \(handle h_3\) has stopped.*\n(.*\n)*next: .*fetch.*h_3/),
    ],
    [
      { type: `${source}.waiting`, source: "handles", severity: "warning", payload: handle },
      context("tool_handle", "normal", /cargo_check \(handle h_3\) is waiting for input/),
    ],
    [
      { type: `${source}.failed`, source: "handles", severity: "error", payload: { ...handle, exit_code: 101 } },
      context("tool_handle", "normal", /cargo_check \(handle h_3\) has failed\nexit_code: 101/),
    ],
  ]),
  [
    { type: "mcp.disconnected", source: "mcp", severity: "error", payload: mcp },
    context("mcp_connection", "normal", /MCP server github has disconnected/),
  ],
  [
    { type: "mcp.unresponsive", source: "mcp", severity: "error", payload: mcp },
    context("mcp_connection", "normal", /MCP server github does not answer/),
  ],
  [
    { type: "mcp.reconnected", source: "mcp", payload: mcp },
    context("mcp_connection", "normal", /MCP server github has reconnected/),
  ],
  [
    { type: "workspace.file.changed", source: "watcher", payload: { path: "src/a.ts" } },
    context("workspace_change", "normal", /src\/a\.ts/),
  ],
  [
    { type: "config.changed", source: "config", payload: { changed: ["model"] } },
    context("config_change", "normal", /changed: model/),
  ],
  [
    { type: "rate_limit.warning", source: "provider", payload: { remaining: 2, limit: 100 } },
    context("rate_limit", "normal", /2 of 100 left/),
  ],
];

describe("every kind of event ends where it is documented to end", () => {
  test.each(KINDS)("%j", async (event, wanted) => {
    const thread_id = newThread();
    const sent = await emit(server, { ...event, thread_id });
    if (wanted === null) {
      expect(sent).toMatchObject({ outcome: "unmatched", matches: [] });
      expect(await told(server, thread_id, "turn_start")).toEqual([]);
      return;
    }
    const { subscriber_id, outcome, notification } = onlyMatch(sent);
    const { channel, priority } = notification;
    expect({ subscriber: subscriber_id, outcome, channel, priority, says: wanted.says }).toEqual(wanted);
    const carried = await told(server, thread_id, "turn_start");
    const { content, degraded, state, reason } = await read(server, notification.id);
    if (outcome === "filtered") {
      expect(carried).toEqual([]);
      expect({ state, reason }).toEqual({ state: "SUPPRESSED", reason: "filtered" });
      return;
    }
    expect(content).toMatch(wanted.says);
    expect(degraded).toBe(null);
    // Every line of it is TOON, as the seed wants it.
    expect(Object.keys(decoded(content)).length).toBeGreaterThan(0);
    const isAgents = channel === "context" || channel === "agent";
    expect(carried.map(({ id }) => id)).toEqual(isAgents ? [notification.id] : []);
    expect(state).toBe(isAgents ? "DELIVERED" : "DISPATCHED");
    expect(await all(server, { thread_id })).toHaveLength(1);
  });
});
