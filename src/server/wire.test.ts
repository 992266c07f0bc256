import { expect, it } from "vitest";
import { AccessError, ConflictError, InvalidInputError, OverloadedError, StoreError } from "../domain/errors.js";
import { httpStatusOf, publicReport, rpcErrorOf } from "./wire.js";

it("a defect shows nothing of itself", () => {
  const defect = new TypeError("cannot read /home/ada/.tidings of tdg_secret");
  for (const shown of [publicReport(defect), rpcErrorOf(defect), publicReport("tdg_secret"), rpcErrorOf(undefined)])
    expect(JSON.stringify(shown)).not.toMatch(/secret|ada|read/);
  expect(httpStatusOf(defect)).toBe(500);
  expect(rpcErrorOf(defect)).toMatchObject({ code: -32603, data: { code: "internal" } });
});

it("each kind of error has its status and its code", () => {
  const cases: readonly (readonly [Error, number, number])[] = [
    [new InvalidInputError("type", "is required"), 400, -32602],
    [new AccessError("unauthorized", "no token"), 401, -32002],
    [new AccessError("forbidden", "no scope"), 403, -32003],
    [new ConflictError("idempotency_mismatch", "another body"), 409, -32009],
    [new OverloadedError("later", 1_500), 429, -32001],
    [new StoreError("store_busy", "busy"), 503, -32001],
    [new StoreError("store_io", "broken"), 503, -32603],
  ];
  for (const [error, status, code] of cases)
    expect([httpStatusOf(error), rpcErrorOf(error).code]).toEqual([status, code]);
  expect(rpcErrorOf(new InvalidInputError("type", "is required")).data).toMatchObject({
    code: "invalid_input",
    field: "type",
    reason: "is required",
  });
  expect(rpcErrorOf(new OverloadedError("later", 1_500)).data.retry_after_ms).toBe(1_500);
});

it("a miss says what is in the way", () => {
  const miss = { miss: "stale_revision", id: "x", message: "older" } as const;
  expect(rpcErrorOf(miss)).toEqual({
    code: -32009,
    message: "older",
    data: { code: "conflict", reason: "stale_revision", id: "x" },
  });
  expect(rpcErrorOf({ ...miss, miss: "not_found" })).toMatchObject({ code: -32004, data: { code: "not_found" } });
});
