import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Cell, COLUMNS, STATES, TRANSITIONS } from "../../src/domain/transitions.js";

const ROOT = new URL("../../", import.meta.url).pathname;
const SPEC = readFileSync(join(ROOT, "docs/SPEC.md"), "utf8");

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(test|suite)\.ts$|rig\.mjs$/.test(name))
    .map((name) => readFileSync(join(ROOT, folder, name), "utf8"));
}

it("every invariant of the specification is cited by a test, and no test cites another", () => {
  const stated = new Set([...SPEC.matchAll(/^\| (I\d+) \|/gm)].map(([, id]) => id));
  const cited = new Set<string | undefined>();
  for (const source of [...sources("src"), ...sources("test")])
    for (const [, list] of source.matchAll(/\(((?:[IT]\d+)(?:, [IT]\d+)*)\)/g))
      for (const id of list?.split(", ") ?? []) if (id.startsWith("I")) cited.add(id);
  expect(stated.size).toBeGreaterThan(10);
  expect([...stated].filter((id) => !cited.has(id))).toEqual([]);
  expect([...cited].filter((id) => !stated.has(id))).toEqual([]);
});

it("the grid in the specification is the table in the code", () => {
  const shown = SPEC.slice(SPEC.indexOf("<!-- grid:begin -->"), SPEC.indexOf("<!-- grid:end -->"));
  expect(shown.replace("<!-- grid:begin -->", "").trim()).toBe(gridTable());
});

function gridTable(): string {
  const head = `| state | ${COLUMNS.join(" | ")} |`;
  const rule = `|---|${COLUMNS.map(() => "---|").join("")}`;
  const rows = STATES.map(
    (state) => `| ${state} | ${COLUMNS.map((column) => words(TRANSITIONS[state][column])).join(" | ")} |`,
  );
  return [head, rule, ...rows].join("\n");
}

const MERGES = {
  revise: "merged",
  revise_again: "merged, again",
  new_linked: "new, linked",
  count: "counted in the window, then new",
  new: "new",
};

function words(cell: Cell): string {
  if ("to" in cell) return cell.to.join(", ");
  if ("again" in cell) return "again";
  if ("worded" in cell) return "closed and worded";
  if ("same" in cell) return "same answer";
  if ("miss" in cell) return `miss \`${cell.miss}\``;
  return MERGES[cell.merge];
}
