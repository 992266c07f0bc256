/** What holds for every view: who cannot see or point can use it, it is small, and it is readable in any width and light. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApp } from "../../support/browser.js";
import { furnish } from "../../support/furnish.mjs";
import { Server } from "../../support/server.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Compressed, as it goes over the wire. */
const SCRIPT_BYTES_MAX = 250_000;

let data: string;
let server: Server;
let places: readonly { name: string; at: string }[];

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), "tidings-test-"));
  server = await Server.start({ data, agent: "its own", keep: true });
  places = await furnish((method, params) => server.call(method, params));
});
afterAll(async () => {
  await server.kill();
  await rm(data, { recursive: true, force: true });
});

describe.each([
  { scheme: "light", width: 1_440, height: 900 },
  { scheme: "dark", width: 1_440, height: 900 },
  { scheme: "light", width: 390, height: 844 },
  { scheme: "dark", width: 390, height: 844 },
] as const)("$scheme, $width wide", (look) => {
  test("axe finds nothing serious, and nothing is wider than the page", async () => {
    const page = await openApp(server, { ...look, motion: "reduce" });
    const found: Record<string, unknown> = {};
    for (const { name, at } of places) {
      await page.goto(`${server.url}/#${at}`);
      await settled(page);
      const wrong = await seriousOn(page);
      if (wrong.length > 0) found[name] = wrong;
      expect(await page.evaluate("document.documentElement.scrollWidth"), name).toBeLessThanOrEqual(look.width);
    }
    expect(found).toEqual({});
  });
});

test("the first load is small, and everything comes from the server", async () => {
  const page = await openApp(server);
  await settled(page);
  const loaded = (await page.evaluate(
    `performance.getEntriesByType("resource").map((one) => ({ name: one.name, bytes: one.encodedBodySize, at: one.startTime }))`,
  )) as { name: string; bytes: number; at: number }[];
  // What comes later is fetched ahead, when there is nothing else to do.
  const shownAt = (await page.evaluate(`performance.getEntriesByName("tidings:shown")[0].startTime`)) as number;
  const scripts = loaded.filter(({ name, at }) => name.endsWith(".js") && at < shownAt);
  expect(scripts.length).toBeGreaterThan(0);
  expect(scripts.every(({ bytes }) => bytes > 0)).toBe(true);
  expect(scripts.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(SCRIPT_BYTES_MAX);
  expect(loaded.every(({ name }) => name.startsWith(server.url))).toBe(true);
});

/** Nothing is being loaded any more. */
async function settled(page: Page): Promise<void> {
  await page.waitForLoadState("networkidle");
  await expect
    .poll(() => page.locator(".mantine-Loader-root, .mantine-Skeleton-root").count(), { timeout: 30_000 })
    .toBe(0);
}

async function seriousOn(page: Page): Promise<object[]> {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })`,
  )) as AxeResults;
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => ({ id, help, nodes: nodes.slice(0, 5).map(({ html }) => html.slice(0, 200)) }));
}
