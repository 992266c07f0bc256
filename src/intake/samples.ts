/** An event for each kind that is known, as it could have come: to see what a subscriber makes of it. */
import { type EventInput, matchesType } from "../domain/event.js";
import { mostSevere } from "../domain/severity.js";
import type { Subscriber } from "./subscriber.js";

type Sample = Pick<EventInput, "type" | "source" | "severity" | "payload" | "subject">;

/** The first that a subscriber takes is its sample. */
const SAMPLES: readonly Sample[] = [
  {
    type: "tool.call.failure",
    source: "tool_executor",
    severity: "error",
    payload: {
      tool_name: "vault_search",
      error_type: "timeout",
      error_message: "Operation timed out after 5000ms",
      retry_count: 2,
      call_id: "tc_abc123",
    },
  },
  {
    type: "tool.call.success",
    source: "tool_executor",
    payload: { tool_name: "vault_search", call_id: "tc_abc124" },
  },
  {
    type: "tool.stopped",
    source: "shell",
    payload: { tool_name: "shell", handle: "cargo_check", exit_code: 101, error_message: "could not compile" },
    subject: "handle:cargo_check#gen-1",
  },
  {
    type: "budget.token.warning",
    source: "token_monitor",
    severity: "warning",
    payload: { budget_type: "token", current: 42_500, limit: 50_000, percentage: 85, remaining: 7_500 },
  },
  {
    type: "budget.token.exceeded",
    source: "token_monitor",
    severity: "error",
    payload: { budget_type: "token", current: 50_120, limit: 50_000, percentage: 100, remaining: 0, scope: "turn" },
  },
  {
    type: "agent.turn.end",
    source: "agent",
    severity: "warning",
    payload: { turn_id: "turn_42", status: "failed", reason: "the provider did not answer" },
  },
  {
    type: "agent.loop.detected",
    source: "pattern_analyzer",
    severity: "warning",
    payload: { pattern: "vault_search → parse → vault_search", repetitions: 3, window_seconds: 60 },
  },
  {
    type: "mcp.disconnected",
    source: "mcp",
    severity: "warning",
    payload: { server: "files", attempts: 1, reason: "the process ended with code 1" },
    subject: "mcp:files",
  },
  {
    type: "workspace.file.changed",
    source: "workspace",
    payload: { path: "src/main.ts", change: "modified" },
    subject: "file:src/main.ts",
  },
  { type: "config.reloaded", source: "tidings", payload: { file: "tidings.toml", changed: ["notifications.mcp"] } },
  {
    type: "rate_limit.hit",
    source: "anthropic",
    severity: "warning",
    payload: { provider: "anthropic", what: "requests", retry_after_ms: 20_000 },
  },
  {
    type: "subagent.complete",
    source: "subagent",
    payload: { name: "reviewer", task: "Review the change", summary: "Two remarks, nothing that blocks" },
  },
  { type: "cli.event", source: "deploy", payload: { message: "Version 1.4.2 is live" } },
];

/** The thread of a sample: what is addressed to a conversation goes to one. */
const THREAD = "sample";

/** One that it takes: of its first type that is known, else one that is made up. */
export function sampleFor({ types, sources, severity_filter }: Subscriber): EventInput {
  const [first = "cli.event"] = types;
  const known = types
    .map((pattern) => SAMPLES.find(({ type }) => matchesType(pattern, type)))
    .find((sample) => sample !== undefined);
  const { severity = "info", ...sample }: Sample = known ?? {
    type: first.replace(/\*$/, "sample"),
    source: "sample",
    payload: { message: "Something has happened" },
  };
  return {
    ...sample,
    ...(sources === null || sources.includes(sample.source) ? {} : { source: sources[0] ?? sample.source }),
    severity: mostSevere([severity, severity_filter]),
    thread_id: THREAD,
  };
}
