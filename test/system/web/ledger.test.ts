/** The ledger: every notification, live, whoever was told; and the story of each. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApp } from "../../support/browser.js";
import { bell, openLive, Person, row } from "../../support/inbox.js";
import { Server } from "../../support/server.js";

const LIMIT = { timeout: 30_000 };

let server: Server;
beforeAll(async () => {
  const data = await mkdtemp(join(tmpdir(), "tidings-web-ledger-"));
  server = await Server.start({ data, keep: true, agent: "its own" });
});
afterAll(async () => {
  expect(await server.stop()).toBe(0);
  await rm(server.data, { recursive: true, force: true });
});

const story = (page: Page) => page.getByRole("region", { name: "Story", exact: true });
const outcome = (page: Page) => story(page).getByRole("note", { name: "What became of it" });
const machine = (page: Page) => story(page).getByRole("img", { name: "The way that it took" });
const wayOf = async (page: Page) => (await machine(page).getAttribute("aria-label"))?.replace(/^.*: /, "");

describe("a story", () => {
  test("of what an agent was told, and nobody pushed: with the exact text of the request", async () => {
    const ada = await Person.on(server, "ada asks");
    const thread_id = await ada.thread();
    const page = await openLive(server, { token: ada.token, at: "/ledger" });
    await page.getByText("The ledger is empty").waitFor();
    const id = await ada.notify("The linter has <new> rules", { target: "agent", thread_id, data: { rules: 7 } });
    // Nothing is pushed of it, and it is there all the same; and so is what becomes of it.
    await row(page, "Ledger", "The linter has <new> rules").getByText("pending").waitFor();
    await ada.call("turn/start", { thread_id, input: "hello" });
    await row(page, "Ledger", "The linter has <new> rules").getByText("delivered").waitFor();
    await page.getByText("For the agent", { exact: true }).click();
    await row(page, "Ledger", "The linter has <new> rules").getByText("The linter has").click();
    await story(page).getByText("the agent was told").first().waitFor();
    expect(page.url()).toBe(`${server.url}/#/ledger/${id}`);
    expect(await wayOf(page)).toBe("pending, dispatched, locked, delivered");

    await outcome(page).getByText("The agent was told it as context; you were not interrupted.").waitFor();

    const told = await ada.story(id);
    const block = told.find(({ carrier }) => carrier?.block)?.carrier?.block;
    expect(block?.text).toContain("The linter has");
    const shown = story(page).getByRole("region", { name: "What the model was told, exactly" });
    expect(await shown.textContent()).toBe(block?.text);
    const held = told.find(({ kind }) => kind === "collect");
    expect(held?.owner).toBe("hosted");
    await story(page).getByText("held by: the server's own agent").waitFor();
    // What is not a word of every day says what it means.
    await story(page).getByText(`lease: ${held?.lease_epoch}`).first().hover();
    await page.getByRole("tooltip").getByText("Its lease epoch: it counts who has had it").waitFor();
    // In words for people: no bare time, an id's end with the whole of it at hand, and how long each step took.
    const content = story(page).getByRole("region", { name: "Story, content" });
    const text = await content.textContent();
    expect(text).not.toMatch(/\d{4}-\d\d-\d\dT/);
    expect(text).toMatch(/for the agent as context: deadline in .*, priority normal\./);
    const opened = told.find(({ kind }) => kind === "carrier");
    const carrier = story(page)
      .getByRole("button", { name: `Copy the id ${opened?.carrier?.id}` })
      .first();
    expect(await carrier.textContent()).toBe(`…${opened?.carrier?.id.slice(-6)}`);
    await carrier.hover();
    await page
      .getByRole("tooltip")
      .getByText(opened?.carrier?.id ?? "none")
      .waitFor();
    await story(page)
      .getByText(/^\+[\d.]+ (ms|s)$/)
      .first()
      .waitFor();
    // What is for whoever looks into how it works is folded away.
    expect(await content.textContent()).not.toContain("Lease epoch");
    await story(page).getByRole("button", { name: "Details" }).click();
    await story(page).getByRole("row", { name: "Declared address session, target agent, handler system" }).waitFor();
    await story(page).getByRole("row", { name: "Goes to the agent, as context" }).waitFor();
    await story(page).getByRole("button", { name: "Show the event" }).click();
    expect(await story(page).getByRole("region", { name: "The event" }).textContent()).toContain('"direct.notify"');
    await bell(page, 0).waitFor();
  });

  test("of what the agent told the user: that it acknowledged it, how, and in which turn", async () => {
    const ada = await Person.on(server, "ada is told");
    const thread_id = await ada.thread();
    const id = await ada.notify("The certificate ends today", { handler: "agent", thread_id });
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ state: "DELIVERED", channel: "agent" });
    const page = await openApp(server, { token: ada.token, at: `/ledger/${id}` });
    await outcome(page).getByText("The agent was told, and told you.").waitFor();
    const lines = await ada.story(id);
    const turn_id = lines.find(({ carrier }) => carrier !== undefined)?.carrier?.turn_id;
    expect(lines.at(-1)).toMatchObject({ kind: "settle", acknowledged: { turn_id } });
    const last = story(page).locator("[data-kind=settle]");
    await last.getByText("Acknowledged by the agent", { exact: true }).waitFor();
    await last.getByText("with the tool acknowledge_notifications, in the turn").waitFor();
    await last.getByRole("button", { name: `Copy the id ${turn_id}` }).waitFor();
    expect(await story(page).getByText("Settled", { exact: true }).count()).toBe(0);
  });

  test("of what the agent brought up itself: nothing was taken from it", async () => {
    const ada = await Person.on(server, "ada is promoted to");
    const thread_id = await ada.thread();
    const directive = 'call tell_user {"text":"The queue is stuck since noon"}';
    const id = await ada.notify("queue", { target: "agent", handler: "agent", directive, thread_id });
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ reason: "promoted", channel: "floor" });
    const page = await openApp(server, { token: ada.token, at: `/ledger/${id}` });
    await outcome(page).getByText("Brought by the agent to your conversation").waitFor();
    await story(page).getByText("Brought to the user", { exact: true }).waitFor();
    await ada.call("notification/ack", { id, revision: (await ada.read(id)).revision, action: "clicked" });
    await outcome(page).getByText("Shown to you in the conversation and opened; the agent brought it up.").waitFor();
    expect(await story(page).textContent()).not.toMatch(/taken (from|to)/i);
  });

  test("of an escalation, and of a dead letter that is sent again, once", async () => {
    const short = await Server.start({ args: ["--agent-ttl-ms", "300", "--system-ttl-ms", "1500"] });
    const ada = await Person.on(short, "ada");
    const id = await ada.notify("Tell them about the quota", { handler: "agent" });
    // Before it is looked at: a page that is there when it is taken to the user shows it, and it is delivered.
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ state: "FAILED" });
    const page = await openApp(short, { token: ada.token, at: `/ledger/${id}` });
    await story(page).getByText("Taken to the user", { exact: true }).waitFor();
    await story(page).getByText("by: the watchdog").first().waitFor();
    await story(page).getByText("reason: deadline").waitFor();
    await story(page).getByText("Dead letter", { exact: true }).waitFor();
    expect(await wayOf(page)).toBe("pending, locked, escalated, failed");
    await outcome(page).getByText("Meant for your inbox; nobody saw it in time.").waitFor();

    await page.getByText("Dead letters", { exact: true }).click();
    await row(page, "Ledger", "Tell them about the quota").getByText("failed").waitFor();
    await story(page).getByRole("button", { name: "Send again" }).click();
    await page.waitForURL((url) => url.hash.startsWith("#/ledger/") && !url.hash.endsWith(id));
    const again = page.url().split("/").at(-1) ?? "";
    expect(await ada.read(again)).toMatchObject({ redrive_of: id });
    await story(page).getByRole("link", { name: "The dead letter that it sends again" }).click();
    await page.waitForURL(`${short.url}/#/ledger/${id}`);
    await story(page).getByText("Sent again", { exact: true }).waitFor();
    expect(await story(page).getByRole("button", { name: "Send again" }).count()).toBe(0);
    await story(page).getByRole("link", { name: "The one that it was sent again as" }).click();
    await page.waitForURL(`${short.url}/#/ledger/${again}`);
  });

  test("of what came again and again: merged, counted, folded; and of what a rule kept back", async () => {
    const ada = await Person.on(server, "ada repeats");
    let id = "";
    for (let times = 1; times <= 20; times += 1) id = await ada.notify("Again", { dedupe_key: "again" });
    const page = await openApp(server, { token: ada.token, at: `/ledger/${id}` });
    await story(page).getByText("Merged", { exact: true }).first().waitFor();
    await row(page, "Ledger", "Again").waitFor();
    const merges = story(page).getByText("Merged", { exact: true });
    expect(await merges.count()).toBeLessThan(19);
    await story(page)
      .getByRole("button", { name: /^Show \d+ lines like these$/ })
      .click();
    await expect.poll(() => merges.count(), LIMIT).toBe(19);
    await story(page).getByText("20 times", { exact: true }).waitFor();
    expect(await wayOf(page)).toBe("pending, dispatched");
    // It is seen and done with while its story is open.
    await ada.call("notification/ack", { id, revision: 1, action: "dismissed" });
    await story(page).getByText("Acknowledged", { exact: true }).waitFor();
    await expect.poll(() => wayOf(page), LIMIT).toBe("pending, dispatched, locked, delivered");

    const thread_id = await ada.thread();
    const gone = await ada.notify("Too late", { target: "agent", thread_id });
    await ada.call("thread/close", { thread_id });
    await page.goto(`${server.url}/#/ledger/${gone}`);
    await story(page).getByText("Kept back", { exact: true }).waitFor();
    await story(page).getByText("reason: expired").waitFor();
    expect(await wayOf(page)).toBe("pending, suppressed");
    await outcome(page).getByText("Kept back: no agent wanted it in time; nobody was told.").waitFor();
  });
});

describe("the table", () => {
  const shownRows = (page: Page) => page.getByRole("grid", { name: "Ledger" }).locator("[role=rowgroup] > [role=row]");

  test("of who may see everybody's has a column and a filter for users", async () => {
    const [ada, bob] = [await Person.on(server, "ada of two"), await Person.on(server, "bob of two")];
    await ada.notify("This is Ada's");
    await bob.notify("This is Bob's", { severity: "error" });
    const page = await openApp(server, { at: "/ledger" });
    await row(page, "Ledger", "This is Ada's").getByText("ada of two").waitFor();
    await page.getByRole("combobox", { name: "User" }).fill("bob of two");
    await page.keyboard.press("Enter");
    await row(page, "Ledger", "This is Ada's").waitFor({ state: "detached" });
    expect(await shownRows(page).count()).toBe(1);
    await page.getByRole("button", { name: "Any user" }).click();
    await row(page, "Ledger", "This is Ada's").waitFor();
    await page.getByRole("button", { name: "Severity: any" }).click();
    await page.getByRole("menuitemcheckbox", { name: "error" }).click();
    await page.keyboard.press("Escape");
    await row(page, "Ledger", "This is Ada's").waitFor({ state: "detached" });
    await row(page, "Ledger", "This is Bob's").waitFor();
    const own = await openApp(server, { token: ada.token, at: "/ledger" });
    await row(own, "Ledger", "This is Ada's").waitFor();
    expect(await own.getByRole("columnheader", { name: "User" }).count()).toBe(0);
    expect(await own.getByRole("combobox", { name: "User" }).count()).toBe(0);
    expect(await row(own, "Ledger", "This is Bob's").count()).toBe(0);
  });

  test("on a phone has its parts, its filters behind a button, its times, and conversations by their names", async () => {
    const ada = await Person.on(server, "ada has a phone");
    const thread_id = await ada.thread();
    await ada.call("turn/start", { thread_id, input: "Is the build through?" });
    await ada.notify("An error that takes more than one line on a screen as small as this one", { severity: "error" });
    const told = await ada.notify("In the conversation", { thread_id });
    for (const width of [320, 390, 768]) {
      const page = await openApp(server, { token: ada.token, at: "/ledger", width });
      await row(page, "Ledger", "In the conversation").waitFor();
      const filter = page.getByRole("button", { name: "Filter", exact: true });
      for (const part of [filter, page.getByLabel("Part of the ledger").first()]) {
        const box = await part.boundingBox();
        expect(box?.x).toBeGreaterThanOrEqual(0);
        expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
      }
      expect(await row(page, "Ledger", "An error that").getByRole("time").isVisible()).toBe(true);
      await filter.click();
      await page.getByRole("dialog", { name: "Filter" }).getByText("error", { exact: true }).click();
      await row(page, "Ledger", "In the conversation").waitFor({ state: "detached" });
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Filter, 1 chosen" }).click();
      await page.getByRole("button", { name: "Clear filters" }).click();
      await row(page, "Ledger", "In the conversation").waitFor();
      await page.close();
    }
    const page = await openApp(server, { token: ada.token, at: "/ledger" });
    await row(page, "Ledger", "In the conversation").getByText("Is the build through?").waitFor();
    await page.goto(`${server.url}/#/ledger/${told}`);
    await story(page).getByRole("link", { name: "Conversation: Is the build through?" }).waitFor();
  });

  test("has a column for counts when something came more than once", async () => {
    const ada = await Person.on(server, "ada counts");
    await ada.notify("Once", { dedupe_key: "count" });
    const page = await openLive(server, { token: ada.token, at: "/ledger" });
    await row(page, "Ledger", "Once").waitFor();
    const column = page.getByRole("columnheader", { name: "Count" });
    expect(await column.count()).toBe(0);
    await ada.notify("Once", { dedupe_key: "count" });
    await column.waitFor();
    await row(page, "Ledger", "Once").getByText("2", { exact: true }).waitFor();
  });

  test("has no column for users while there is but one", async () => {
    const alone = await Server.start();
    const ada = await Person.on(alone, "ada alone");
    await ada.notify("The first one");
    const page = await openLive(alone, { at: "/ledger" });
    await row(page, "Ledger", "The first one").waitFor();
    const column = page.getByRole("columnheader", { name: "User" });
    expect(await column.count()).toBe(0);
    await (await Person.on(alone, "bob")).notify("Another's");
    await row(page, "Ledger", "Another's").getByText("bob", { exact: true }).waitFor();
    await column.waitFor();
  });

  test("has what is or was to be told; what was kept back, and everything, are a click away", async () => {
    const ada = await Person.on(server, "ada keeps back");
    const page = await openApp(server, { token: ada.token, at: "/ledger" });
    await page.getByText("The ledger is empty").waitFor();
    const thread_id = await ada.thread();
    await ada.notify("This is to be told");
    await ada.notify("For the agent alone", { target: "agent", thread_id });
    const event = { type: "agent.turn.end", source: "loop", severity: "info", payload: { turn_id: "turn seven" } };
    await ada.call("event/emit", event);
    const part = (name: string) => page.getByText(name, { exact: true }).click();
    const [told, agents, kept] = ["This is to be told", "For the agent alone", "turn seven"].map((text) =>
      row(page, "Ledger", text),
    ) as [Locator, Locator, Locator];
    await told.waitFor();
    await agents.waitFor();
    expect(await kept.count()).toBe(0);
    // Not as a choice of the state either: it is a part of its own.
    await page.getByRole("button", { name: "State: any" }).click();
    await page.getByRole("menuitemcheckbox", { name: "pending" }).waitFor();
    expect(await page.getByRole("menuitemcheckbox", { name: "suppressed" }).count()).toBe(0);
    await page.keyboard.press("Escape");

    await part("Kept back");
    await kept.getByText("suppressed").waitFor();
    expect(await shownRows(page).count()).toBe(1);
    await kept.click();
    await outcome(page).getByText("Kept back: below its subscriber's filter; nobody was told.").waitFor();
    await part("Everything");
    await told.waitFor();
    expect(await shownRows(page).count()).toBe(3);
    await part("For the agent");
    await told.waitFor({ state: "detached" });
    await agents.waitFor();
    expect(await shownRows(page).count()).toBe(1);
    await part("Dead letters");
    await page.getByText("No dead letters").waitFor();
  });

  test("does not move under the pointer while others come: it says how many, and shows them when the pointer is gone", async () => {
    for (const [place, list, label] of [
      ["/ledger", "Ledger", "Story"],
      ["/inbox", "Inbox", "Notification"],
    ] as const) {
      const ada = await Person.on(server, `ada points at the ${list}`);
      for (const word of ["first", "second"]) await ada.notify(`The ${word} of two`);
      const page = await openLive(server, { token: ada.token, at: place });
      const pointed = row(page, list, "The second of two");
      const box = await pointed.boundingBox();
      if (box === null) throw new Error("the row is nowhere");
      const at = { x: box.x + 150, y: box.y + box.height / 2 };
      await page.mouse.move(at.x, at.y);
      for (const word of ["third", "fourth"]) await ada.notify(`The ${word} one`);
      await page.getByRole("button", { name: "2 new ones" }).waitFor();
      expect(await pointed.boundingBox()).toEqual(box);
      await page.mouse.down();
      await ada.notify("The fifth one");
      await page.getByRole("button", { name: "3 new ones" }).waitFor();
      await page.mouse.up();
      await page.getByRole("region", { name: label, exact: true }).getByText("The second of two").waitFor();
      await page.keyboard.press("Escape");

      await page.mouse.move(20, 400);
      await page.getByRole("button", { name: "3 new ones" }).waitFor({ state: "detached" });
      await expect.poll(async () => (await row(page, list, "The fifth one").boundingBox())?.y, LIMIT).toBe(box.y);
      await page.close();
    }
  });

  test("takes ten thousand while it is scrolled and used, in order, each once; and reads them again page by page", async () => {
    const COUNT = 10_000;
    const BATCH = 1_000;
    const ada = await Person.on(server, "ada has much");
    await ada.emit(0, 200);
    const page = await openLive(server, { token: ada.token, at: "/ledger" });
    const grid = page.getByRole("grid", { name: "Ledger" });
    await row(page, "Ledger", "number 199 of them").waitFor();

    let sent = 200;
    const sending = (async () => {
      for (; sent < COUNT; sent += Math.min(BATCH, COUNT - sent)) await ada.emit(sent, Math.min(BATCH, COUNT - sent));
    })();
    const box = await grid.boundingBox();
    if (box === null) throw new Error("the table is nowhere");
    await page.mouse.move(box.x + 200, box.y + 200);
    let opened = 0;
    for (let round = 0; sent < COUNT; round += 1) {
      await page.mouse.wheel(0, round % 3 === 2 ? -400 : 700);
      // A click does what it is for, however much comes.
      if (round % 4 === 0) {
        // The wheel may still be turning between the button's way down and up: then one clicks again.
        const click = async () => {
          await grid.click({ position: { x: 150, y: 200 } });
          return story(page).count();
        };
        await expect.poll(click, { timeout: 30_000, interval: 500 }).toBe(1);
        await story(page).getByText("Made", { exact: true }).waitFor();
        await page.keyboard.press("Escape");
        await story(page).waitFor({ state: "detached" });
        opened += 1;
      }
    }
    await sending;
    expect(opened).toBeGreaterThan(0);

    const status = page.getByText(/^[\d,]+ notifications/);
    await expect.poll(() => status.textContent(), { timeout: 60_000 }).toMatch(/^10,000 notifications/);
    await inOrder(page, COUNT);
    await page.reload();
    await row(page, "Ledger", `number ${COUNT - 1} of them`).waitFor();
    expect(await status.textContent()).not.toMatch(/^10,000/);
    const atEnd = async () => {
      await scrollTo(page, 1);
      return status.textContent();
    };
    await expect.poll(atEnd, { timeout: 60_000, interval: 20 }).toBe("10,000 notifications, without those kept back");
    await inOrder(page, COUNT);
    // One key does the same.
    await page.reload();
    await row(page, "Ledger", `number ${COUNT - 1} of them`).waitFor();
    await page.keyboard.press("End");
    await expect
      .poll(() => status.textContent(), { timeout: 60_000 })
      .toBe("10,000 notifications, without those kept back");
    await expect.poll(() => page.locator("[aria-selected=true]").textContent(), LIMIT).toContain("number 0 of them");
  });

  /** 0 is the upper end, 1 the lower. */
  async function scrollTo(page: Page, part: number): Promise<void> {
    await page.evaluate(`{
      const list = document.querySelector("[role=grid]");
      list.scrollTo(0, ${part} * (list.scrollHeight - list.clientHeight));
    }`);
  }

  /** The row at each place is the one that belongs there, from the first to the last. */
  async function inOrder(page: Page, count: number): Promise<void> {
    for (const part of [0, 0.17, 0.5, 0.83, 1]) {
      await scrollTo(page, part);
      const wanted = part === 0 ? count - 1 : part === 1 ? 0 : null;
      if (wanted !== null) await row(page, "Ledger", `number ${wanted} of them`).waitFor();
      const places = await page.evaluate<{ place: number; number: number }[]>(`
        [...document.querySelectorAll("[role=grid] [role=rowgroup] > [role=row]")].map((row) => ({
          place: Number(row.getAttribute("aria-rowindex")),
          number: Number(/number ([0-9]+) of them/.exec(row.textContent)?.[1]),
        }))`);
      expect(places.length).toBeGreaterThan(10);
      for (const { place, number } of places) expect(number, `at place ${place}`).toBe(count - place);
    }
  }
});
