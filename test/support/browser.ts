/**
 * The web app as its users have it: a real browser, on the page of a real server.
 *
 * ```ts
 * const server = await Server.start({ agent: "its own" });
 * const page = await openApp(server);                 // light, wide; gone when the test is over
 * await page.getByRole("link", { name: "Inbox" }).click();
 * ```
 *
 * What the page says in its console, what its policy refuses and what it asks of anybody but its server fails the test.
 */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, expect, onTestFinished } from "vitest";
import { launchChromium } from "../../scripts/chromium.mjs";
import type { Server } from "./server.js";

/** In the page, before anything of it runs. */
const REMEMBER_VISIT = 'if (location.protocol.startsWith("http")) localStorage.setItem("tidings.visited", "done")';
/** Generous: a loaded machine is slow, and never wrong. */
const LIMIT_MS = 30_000;

let launched: Promise<Browser> | undefined;

/** The system's, or the one that comes by npm; one for all the tests of a file. */
export function browser(): Promise<Browser> {
  if (launched === undefined) {
    launched = launchChromium();
    afterAllOnce();
  }
  return launched;
}

function afterAllOnce(): void {
  afterAllClose.push(async () => {
    await (await launched)?.close();
    launched = undefined;
  });
}

const afterAllClose: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of afterAllClose.splice(0)) await close();
});

export interface AppOptions {
  /** A token other than the server's own. */
  readonly token?: string;
  /** Where to, like `/inbox`. */
  readonly at?: string;
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "light" | "dark";
  readonly motion?: "reduce" | "no-preference";
  /** Another tab of the same browser: they share what the browser keeps. */
  readonly beside?: Page;
  /** As one who was never here: the guided visit begins by itself. Without it, it does not. */
  readonly visit?: "first";
  /** Files that cannot be had from the server, as Playwright's routes name them. */
  readonly missing?: string;
  /** What the console may say, beside nothing: a server that is killed is complained about. */
  readonly complaints?: RegExp;
}

export async function openApp(server: Pick<Server, "url" | "token">, options: AppOptions = {}): Promise<Page> {
  const { at = "", beside, complaints } = options;
  const context = beside?.context() ?? (await newContext(options));
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  if (options.missing !== undefined) await page.route(options.missing, (route) => route.abort());
  const wrong: string[] = [];
  const say = (text: string) => {
    if (complaints?.test(text) !== true) wrong.push(text);
  };
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") say(message.text());
  });
  page.on("pageerror", (error) => say(`${error.name}: ${error.message}`));
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:" && host !== new URL(server.url).host)
      wrong.push(`it asks ${request.url()}`);
  });
  onTestFinished(() => expect(wrong, "what the page complained of").toEqual([]));
  await page.goto(`${server.url}/#token=${options.token ?? server.token}`);
  await page.getByRole("navigation", { name: "Places" }).waitFor({ state: "attached" });
  if (at !== "") await page.goto(`${server.url}/#${at}`);
  return page;
}

async function newContext({
  width = 1_280,
  height = 800,
  scheme = "light",
  motion,
  visit,
}: AppOptions): Promise<BrowserContext> {
  const context = await (await browser()).newContext({
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: motion ?? "no-preference",
  });
  onTestFinished(() => context.close());
  if (visit !== "first") await context.addInitScript({ content: REMEMBER_VISIT });
  return context;
}
