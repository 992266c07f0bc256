/** The inbox: the bell, toasts and what they tell the server, the list by mouse and by keyboard. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bell, openLive, Person, row, toast } from "../../support/inbox.js";
import { Server } from "../../support/server.js";

const LIMIT = { timeout: 30_000 };

let server: Server;
beforeAll(async () => {
  const data = await mkdtemp(join(tmpdir(), "tidings-web-inbox-"));
  server = await Server.start({ data, keep: true, agent: "its own" });
});
afterAll(async () => {
  expect(await server.stop()).toBe(0);
  await rm(server.data, { recursive: true, force: true });
});

/** A page of theirs where neither a list nor a conversation is open. */
async function elsewhere(person: Person, beside?: Page): Promise<Page> {
  return openLive(server, { token: person.token, at: "/overview", ...(beside === undefined ? {} : { beside }) });
}

describe("a toast", () => {
  test("comes with the bell and tells that it was rendered; the item is unread until it is clicked", async () => {
    const ada = await Person.on(server, "ada clicks");
    const page = await elsewhere(ada);
    const id = await ada.notify("The build is red", { kind: "cli.build.failed", severity: "error" });
    await toast(page, "The build is red").waitFor();
    await bell(page, 1).waitFor();
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ state: "DELIVERED", action: "rendered" });
    expect(await ada.counts()).toMatchObject({ unread: 1, unacknowledged: 0 });

    await toast(page, "The build is red").getByText("The build is red").click();
    await page.getByRole("region", { name: "Notification", exact: true }).getByText("The build is red").waitFor();
    expect(page.url()).toBe(`${server.url}/#/inbox/${id}`);
    await bell(page, 0).waitFor();
    await toast(page, "The build is red").waitFor({ state: "detached" });
    expect(await ada.read(id)).toMatchObject({ action: "clicked", read_at: expect.any(String) });
  });

  test("is dismissed by its button, and gone from the count", async () => {
    const ada = await Person.on(server, "ada dismisses");
    const page = await elsewhere(ada);
    const id = await ada.notify("Disk usage is at 91 %");
    await toast(page, "Disk usage").getByRole("button", { name: "Dismiss" }).click();
    await bell(page, 0).waitFor();
    await toast(page, "Disk usage").waitFor({ state: "detached" });
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ state: "DELIVERED", action: "dismissed" });
    expect(new URL(page.url()).hash).toBe("#/overview");
  });

  test("is not for what was there before, nor for what is in the conversation that is open", async () => {
    const ada = await Person.on(server, "ada was away");
    const before = await ada.notify("It was there before");
    const thread_id = await ada.thread();
    const page = await openLive(server, { token: ada.token, at: `/threads/${thread_id}` });
    await bell(page, 1).waitFor();
    await ada.notify("In this conversation", { thread_id });
    await ada.notify("For the inbox");
    await toast(page, "For the inbox").waitFor();
    expect(await page.getByRole("alert").count()).toBe(1);
    expect(await ada.read(before)).toMatchObject({ state: "DISPATCHED", action: null });
    // One of another conversation is worth one, and leads there.
    const other = await ada.thread();
    await ada.notify("On another floor", { thread_id: other });
    await toast(page, "On another floor").getByText("On another floor").click();
    await page.waitForURL(`${server.url}/#/threads/${other}`);
  });

  test("waits until somebody looks: what nobody sees is not rendered", async () => {
    const ada = await Person.on(server, "ada looks away");
    const page = await elsewhere(ada);
    const look = (state: "hidden" | "visible") =>
      page.evaluate(`
        Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "${state}" });
        document.dispatchEvent(new Event("visibilitychange"));`);
    await look("hidden");
    const id = await ada.notify("Nobody looks");
    await bell(page, 1).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await ada.read(id)).toMatchObject({ state: "DISPATCHED", action: null });
    await look("visible");
    await toast(page, "Nobody looks").waitFor();
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ state: "DELIVERED", action: "rendered" });
  });

  test("of many shows four, and one that says how many more; only what was shown is rendered", async () => {
    const ada = await Person.on(server, "ada is flooded");
    const page = await elsewhere(ada);
    await ada.emit(0, 50);
    await toast(page, "46 more").waitFor();
    await bell(page, 50).waitFor();
    expect(await page.getByRole("alert").count()).toBeLessThanOrEqual(5);
    await expect.poll(() => ada.counts(), LIMIT).toMatchObject({ unread: 50, unacknowledged: 46 });
    // What is critical finds its place, and stays.
    await ada.notify("The house is on fire", { severity: "critical" });
    await toast(page, "The house is on fire").waitFor();
    await expect.poll(() => page.getByRole("alert").count(), LIMIT).toBeLessThanOrEqual(5);
    await toast(page, "46 more").getByText("They wait in the inbox").click();
    await page.getByRole("grid", { name: "Inbox" }).waitFor();
    await toast(page, "The house is on fire").waitFor();
  });

  test("of the agent has its words, and leads to the conversation in which it says them", async () => {
    const ada = await Person.on(server, "ada is told");
    const page = await elsewhere(ada);
    const id = await ada.notify("The quota resets at noon", { handler: "agent" });
    const said = toast(page, "The agent says");
    await said.waitFor();
    expect(await said.textContent()).toContain("The quota resets at noon");
    // The raw notice is nobody's concern but the agent's.
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ state: "DELIVERED", channel: "agent" });
    expect(await ada.counts()).toMatchObject({ unread: 0 });
    const { threads } = await ada.call<{ threads: { thread_id: string }[] }>("thread/list");
    await said.getByText("The quota resets at noon").click();
    await page.waitForURL(`${server.url}/#/threads/${threads[0]?.thread_id}`);
    await said.waitFor({ state: "detached" });
  });

  test("is not for what the agent answers in another conversation: that is marked as new", async () => {
    const ada = await Person.on(server, "ada asks twice");
    const [here, there] = [await ada.thread(), await ada.thread()];
    const page = await openLive(server, { token: ada.token, at: `/threads/${here}` });
    await page.getByRole("textbox", { name: "Message", exact: true }).waitFor();
    await ada.call("turn/start", { thread_id: there, input: "good day" });
    const link = page.getByRole("navigation", { name: "Conversations" }).getByRole("link", { name: "good day" });
    await link.getByLabel("Something new").waitFor();
    await link.getByLabel("A turn runs").waitFor({ state: "detached" });
    // What it has to tell of itself comes after it.
    await ada.notify("The quota resets at noon", { handler: "agent" });
    await toast(page, "The quota resets at noon").getByText("in another conversation").waitFor();
    expect(await page.getByRole("alert").count()).toBe(1);
    await link.click();
    await link.getByLabel("Something new").waitFor({ state: "detached" });
    await page.goto(`${server.url}/#/overview`);
    await ada.notify("The quota is back", { handler: "agent" });
    await toast(page, "The quota is back").getByText("in a conversation").waitFor();
    // Also what it is to tell while it answers.
    await ada.call("turn/start", { thread_id: there, input: "say slowly 60" });
    await ada.notify("The quota is low", { handler: "agent" });
    await ada.call("turn/steer", { thread_id: there, input: "and this" });
    await toast(page, "The quota is low").waitFor();
    expect(await toast(page, "word-60").count()).toBe(0);
  });

  test("in two tabs is one acknowledgement; what is read in one is read in both", async () => {
    const ada = await Person.on(server, "ada has two tabs");
    const one = await elsewhere(ada);
    const two = await elsewhere(ada, one);
    const id = await ada.notify("Seen twice");
    for (const page of [one, two]) {
      await toast(page, "Seen twice").waitFor();
      await bell(page, 1).waitFor();
    }
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ action: "rendered" });
    const acks = async () => (await ada.story(id)).filter(({ kind }) => kind === "ack").map(({ action }) => action);
    expect(await acks()).toEqual(["rendered"]);
    await toast(two, "Seen twice").getByRole("button", { name: "Dismiss" }).click();
    for (const page of [one, two]) {
      await bell(page, 0).waitFor();
      await toast(page, "Seen twice").waitFor({ state: "detached" });
    }
    expect(await acks()).toEqual(["rendered", "dismissed"]);
  });
});

describe("the list", () => {
  test("by keyboard alone, from the first key to the last unread", async () => {
    const ada = await Person.on(server, "ada has no mouse");
    for (const word of ["first", "second", "third", "fourth", "fifth"]) await ada.notify(`The ${word} one`);
    const page = await openLive(server, { token: ada.token, at: "/overview" });
    const { keyboard } = page;
    const focused = () => page.evaluate<string>("document.activeElement?.textContent ?? ''");
    for (let tries = 0; !/^Inbox\d*$/.test(await focused()) && tries < 30; tries += 1) await keyboard.press("Tab");
    await keyboard.press("Enter");
    const active = page.locator("[role=row][aria-selected=true]");
    await row(page, "Inbox", "The first one").waitFor();
    await keyboard.press("j");
    await expect.poll(() => active.textContent(), LIMIT).toContain("The fifth one");
    await keyboard.press("ArrowDown");
    await expect.poll(() => active.textContent(), LIMIT).toContain("The fourth one");
    await keyboard.press("Enter");
    const open = page.getByRole("region", { name: "Notification", exact: true });
    await open.getByText("The fourth one").waitFor();
    await bell(page, 4).waitFor();
    await keyboard.press("Tab");
    await keyboard.press("Escape");
    await open.waitFor({ state: "detached" });
    await keyboard.press("j");
    await expect.poll(() => active.textContent(), LIMIT).toContain("The third one");
    // Elsewhere these keys do nothing to the list.
    await page.getByRole("button", { name: "Account" }).focus();
    for (const key of ["e", "Delete", "k", "u"]) await keyboard.press(key);
    expect(await active.textContent()).toContain("The third one");
    await page.getByRole("grid", { name: "Inbox" }).focus();
    await keyboard.press("k");
    await keyboard.press("k");
    await keyboard.press("e");
    await bell(page, 3).waitFor();
    await keyboard.press("u");
    await row(page, "Inbox", "The fifth one").waitFor({ state: "detached" });
    await row(page, "Inbox", "The first one").waitFor();
    await keyboard.press("End");
    await expect.poll(() => active.textContent(), LIMIT).toContain("The first one");
    await keyboard.press("Delete");
    await bell(page, 2).waitFor();
    await keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
    await keyboard.press("Shift+E");
    await page.getByRole("dialog", { name: "Dismiss all" }).waitFor();
    await keyboard.press("Enter");
    await bell(page, 0).waitFor();
    await page.getByText("Nothing is unread").waitFor();
  });

  test("what is typed the moment a question stands answers it, and not the list behind", async () => {
    const ada = await Person.on(server, "ada types fast");
    for (const word of ["first", "second"]) await ada.notify(`The ${word} one`);
    const page = await openLive(server, { token: ada.token, at: "/inbox" });
    const { keyboard } = page;
    await row(page, "Inbox", "The first one").waitFor();
    await keyboard.press("j");
    const active = page.locator("[role=row][aria-selected=true]");
    await expect.poll(() => active.textContent(), LIMIT).toContain("The second one");
    // Whatever sets the focus by a timer comes too late.
    await page.evaluate("{ const after = window.setTimeout; window.setTimeout = (f, ms) => after(f, ms || 60_000); }");
    for (const [key, name] of [
      ["?", "Keys"],
      ["Shift+E", "Dismiss all"],
    ] as const) {
      await keyboard.press(key);
      await page.getByRole("dialog", { name }).waitFor();
      await keyboard.press("Escape");
      await page.getByRole("dialog", { name }).waitFor({ state: "detached" });
      expect(await page.evaluate("document.activeElement?.getAttribute('aria-label')")).toBe("Inbox");
    }
    await keyboard.press("k");
    await keyboard.press("Shift+E");
    await page.getByRole("dialog", { name: "Dismiss all" }).waitFor();
    await keyboard.press("Enter");
    await bell(page, 0).waitFor();
    expect(page.url()).toMatch(/#\/inbox$/);
  });

  test("has what its filters take, live, in its groups; repetitions are counted", async () => {
    const ada = await Person.on(server, "ada filters");
    const thread_id = await ada.thread();
    await ada.notify("An error of the inbox", { severity: "error" });
    await ada.notify("A notice of the inbox");
    await ada.notify("A notice of the floor", { thread_id });
    for (let times = 0; times < 3; times += 1) await ada.notify("Again and again", { dedupe_key: "again" });
    const page = await openLive(server, { token: ada.token, at: "/inbox" });
    const rows = page.getByRole("grid", { name: "Inbox" }).locator("[role=row]:has(svg)");
    const shows = (texts: readonly string[]) =>
      expect
        .poll(
          async () => (await rows.allTextContents()).map((text) => texts.findIndex((one) => text.includes(one))),
          LIMIT,
        )
        .toEqual(texts.map((_, index) => index));
    const choose = async (name: string, word: string) => {
      await page.getByRole("button", { name: `${name}: ` }).click();
      await page.getByRole("menuitemcheckbox", { name: word, exact: true }).click();
      await page.keyboard.press("Escape");
    };
    await shows(["Again and again", "A notice of the floor", "A notice of the inbox", "An error of the inbox"]);
    // What is looked at for a moment is rendered.
    await expect.poll(() => ada.counts(), LIMIT).toMatchObject({ unacknowledged: 0 });
    await row(page, "Inbox", "Today").waitFor();
    await row(page, "Inbox", "Again and again").getByText("3 times").waitFor();
    await choose("Severity", "error");
    await shows(["An error of the inbox"]);
    await ada.notify("Another error", { severity: "error" });
    await ada.notify("Not an error");
    await shows(["Another error", "An error of the inbox"]);
    await choose("Severity", "error");
    await choose("Channel", "floor");
    await shows(["A notice of the floor"]);
    await choose("Severity", "error");
    await page.getByText("Nothing like that").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await shows([
      "Not an error",
      "Another error",
      "Again and again",
      "A notice of the floor",
      "A notice of the inbox",
      "An error of the inbox",
    ]);
    await page.getByRole("combobox", { name: "Conversation" }).fill(thread_id);
    await page.getByRole("option").click();
    await shows(["A notice of the floor"]);
    await page.getByRole("button", { name: "Any conversation" }).click();
    await page.getByRole("radiogroup", { name: "Read or unread" }).getByText("Unread").click();
    await row(page, "Inbox", "Again and again").getByText("Again and again").click();
    await page.getByText("3 times since").waitFor();
    // It is read, and so it is not in the list any more; one that comes is.
    await shows([
      "Not an error",
      "Another error",
      "A notice of the floor",
      "A notice of the inbox",
      "An error of the inbox",
    ]);
    // Beside what is open there is little room: the filters are behind a button.
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    const chip = page.getByRole("group", { name: "State" }).getByRole("checkbox", { name: "delivered" });
    await page.getByRole("group", { name: "State" }).getByText("delivered").click();
    expect(await chip.isChecked()).toBe(true);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Filter, 1 chosen" }).waitFor();
    await row(page, "Inbox", "An error of the inbox").waitFor();
  });

  test("is grouped by source and by conversation, and learns of new ones", async () => {
    const ada = await Person.on(server, "ada groups");
    await ada.emit(0, 2);
    const first = await ada.thread();
    await ada.call("turn/start", { thread_id: first, input: "Is the build through?" });
    await ada.notify("In the first conversation", { thread_id: first });
    await ada.notify("In none");
    const page = await openLive(server, { token: ada.token, at: "/inbox" });
    const group = async (by: string) => {
      await page.getByRole("combobox", { name: "Grouped by" }).click();
      await page.getByRole("option", { name: by }).click();
    };
    const shows = (...wanted: string[]) =>
      expect
        .poll(async () => {
          const texts = await page.getByRole("grid", { name: "Inbox" }).locator("[role=row]").allTextContents();
          return texts.map((text) => wanted.find((one) => text.includes(one)));
        }, LIMIT)
        .toEqual(wanted);
    await row(page, "Inbox", "In the first conversation").getByText("in Is the build through?").waitFor();
    await group("Group: source");
    await shows("Notices2 items", "In none", "In the first", "ci2 items", "number 1 of", "number 0 of");
    await group("Group: conversation");
    await shows(
      "No conversation3 items",
      "In none",
      "number 1 of",
      "number 0 of",
      "Is the build through?1 item",
      "In the first",
    );
    // A conversation that begins while one looks is a group, and a choice, under the name that it gets.
    const second = await ada.thread();
    await ada.notify("In the second conversation", { thread_id: second });
    await ada.call("turn/start", { thread_id: second, input: "And the deployment?" });
    await row(page, "Inbox", "And the deployment?1 item").waitFor();
    await page.getByRole("combobox", { name: "Conversation" }).click();
    await page.getByRole("option", { name: "And the deployment?" }).click();
    await shows("And the deployment?1 item", "In the second");
  });

  test("opens a row wherever it is clicked, and has every time at the same height of its row", async () => {
    const ada = await Person.on(server, "ada clicks anywhere");
    const read = await ada.notify("Read before");
    await ada.call("notification/ack", { id: read, revision: 1, action: "clicked" });
    await ada.emit(0, 1);
    await ada.notify("Unread");
    for (const width of [1_280, 390]) {
      const page = await openLive(server, { token: ada.token, at: "/inbox", width });
      const offsets = await Promise.all(
        ["Read before", "number 0 of them", "Unread"].map(async (text) => {
          const one = row(page, "Inbox", text);
          const [outer, time] = [await one.boundingBox(), await one.getByRole("time").boundingBox()];
          return Math.round((time?.y ?? 0) - (outer?.y ?? 0));
        }),
      );
      expect(new Set(offsets).size).toBe(1);
      const box = await row(page, "Inbox", "Unread").boundingBox();
      await page.mouse.click((box?.x ?? 0) + (box?.width ?? 0) - 4, (box?.y ?? 0) + (box?.height ?? 0) - 4);
      await page.getByRole("region", { name: "Notification", exact: true }).getByText("Unread").first().waitFor();
      await page.close();
    }
  });

  test("has dead letters, which can be sent again from there, once", async () => {
    const ada = await Person.on(server, "ada was late");
    const id = await ada.notify("Too late for anybody", { ttl_ms: 1 });
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ state: "FAILED" });
    const page = await openLive(server, { token: ada.token, at: `/inbox/${id}` });
    const open = page.getByRole("region", { name: "Notification", exact: true });
    expect(await open.getByRole("button", { name: "Dismiss" }).count()).toBe(0);
    await open.getByRole("button", { name: "Send again" }).click();
    await page.waitForURL((url) => url.hash.startsWith("#/ledger/"));
    expect(await ada.read(page.url().split("/").at(-1) ?? "")).toMatchObject({ redrive_of: id });
    await page.goto(`${server.url}/#/inbox/${id}`);
    await open.getByText("Meant for your inbox; nobody saw it in time.").waitFor();
    await page.waitForLoadState("networkidle");
    expect(await open.getByRole("button", { name: "Send again" }).count()).toBe(0);
  });

  test("at midnight what is of today is of yesterday", async () => {
    const ada = await Person.on(server, "ada stays up");
    const id = await ada.notify("Before midnight");
    await ada.call("notification/ack", { id, revision: 1, action: "rendered" });
    const page = await openLive(server, { token: ada.token, at: "/overview" });
    await page.clock.install({ time: new Date().setHours(23, 59, 30) });
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Inbox" }).click();
    await row(page, "Inbox", "Today").waitFor();
    const time = row(page, "Inbox", "Before midnight").locator("time");
    expect(await time.getAttribute("title")).toMatch(/^\d+ \w+ \d{4}.* \d\d:\d\d:\d\d /);
    await page.clock.fastForward(60_000);
    await row(page, "Inbox", "Yesterday").waitFor();
    expect(await row(page, "Inbox", "Today").count()).toBe(0);
  });

  test("whoever sees it there has it rendered, and two tabs agree", async () => {
    const ada = await Person.on(server, "ada sees the list");
    const id = await ada.notify("In the list");
    const one = await openLive(server, { token: ada.token, at: "/inbox" });
    const two = await openLive(server, { token: ada.token, at: "/inbox", beside: one });
    await expect.poll(() => ada.read(id), LIMIT).toMatchObject({ state: "DELIVERED", action: "rendered" });
    for (const page of [one, two]) await bell(page, 1).waitFor();
    await row(one, "Inbox", "In the list").getByRole("button", { name: "Dismiss" }).click();
    for (const page of [one, two]) {
      await bell(page, 0).waitFor();
      await row(page, "Inbox", "In the list").getByText("dismissed").waitFor();
    }
    const acks = (await ada.story(id)).filter(({ kind }) => kind === "ack").map(({ action }) => action);
    expect(acks).toEqual(["rendered", "dismissed"]);
  });
});
