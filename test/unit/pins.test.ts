/** What others see and rely on, pinned as literals: a change here is a change of the contract. */
import { expect, it } from "vitest";
import { CHANNELS } from "../../src/domain/axes.js";
import { MISS_CODES } from "../../src/domain/errors.js";
import { LIMITS } from "../../src/domain/limits.js";
import { ACK_ACTIONS, SUPPRESS_REASONS } from "../../src/domain/notification.js";
import { DEFAULT_POLICY } from "../../src/domain/policy.js";
import { INJECTION_POINTS, PRIORITIES } from "../../src/domain/priority.js";
import { POINTS_MAX, RESOLUTIONS, STEPS_MS } from "../../src/domain/series.js";
import { SEVERITIES } from "../../src/domain/severity.js";
import { SCOPES } from "../../src/domain/token.js";
import { STATES } from "../../src/domain/transitions.js";
import { SERVER_LIMITS } from "../../src/server/limits.js";

it("the words of the wire", () => {
  expect(STATES).toEqual(["PENDING", "DISPATCHED", "LOCKED", "DELIVERED", "ESCALATED", "FAILED", "SUPPRESSED"]);
  expect(CHANNELS).toEqual(["inbox", "floor", "agent", "context"]);
  expect(SEVERITIES).toEqual(["debug", "info", "warning", "error", "critical"]);
  expect(PRIORITIES).toEqual(["critical", "high", "normal", "low"]);
  expect(INJECTION_POINTS).toEqual(["next", "immediate", "turn_start", "after_tool", "turn_end"]);
  expect(SUPPRESS_REASONS).toEqual(["filtered", "muted", "superseded", "observed", "folded", "expired"]);
  expect(ACK_ACTIONS).toEqual(["rendered", "clicked", "dismissed"]);
  expect(SCOPES).toEqual(["ingest", "critical", "directive", "read", "ack", "agent", "admin"]);
  expect(MISS_CODES).toEqual(["stale_lease", "stale_revision", "wrong_channel", "terminal", "not_found"]);
});

it("the times and the limits", () => {
  expect(DEFAULT_POLICY).toEqual({
    agentTtlMs: 300_000,
    contextTtlMs: 604_800_000,
    systemTtlMs: 604_800_000,
    leaseMs: 60_000,
    attemptsMax: 3,
    backoffMs: 1_000,
    pendingPerThread: 1_000,
    pendingPerSource: 1_000,
    criticalPerMinute: 20,
  });
  expect(LIMITS).toEqual({
    idChars: 200,
    sourceChars: 200,
    subjectChars: 500,
    dedupeKeyChars: 500,
    contentChars: 16_384,
    directiveChars: 4_096,
    payloadBytes: 65_536,
    payloadDepth: 32,
    payloadKeys: 1_000,
    typeSegmentsMin: 2,
    typeSegmentsMax: 5,
    typeChars: 200,
    dedupeWindowMs: 60_000,
    ttlMsMax: 31_536_000_000,
    leaseMsMax: 3_600_000,
    pendingMax: 100_000,
    listLimit: 1_000,
    claimLimit: 100,
    blockTokens: 100_000,
    waitMsMax: 60_000,
    emitManyEvents: 100_000,
    messagesWaiting: 100,
    disabledSubscribers: 1_000,
    eventIdsListed: 100,
    matchesKept: 10,
    listVisits: 20_000,
  });
});

it("what is kept of what has happened over time, and what can be asked for", () => {
  expect(RESOLUTIONS).toEqual([
    { step_ms: 10_000, kept_ms: 21_600_000 },
    { step_ms: 60_000, kept_ms: 604_800_000 },
    { step_ms: 3_600_000, kept_ms: 34_560_000_000 },
  ]);
  expect(STEPS_MS).toEqual([10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000]);
  expect(POINTS_MAX).toBe(1_000);
});

it("the limits of the server", () => {
  expect(SERVER_LIMITS).toEqual({
    headerBytes: 16_384,
    bodyBytes: 1_048_576,
    bodyPieces: 16_384,
    jsonDepth: 64,
    jsonKeys: 100_000,
    tokenBytes: 67_108_864,
    eventsPerRequest: 1_000,
    attributesPerEvent: 100,
    signaturesPerRequest: 16,
    callsPerBatch: 100,
    answerBytes: 8_388_608,
    messageAnswerBytes: 262_144,
    messageBytes: 65_536,
    messageFragments: 64,
    messagePieces: 1_024,
    outgoingBytes: 1_048_576,
    callsPerSocket: 64,
    waits: 1_000,
    waitsPerUser: 100,
    sockets: 10_000,
    socketsPerUser: 2_000,
    connectionsPerAddress: 5_000,
    requestsWaiting: 100,
    itemsAtConnect: 100,
    heartbeatMs: 15_000,
    pingMs: 30_000,
    pongMs: 10_000,
    closeMs: 2_000,
    ratePerSecond: 10_000,
    rateBurst: 20_000,
    refusalsPerSecond: 10,
    refusalsBurst: 100,
    eventsWaiting: 10_000,
    headersMs: 10_000,
    requestMs: 30_000,
    keepAliveMs: 5_000,
    drainDelayMs: 50,
    drainMs: 10_000,
  });
});
