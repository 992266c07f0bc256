import { describe, expect, it } from "vitest";
import { Turns } from "./turns.js";

/** Work that would go on for long, and says who has done a piece of it. */
async function work(turns: Turns, name: string, pieces: number, said: string[]): Promise<void> {
  const turn = turns.enter();
  for (let piece = 0; piece < pieces; piece += 1) {
    await turn.step();
    said.push(name);
    for (const until = performance.now() + 1; performance.now() < until; );
  }
}

describe("long work", () => {
  it("takes turns with other work of its kind, and with everything else", async () => {
    const turns = new Turns();
    const said: string[] = [];
    let looks = 0;
    const look = () => {
      looks += 1;
      said.push("else");
      if (looks < 10) setImmediate(look);
    };
    setImmediate(look);
    await Promise.all([work(turns, "a", 40, said), work(turns, "b", 40, said)]);
    // Nobody does more than a slice before another has a turn.
    const runs = said.join(" ").match(/a( a)*|b( b)*/g) ?? [];
    expect(runs.length).toBeGreaterThanOrEqual(10);
    for (const run of runs.slice(0, 10)) expect(run.split(" ").length).toBeLessThanOrEqual(5);
    expect(said.lastIndexOf("else")).toBeLessThan(said.lastIndexOf("b"));
  });

  it("has steps that are free, anew each time that everybody had a turn", async () => {
    const turns = new Turns();
    const long = turns.enter();
    while (long.step() === undefined);
    const light = turns.enter(2);
    expect([light.step(), light.step()]).toEqual([undefined, undefined]);
    expect(light.step()).toBeInstanceOf(Promise);
    await new Promise((resolve) => setImmediate(resolve));
    expect(light.step()).toBeUndefined();
  });
});
