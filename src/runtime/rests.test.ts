import { describe, expect, test } from "vitest";
import { threadId, userId } from "../domain/ids.js";
import { Rests, retryRest } from "./rests.js";

const CHAT = threadId("chat");
const ADA = userId("ada");

describe("a thread that could not be woken", () => {
  test("rests twice as long each time, up to a bound, and not any more when it was woken", () => {
    const rests = new Rests();
    expect(rests.until(CHAT, 0)).toBeNull();
    const ends = [0, 1_000, 3_000, 7_000, 20_000].map((now) => rests.refused(CHAT, ADA, now) - now);
    expect(ends).toEqual([500, 1_000, 2_000, 4_000, 5_000]);
    expect(rests.until(CHAT, 24_999)).toBe(25_000);
    expect(rests.until(CHAT, 25_000)).toBeNull();
    rests.woken(CHAT);
    expect(rests.refused(CHAT, ADA, 30_000)).toBe(30_500);
  });

  test("rests no longer than at first once something of its user has changed", () => {
    const rests = new Rests();
    for (const now of [0, 1_000, 3_000, 7_000, 20_000]) rests.refused(CHAT, ADA, now);
    rests.changed(userId("bea"));
    expect(rests.until(CHAT, 20_100)).toBe(25_000);
    rests.changed(ADA);
    expect(rests.until(CHAT, 20_100)).toBe(20_500);
    expect(rests.until(CHAT, 20_500)).toBeNull();
  });
});

test("after errors the rest is longer each time, up to a bound", () => {
  expect([1, 2, 3, 7, 100].map(retryRest)).toEqual([500, 1_000, 2_000, 30_000, 30_000]);
});
