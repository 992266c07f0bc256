import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchesType } from "../domain/event.js";
import { MatchIndex } from "./match_index.js";
import { parseSubscriber, type Subscriber } from "./subscriber.js";

function of(id: string, types: string[], more: { sources?: string[]; enabled?: boolean } = {}): Subscriber {
  const { sources, enabled = true } = more;
  return { ...parseSubscriber({ id, types, ...(sources === undefined ? {} : { sources }) }), enabled };
}

const ids = (subscribers: readonly Subscriber[], type: string, source = "any") =>
  new MatchIndex(subscribers).matching({ type, source }).map(({ id }) => id);

describe("which subscribers take an event", () => {
  it("is said by exact types and by prefixes of any length, each subscriber once", () => {
    const all = [
      of("exact", ["tool.call.failure"]),
      of("prefix", ["tool.*"]),
      of("longer", ["tool.call.*"]),
      of("both", ["tool.*", "tool.call.failure"]),
      of("other", ["tools.*", "tool.call", "call.failure", "tool.call.failure.late"]),
    ];
    expect(ids(all, "tool.call.failure").sort()).toEqual(["both", "exact", "longer", "prefix"]);
    expect(ids(all, "tool.stopped").sort()).toEqual(["both", "prefix"]);
    // A prefix stands for at least one segment more.
    expect(ids(all, "tool.call")).toEqual(["other", "prefix", "both"]);
  });

  it("and by sources, where there are any, unless it is not enabled", () => {
    const all = [
      of("ci", ["build.done"], { sources: ["ci", "nightly"] }),
      of("cd", ["build.*"], { sources: ["cd"] }),
      of("off", ["build.done"], { enabled: false }),
      of("all", ["build.done"]),
    ];
    expect(ids(all, "build.done", "ci")).toEqual(["all", "ci"]);
    expect(ids(all, "build.done", "cd")).toEqual(["all", "cd"]);
    expect(ids(all, "build.done", "constructor")).toEqual(["all"]);
  });

  it("as if every one of them had been asked", () => {
    const segment = fc.constantFrom("a", "b", "c");
    const type = fc.array(segment, { minLength: 2, maxLength: 4 }).map((parts) => parts.join("."));
    const prefix = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => `${parts.join(".")}.*`);
    const types = fc.array(fc.oneof(type, prefix), { minLength: 1, maxLength: 3 });
    const source = fc.constantFrom("x", "y");
    const sources = fc.option(fc.uniqueArray(source, { minLength: 1 }), { nil: undefined });
    const spec = fc.record({ types, sources, enabled: fc.boolean() });
    fc.assert(
      fc.property(fc.array(spec, { maxLength: 12 }), type, source, (specs, asked, from) => {
        const all = specs.map((one, index) =>
          of(`s${index}`, one.types, {
            enabled: one.enabled,
            ...(one.sources === undefined ? {} : { sources: one.sources }),
          }),
        );
        const wanted = all.filter(
          (one) =>
            one.enabled &&
            one.types.some((pattern) => matchesType(pattern, asked)) &&
            (one.sources === null || one.sources.includes(from)),
        );
        const index = new MatchIndex(all);
        // The second time it is known.
        for (let time = 0; time < 2; time += 1) {
          const found = index.matching({ type: asked, source: from }).map(({ id }) => id);
          expect(found.sort()).toEqual(wanted.map(({ id }) => id).sort());
        }
      }),
    );
  });
});
