import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "./json.js";
import { PAYLOADS, payloadProblem } from "./payloads.js";

const FREQUENT = [
  "tool.call.pending",
  "tool.call.success",
  "tool.call.failure",
  "tool.call.timeout",
  "cli.event",
] as const;

describe("payloads of the known types", () => {
  // As the data model of the agent notification system has them, to the letter.
  test.each<[string, JsonObject]>([
    [
      "tool.call.failure",
      {
        tool_name: "vault_search",
        error_type: "timeout",
        error_message: "Operation timed out after 5000ms",
        retry_count: 2,
        call_id: "tc_abc123",
      },
    ],
    ["budget.token.warning", { budget_type: "token", current: 42500, limit: 50000, percentage: 85, remaining: 7500 }],
    ["agent.loop.detected", { pattern: "vault_search → parse → vault_search", repetitions: 3, window_seconds: 60 }],
  ])("%s: the example fits", (type, payload) => {
    expect(payloadProblem(type, payload)).toBeNull();
  });

  test.each<[string, JsonObject, string]>([
    ["tool.call.failure", {}, "payload.tool_name: is required"],
    ["tool.stopped", { tool_name: "build" }, "payload.handle: is required"],
    ["budget.token.warning", { budget_type: "tokens", current: 1, limit: 2 }, "payload.budget_type: "],
    ["budget.token.warning", { budget_type: "token", current: "1", limit: 2 }, "payload.current: "],
    ["agent.loop.detected", { pattern: "a", repetitions: 0, window_seconds: 60 }, "payload.repetitions: "],
    ["mcp.disconnected", { name: "files" }, "payload.server: is required"],
    ["mcp.resource_updated", { server: "files" }, "payload.uri: is required"],
    ["workspace.file.changed", {}, "payload.path: is required"],
    ["config.reloaded", { file: "tidings.toml" }, "payload.changed: is required"],
    ["rate_limit.low", { provider: "openai" }, "payload.limit: is required"],
  ])("%s: %j does not fit", (type, payload, problem) => {
    expect(payloadProblem(type, payload)).toContain(problem);
  });

  test("further keys are welcome, and so are types that nobody knows", () => {
    expect(payloadProblem("mcp.tools_changed", { server: "files", tools: ["read"], added: 1 })).toBeNull();
    expect(payloadProblem("build.broken", { anything: null })).toBeNull();
    expect(payloadProblem("constructor", {})).toBeNull();
  });

  test("a problem is told where its schema has one, and nowhere else", () => {
    const value = fc.constantFrom<Json>("a", "", 1, -1, 0, null, true, []);
    const keys = ["tool_name", "call_id", "error_type", "error_message", "retry_count", "timeout_ms", "message"];
    const payload = fc.dictionary(fc.constantFrom(...keys), value);
    fc.assert(
      fc.property(fc.constantFrom(...FREQUENT), payload, (type, one) => {
        expect(payloadProblem(type, one) === null).toBe(PAYLOADS[type].safeParse(one).success);
      }),
      { numRuns: 2_000 },
    );
  });
});
