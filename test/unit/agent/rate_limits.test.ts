/** What a provider says of its limits reaches the agent: by its headers, and by its refusals. */
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../../src/platform/manual_clock.js";
import { openAgent, tool } from "../../support/agent.js";
import { calling, openWire, WIRES, type WireKind } from "../../support/agent_wire.js";

const LIMITS = { retry_base_ms: 1 };
const look = tool("look", () => "nothing new");

function busy(kind: WireKind, status: 429 | 529) {
  const anthropic = status === 529 ? "overloaded_error" : "rate_limit_error";
  const type = kind.provider === "anthropic" ? anthropic : "other";
  return { error: { message: "too many calls", type }, status };
}

/** In the provider's own names. */
function headersOf({ provider }: WireKind, limit: number, remaining: number, resetAt: number): Record<string, string> {
  if (provider === "anthropic")
    return {
      "anthropic-ratelimit-requests-limit": String(limit),
      "anthropic-ratelimit-requests-remaining": String(remaining),
      "anthropic-ratelimit-requests-reset": new Date(resetAt).toISOString(),
    };
  return {
    "x-ratelimit-limit-requests": String(limit),
    "x-ratelimit-remaining-requests": String(remaining),
    "x-ratelimit-reset-requests": `${Math.round((resetAt - Date.now()) / 1_000)}s`,
  };
}

describe.each(WIRES)("$name", (kind) => {
  const wired = kind as WireKind;

  test.each([429, 529] as const)("%d is told with the call that is made again", async (status) => {
    const wire = await openWire(wired);
    wire.server.answers.push(busy(wired, status));
    wire.server.headers["retry-after-ms"] = "25";
    const agent = await openAgent({ agent: { ...wire.agent, limits: LIMITS } });
    const turn = await agent.converse("Hello");
    expect(turn).toMatchObject({ state: "completed" });
    expect(await agent.events("rate_limit.hit")).toEqual([
      {
        provider: wired.provider,
        message: "it refuses calls for a while",
        retry_after_ms: 25,
        turn_id: turn.turn_id,
      },
    ]);
    const [first, second] = wire.server.recorder.requests;
    expect(first?.body).not.toContain("rate_limit");
    expect(second?.body).toContain(`rate_limit: ${wired.provider} hit - it refuses calls for a while`);
    wire.requests();
  });

  test("a limit that runs low is told once until it begins again", async () => {
    const wire = await openWire(wired);
    const clock = new ManualClock(Date.now());
    const agent = await openAgent({ clock, agent: { ...wire.agent, tools: [look] } });
    const { headers, answers, recorder } = wire.server;
    const resetAt = Date.now() + 600_000;
    Object.assign(headers, headersOf(wired, 100, 10, resetAt));
    await agent.converse("Ten of a hundred are enough");
    expect(await agent.events("rate_limit.low")).toEqual([]);

    Object.assign(headers, headersOf(wired, 100, 9, resetAt));
    answers.push(calling("look"));
    await agent.converse("Nine are not");
    Object.assign(headers, headersOf(wired, 100, 3, resetAt));
    await agent.converse("Three are not, and that is no news");
    expect(await agent.events("rate_limit.low")).toMatchObject([
      {
        provider: wired.provider,
        what: "requests",
        remaining: 9,
        limit: 100,
        reset_at: expect.stringMatching(/^\d{4}-.*Z$/),
      },
    ]);
    // In the same turn, with the result of its tool.
    expect(recorder.requests[1]?.body).not.toContain("rate_limit");
    expect(recorder.requests[2]?.body).toContain(
      `rate_limit: ${wired.provider} low (9 of 100 left) - requests run low`,
    );
    clock.advance(700_000);
    await agent.converse("It began again, and runs low again");
    expect(await agent.events("rate_limit.low")).toHaveLength(2);
    expect(await agent.problems()).toEqual([]);
  });
});

test("an account without money, and a server that is broken, are no rate limits", async () => {
  const wire = await openWire(WIRES[0] as WireKind);
  const agent = await openAgent({ agent: { ...wire.agent, limits: { ...LIMITS, retries: 1 } } });
  wire.server.answers.push({ error: { message: "no money", type: "insufficient_quota" }, status: 429 });
  expect(await agent.converse("Hello")).toMatchObject({ state: "failed" });
  wire.server.answers.push({ error: { message: "broken", type: "server_error" }, status: 500 });
  expect(await agent.converse("Hello")).toMatchObject({ state: "completed" });
  expect(await agent.events("rate_limit.hit")).toEqual([]);
});
