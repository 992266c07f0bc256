/** The frame of the web app: who gets in, where one can go, and what happens when the server goes away. */
import { describe, expect, onTestFinished, test } from "vitest";
import { browser, openApp } from "../../support/browser.js";
import { bell, Person, toast } from "../../support/inbox.js";
import { Server } from "../../support/server.js";

describe("the entrance", () => {
  test("the address brings the token, which is gone from it at once, and is not needed again", async () => {
    const server = await Server.start();
    const page = await openApp(server);
    expect(page.url()).toBe(`${server.url}/#/threads`);
    await page.goto(`${server.url}/`);
    await page.getByRole("navigation", { name: "Places" }).waitFor();
  });

  test("who has none is told how to come by one; a wrong one is refused in words, a good one gets in", async () => {
    const server = await Server.start();
    const page = await (await browser()).newPage();
    await page.goto(server.url);
    await page.getByLabel("Token", { exact: true }).fill("tdg_wrong");
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("alert").getByText("does not know this token").waitFor();
    await page.getByLabel("Token", { exact: true }).fill(server.token);
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("navigation", { name: "Places" }).waitFor();
    await page.close();
  });

  test("an address that is opened where the page is already lets in whom it names; no step back brings a token, or is a trap", async () => {
    const server = await Server.start();
    const ada = await Person.on(server, "ada");
    const context = await (await browser()).newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(server.url);
    await page.getByLabel("Token", { exact: true }).waitFor();
    const places = page.getByRole("navigation", { name: "Places" });
    const isUser = async (name: string) => {
      await page.getByRole("button", { name: "Account" }).click();
      await page.getByText(`Signed in as ${name}`).waitFor();
      await page.keyboard.press("Escape");
    };
    await page.goto(`${server.url}/#token=${server.token}`);
    await places.waitFor();
    await isUser("local");
    await places.getByRole("link", { name: "Overview" }).click();
    await server.call("notification/notify", { content: "Not for ada", target: "user" });
    await toast(page, "Not for ada").waitFor();
    await page.goto(`${server.url}/#token=${ada.token}`);
    await bell(page, 0).waitFor();
    await isUser("ada");
    // It fades.
    await page.getByRole("alert").waitFor({ state: "detached" });
    expect(page.url()).toBe(`${server.url}/#/threads`);
    // By the page's own history: what a step leads to may lead further at once.
    const ask = (words: string) => page.evaluate<number | undefined>(words).catch(() => undefined);
    const place = () => ask("navigation.currentEntry.index");
    for (let index = (await place()) ?? 0; index > 0; index -= 1) {
      await ask("history.back()");
      await expect.poll(place, { timeout: 30_000 }).toBe(index - 1);
      expect(page.url()).not.toContain("token");
    }
    await ask("history.back()");
    await page.waitForURL("about:blank");
  });
});

test("every place can be reached", async () => {
  const server = await Server.start({ agent: "its own" });
  const page = await openApp(server);
  for (const name of ["Inbox", "Ledger", "Subscribers", "Overview", "Try it", "Conversations"]) {
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
  }
});

test("the server is killed under the page: it says so, and goes on when the server is back", async () => {
  const server = await Server.start();
  const page = await openApp(server, { complaints: /WebSocket connection to|Failed to load resource|ERR_/ });
  const { port } = new URL(server.url);
  await page.waitForLoadState("networkidle");
  await server.kill();
  await page
    .getByRole("status")
    .getByText(/Offline, trying again.* this page goes on from entry \d+ of the journal/)
    .waitFor();
  // Nobody has been there yet: it opens when it can.
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Ledger" }).click();
  const ledger = page.getByText("The ledger is empty");
  await page
    .getByText("This opens as soon as it is back")
    .or(ledger)
    .or(page.getByText("could not be read"))
    .first()
    .waitFor();
  await page.getByRole("button", { name: "Try now" }).click();
  const again = await Server.start({ data: server.data, args: ["--port", port] });
  await page.getByRole("status").getByText("Offline, trying again").waitFor({ state: "hidden" });
  await ledger.waitFor();
  await again.call("notification/notify", { content: "It is back", target: "user" });
  await page.getByRole("link", { name: "Inbox, 1 unread" }).waitFor();
  await expect.poll(() => page.title(), { timeout: 30_000 }).toBe("(1) Ledger · Tidings");
});

test("a part that cannot be loaded says so in its place, and the rest goes on", async () => {
  const server = await Server.start();
  const part = "**/assets/overview-*.js";
  const page = await openApp(server, {
    complaints: /Failed to (load resource|fetch dynamically)|ERR_FAILED|dynamically imported/,
    missing: part,
  });
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Overview" }).click();
  await page.getByRole("alert").getByText("This part of the page could not be fetched").waitFor();
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Ledger" }).click();
  await page.getByRole("grid", { name: "Ledger" }).or(page.getByText("The ledger is empty")).first().waitFor();
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Overview" }).click();
  await page.unroute(part);
  await page.getByRole("button", { name: "Load the page again" }).click();
  await page.getByText("Nothing has happened in the last 5 minutes").waitFor();
});
