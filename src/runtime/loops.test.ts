import fc from "fast-check";
import { expect, test } from "vitest";
import { DEFAULT_LOOPS, type Loop, LoopDetector, type LoopOptions } from "./loops.js";

interface Call {
  readonly name: string;
  readonly at: number;
}

/** All that was ever called, looked at anew each time: what the detector is to say, in the plainest words. */
class NaiveDetector {
  readonly #calls: Call[] = [];
  #told: { readonly loop: string; readonly repetitions: number; readonly at: number }[] = [];

  called(call: Call, { repetitions: enough, window_ms }: LoopOptions): Loop | null {
    this.#calls.push(call);
    const recent = this.#calls.filter(({ at }) => at >= call.at - window_ms).map(({ name }) => name);
    for (const length of [1, 2, 3, 4]) {
      const round = recent.slice(-length);
      let repetitions = 0;
      while (same(recent.slice(-length * (repetitions + 1)), times(round, repetitions + 1))) repetitions += 1;
      const shorter = [1, 2].some((part) => part < length && same(times(round.slice(0, part), length / part), round));
      if (round.length < length || repetitions < enough || shorter) continue;
      const loop = round.map((_, at) => [...round.slice(at), ...round.slice(0, at)].join()).sort()[0] ?? "";
      const before = this.#told.find((one) => one.loop === loop && one.at >= call.at - window_ms)?.repetitions ?? 0;
      const news = repetitions >= 2 * before;
      this.#told = this.#told.filter((one) => one.loop !== loop);
      this.#told.push({ loop, repetitions: news ? repetitions : before, at: call.at });
      if (news) return { pattern: round.join(" → "), repetitions };
    }
    return null;
  }
}

function times(round: readonly string[], count: number): string[] {
  return Number.isInteger(count) ? Array.from({ length: count }, () => round).flat() : [];
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, at) => name === other[at]);
}

test("finds what a look at everything finds, for whatever is called when", () => {
  const round = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 5 });
  const stretch = fc.record({ round, count: fc.integer({ min: 1, max: 12 }), ms: fc.constantFrom(0, 1, 3, 9, 40) });
  const options = fc.record({ repetitions: fc.integer({ min: 2, max: 5 }), window_ms: fc.constantFrom(20, 60, 200) });
  fc.assert(
    fc.property(fc.array(stretch, { maxLength: 8 }), options, (stretches, wanted) => {
      const detector = new LoopDetector();
      const naive = new NaiveDetector();
      let at = 1_000;
      for (const { round: names, count, ms } of stretches)
        for (const name of times(names, count)) {
          at += ms;
          const found = detector.called({ name, input: {} }, at, wanted);
          expect(found).toEqual(naive.called({ name, at }, wanted));
        }
    }),
    { numRuns: 500 },
  );
});

test("what it keeps in mind is bounded, however long it goes on", () => {
  const detector = new LoopDetector();
  const told: number[] = [];
  for (let call = 1; call <= 20_000; call += 1) {
    const loop = detector.called({ name: "again", input: {} }, 1_000, DEFAULT_LOOPS);
    if (loop !== null) told.push(loop.repetitions);
  }
  expect(told).toEqual([3, 6, 12, 24, 48, 96, 192, 384]);
});

test("arguments are told apart by what they say, not by how they are written", () => {
  const detector = new LoopDetector();
  const called = (input: Record<string, number>) => detector.called({ name: "a", input }, 0, DEFAULT_LOOPS);
  expect([called({ x: 1, y: 2 }), called({ y: 2, x: 1 }), called({ x: 2, y: 1 })]).toEqual([null, null, null]);
  expect([called({ x: 1, y: 2 }), called({ y: 2, x: 1 }), called({ x: 1, y: 2 })]).toEqual([
    null,
    null,
    { pattern: "a", repetitions: 3 },
  ]);
});
