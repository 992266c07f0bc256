// Every view, light and dark, narrow and wide, of a server with something to see, and what passes by: into docs/screenshots.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { furnish } from "../test/support/furnish.mjs";
import { launchChromium } from "./chromium.mjs";

const OUTPUT = process.argv[2] ?? "docs/screenshots";
const WIDE = { name: "wide", width: 1_280, height: 860 };
const NARROW = { name: "narrow", width: 390, height: 844, isMobile: true, hasTouch: true };
const LOOKS = [WIDE, NARROW].flatMap((size) => ["light", "dark"].map((scheme) => ({ ...size, scheme })));
/** What passes by, and what is deep inside: in these alone. */
const FEW = [
  { ...WIDE, scheme: "light" },
  { ...NARROW, scheme: "dark" },
];
const DEEP = new Set(["dead-letter", "subscriber", "notification"]);
const SETTLE_MS = 800;
const PATIENCE_MS = 60_000;

mkdirSync(OUTPUT, { recursive: true });
const browser = await launchChromium();
try {
  await served(async (server) => {
    const places = await furnish(server.call);
    for (const look of LOOKS)
      await opened(server, look, async (page) => {
        for (const { name, at } of places) {
          if (DEEP.has(name) && !FEW.some(({ name, scheme }) => name === look.name && scheme === look.scheme)) continue;
          await go(page, server, at);
          if (name === "conversation") await toItem(page);
          await shoot(page, name, look);
          // The lower half of what is longer than a screen.
          if (name === "overview")
            await lower(page, page.getByRole("region", { name: "Wakes and carriers", exact: true }), look);
          if (name === "story") await lower(page, page.locator("[data-kind=settle]"), look);
        }
      });
    for (const look of FEW)
      for (const moment of [running, toast, situation])
        await opened(server, look, (page) => moment(page, server, look));
    const ready = gate(FEW.length, server.stop);
    await Promise.all(FEW.map((look) => opened(server, look, (page) => offline(page, server, look, ready))));
  });
  for (const look of FEW) await served((server) => opened(server, look, (page) => first(page, look), { isNew: true }));
} finally {
  await browser.close();
}

/** A conversation begins with a whole item, and not with the end of one. */
async function toItem(page) {
  const log = page.getByRole("log", { name: "Conversation" });
  await log.locator("article").first().waitFor({ timeout: PATIENCE_MS });
  await page.waitForTimeout(SETTLE_MS);
  await log.evaluate((element) => {
    const { top } = element.getBoundingClientRect();
    const items = [...element.querySelectorAll("article")].filter((one) => one.getBoundingClientRect().bottom > top);
    items.find((one) => one.getBoundingClientRect().top < top)?.scrollIntoView({ block: "start" });
  });
}

async function lower(page, part, look) {
  await part.scrollIntoViewIfNeeded({ timeout: PATIENCE_MS });
  await part.evaluate((element) => element.scrollIntoView({ block: "end" }));
  const name = new URL(page.url()).hash.startsWith("#/overview") ? "overview-lower" : "story-lower";
  await shoot(page, name, look);
}

/** An answer as it is spoken. */
async function running(page, server, look) {
  const { thread_id } = await server.call("thread/start");
  await go(page, server, `/threads/${thread_id}`);
  const input = "Please explain in detail how notifications reach me here.";
  const { turn_id } = await server.call("turn/start", { thread_id, input });
  await page.getByText("it is written down").waitFor({ timeout: PATIENCE_MS });
  await page.screenshot({ path: pathOf("running", look) });
  await server.call("turn/interrupt", { turn_id });
}

async function toast(page, server, look) {
  await go(page, server, "/overview");
  const content = `The certificate for ${look.name === WIDE.name ? "shop" : "docs"}.example.com expires in three days.`;
  await server.call("notification/notify", { content, severity: "warning", target: "user" });
  await page.getByText(content).waitFor({ timeout: PATIENCE_MS });
  await shoot(page, "toast", look);
}

/** One that is done. */
async function situation(page, server, look) {
  await go(page, server, "/try");
  const card = page.getByRole("article", { name: "A budget runs low" });
  await card.getByRole("button", { name: /^Fire/ }).click();
  await card.getByText("Done: ").waitFor({ timeout: PATIENCE_MS });
  await card.evaluate((element) => element.scrollIntoView({ block: "start" }));
  await shoot(page, "situation", look);
}

/** The server goes away under the page. */
async function offline(page, server, look, ready) {
  await go(page, server, "/inbox");
  await page.getByRole("grid").waitFor({ timeout: PATIENCE_MS });
  ready();
  await page.getByText("Offline, trying again").waitFor({ timeout: PATIENCE_MS });
  await shoot(page, "offline", look);
}

/** Does it when all have come. */
function gate(expected, act) {
  let missing = expected;
  return () => {
    missing -= 1;
    if (missing === 0) act();
  };
}

/** Nothing has happened yet: the empty state, and the tour, which begins by itself. */
async function first(page, look) {
  const step = (number) => page.getByRole("region", { name: `A short tour, step ${number} of 5` });
  await step(1).waitFor({ timeout: PATIENCE_MS });
  await shoot(page, "empty", look);
  await step(1).getByRole("button", { name: "Show me" }).click();
  await step(2).getByRole("button", { name: "Make it happen" }).click();
  await step(3).getByText("kept silent").waitFor({ timeout: PATIENCE_MS });
  await shoot(page, "tour", look);
}

async function served(use) {
  const data = mkdtempSync(join(tmpdir(), "tidings-screenshots-"));
  const child = spawn(process.execPath, ["dist/cli/main.js", "serve", "--port", "0", "--data", data, "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  try {
    const line = await new Promise((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
    const { url, token } = JSON.parse(line).ready;
    const call = async (method, params = {}) => {
      const response = await fetch(`${url}/rpc`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      });
      const { result, error } = await response.json();
      if (error !== undefined) throw new Error(`${method}: ${error.message}`);
      return result;
    };
    await use({ url, token, call, stop: () => child.kill() });
  } finally {
    child.kill();
    await ended;
    rmSync(data, { recursive: true, force: true });
  }
}

async function opened(
  { url, token },
  { width, height, scheme, isMobile = false, hasTouch = false },
  use,
  { isNew = false } = {},
) {
  const context = await browser.newContext({
    viewport: { width, height },
    isMobile,
    hasTouch,
    colorScheme: scheme,
    reducedMotion: "reduce",
  });
  // As who has been here before sees it.
  if (!isNew) await context.addInitScript(`localStorage.setItem("tidings.visited", "yes")`);
  const page = await context.newPage();
  await page.goto(`${url}/#token=${token}`);
  await page.getByRole("navigation", { name: "Places" }).waitFor({ state: "attached" });
  await use(page);
  await context.close();
}

async function go(page, { url }, at) {
  await page.goto(`${url}/#${at}`);
  await page.waitForLoadState("networkidle");
}

async function shoot(page, name, look) {
  await page.waitForTimeout(SETTLE_MS);
  await page.screenshot({ path: pathOf(name, look) });
}

function pathOf(name, { name: size, scheme }) {
  const path = join(OUTPUT, `${name}-${size}-${scheme}.png`);
  console.log(path);
  return path;
}
