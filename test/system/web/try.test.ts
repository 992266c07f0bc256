/**
 * Try it: each situation from the click to its end in the ledger, as the page shows it and as the server has it; and the
 * guided visit, which leads through one of them.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Event } from "../../../src/domain/event.js";
import type { NotificationView } from "../../../src/domain/notification.js";
import type { ThreadItem } from "../../../src/runtime/thread_items.js";
import { openApp } from "../../support/browser.js";
import { openTidings, temporaryFolder } from "../../support/folder.js";
import { Server } from "../../support/server.js";

/** What the page may wait for: a batch to be closed, an agent to be woken, an answer to be spoken. */
const PATIENCE_MS = 30_000;

async function fire(page: Page, title: string): Promise<Locator> {
  const card = page.getByRole("article", { name: title });
  await card.getByRole("button", { name: `Fire: ${title}`, exact: true }).click();
  return card;
}

/** The last part of the address that a link of the card leads to. */
async function idOf(card: Locator, link: string): Promise<string> {
  const href = await card.getByRole("link", { name: link }).getAttribute("href", { timeout: PATIENCE_MS });
  return href?.split("/").at(-1) ?? "";
}

/** The notification and the conversation that a card speaks of, as the server has them. */
async function behind(server: Server, card: Locator) {
  const id = await idOf(card, "Its story in the ledger");
  const thread_id = await idOf(card, "Conversation");
  const notification = await server.call<NotificationView>("notification/read", { id });
  const { items } = await server.call<{ items: ThreadItem[] }>("thread/read", { thread_id, observe: true });
  const told = items.filter((item) => item.type === "observation" && item.content.notification_id === id);
  return { notification, items, told };
}

/** Of one conversation, or those of none. */
async function eventsOf(data: string, thread_id: string | null, type: RegExp): Promise<Event[]> {
  const reader = await openTidings({ data, mode: "read" });
  const last = await reader.lastSeq();
  const events: Event[] = [];
  for await (const entry of reader.watch({ after: 0 })) {
    if (entry.type === "event" && entry.event.thread_id === thread_id && type.test(entry.event.type))
      events.push(entry.event);
    if (entry.seq >= last) break;
  }
  return events;
}

/** The server of the card's conversation has dropped and is back, and its agent was told of each once. Answers both processes. */
async function dropped(server: Server, data: string, card: Locator, of: { user_id?: string } = {}): Promise<number[]> {
  const thread_id = await idOf(card, "Conversation");
  const reason = "it was ended by SIGKILL";
  // By whoever keeps the connections, and by nobody else.
  expect(await eventsOf(data, thread_id, /^mcp\./)).toMatchObject([
    { type: "mcp.disconnected", source: "mcp", payload: { server: "documents", reason } },
    { type: "mcp.reconnected", source: "mcp", payload: { server: "documents" } },
  ]);
  const asked = { thread_id, observe: true, ...of };
  const { items } = await server.call<{ items: ThreadItem[] }>("thread/read", asked);
  const calls = items.flatMap((item) => (item.type === "tool_call" ? [item] : []));
  expect(calls.map(({ status, content }) => `${content.name} ${status}`)).toEqual([
    "documents_read completed",
    "documents_read failed",
    "documents_read completed",
  ]);
  const [before, during, after] = calls.map(({ content }) => content.output ?? "");
  expect(during).toMatch(/^the MCP server documents went away during the call: it was ended by SIGKILL/);
  const told = items.flatMap((item) =>
    item.type === "observation" && item.status === "sent" ? [item.content.text] : [],
  );
  expect(told.join("\n").match(/disconnected/g)).toHaveLength(1);
  expect(told.join("\n").match(/reconnected/g)).toHaveLength(1);
  const found = await server.call<{ notifications: NotificationView[] }>("notification/list", { thread_id, ...of });
  const notifications = found.notifications.filter(({ kind }) => kind.startsWith("mcp."));
  expect(notifications.reduce((sum, { rows }) => sum + rows, 0)).toBe(2);
  for (const one of notifications) expect(one).toMatchObject({ state: "DELIVERED", channel: "context" });
  const pids = [before, after].map((text) => Number(/\(Read by process (\d+)\.\)$/.exec(text ?? "")?.[1]));
  expect(pids[0]).toBeGreaterThan(1);
  expect(pids[1]).toBeGreaterThan(1);
  expect(pids[0]).not.toBe(pids[1]);
  expect(isAlive(pids[0] ?? 0)).toBe(false);
  return pids;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** It says that it has come to its end, and where the ledger has it. */
async function ended(card: Locator, state: string): Promise<void> {
  await card.getByRole("status").getByText("Done").waitFor();
  await card.getByText(state, { exact: true }).first().waitFor();
  // Its end is shown, and all of it when one asks.
  await expect.poll(() => steps(card).count()).toBe(4);
  await card.getByRole("button", { name: /^All \d+ steps$/ }).click();
  await card.getByText("A conversation was started for this.").waitFor();
}

/** The user says so, and the server knows it. */
async function seen(card: Locator): Promise<void> {
  const button = card.getByRole("button", { name: "I have seen it" });
  await button.click();
  await button.waitFor({ state: "detached" });
}

function steps(card: Locator): Locator {
  return card.getByRole("list", { name: "What has happened" }).getByRole("listitem");
}

function step(card: Locator, words: string): Locator {
  return steps(card).filter({ hasText: words });
}

/** In the words of a person, which are the title of the conversation. */
async function titleOf(server: Server, card: Locator): Promise<string | null | undefined> {
  const thread_id = await idOf(card, "Conversation");
  const { threads } = await server.call<{ threads: { thread_id: string; title: string | null }[] }>("thread/list");
  return threads.find((thread) => thread.thread_id === thread_id)?.title;
}

describe("each situation, with the rehearsal model", () => {
  let server: Server;
  let data: string;
  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), "tidings-try-"));
    server = await Server.start({ data, agent: "its own", keep: true });
  });
  afterAll(async () => {
    await server.kill();
    await rm(data, { recursive: true, force: true });
  });

  test("a background command that fails: it really runs, and the agent is woken and told once", async () => {
    const page = await openApp(server, { at: "/try" });
    const card = await fire(page, "A background command fails");
    await ended(card, "delivered");
    const { notification, items, told } = await behind(server, card);
    // The tool itself has reported it.
    expect(notification).toMatchObject({
      state: "DELIVERED",
      channel: "context",
      kind: "tool.failed",
      source: "tools",
    });
    expect(told).toHaveLength(1);
    const events = await eventsOf(data, await idOf(card, "Conversation"), /^tool\.(failed|stopped)$/);
    expect(events).toMatchObject([
      { type: "tool.failed", source: "tools", payload: { tool_name: "nightly_build", exit_code: 2 } },
    ]);
    expect(items.filter(({ type }) => type === "tool_call")).toMatchObject([
      { status: "completed", content: { name: "nightly_build" } },
    ]);
    await step(card, "The agent called nightly_build").waitFor();
    expect(await titleOf(server, card)).toMatch(/^Please run the nightly build in the background, [^{]*…$/);
    await step(card, "the agent was told").getByText("delivered").waitFor();
  });

  test("an MCP server that drops: its process is killed in mid-call, another one takes its place, and the agent is told", async () => {
    const page = await openApp(server, { at: "/try" });
    const card = await fire(page, "An MCP server drops");
    await ended(card, "delivered");
    await dropped(server, data, card);
    await step(card, "The agent called documents_read, which failed").getByText("went away during the call").waitFor();
    await step(card, "mcp.disconnected").waitFor();
    await step(card, "mcp.reconnected").waitFor();
    expect(await titleOf(server, card)).toMatch(/^Please read the handbook to me, [^{]*…$/);
    // Once more, in a conversation of its own: the first one hears nothing of it.
    const first = await idOf(card, "Conversation");
    await card.getByRole("button", { name: /^Fire again: / }).click();
    await expect.poll(() => idOf(card, "Conversation"), { timeout: PATIENCE_MS }).not.toBe(first);
    await ended(card, "delivered");
    await dropped(server, data, card);
    expect(await eventsOf(data, first, /^mcp\./)).toHaveLength(2);
  });

  test("servers that drop at the same moment, for the same user and for another: each has their own, and hears of that alone", async () => {
    const { token } = await server.createToken({ user_id: "ada", scopes: ["read", "ack", "agent"] });
    const pages = [
      await openApp(server, { at: "/try" }),
      await openApp(server, { at: "/try" }),
      await openApp(server, { at: "/try", token }),
    ];
    const cards = await Promise.all(pages.map((page) => fire(page, "An MCP server drops")));
    await Promise.all(cards.map((card) => ended(card, "delivered")));
    const pids: number[] = [];
    for (const [index, card] of cards.entries())
      pids.push(...(await dropped(server, data, card, index === 2 ? { user_id: "ada" } : {})));
    expect(new Set(pids).size).toBe(6);
    // Nobody but the conversations concerned was told: not the operator either.
    expect(await eventsOf(data, null, /^mcp\./)).toEqual([]);
  });

  test("a budget that runs low: it is really spent, and the agent is told once, with the next message", async () => {
    const page = await openApp(server, { at: "/try" });
    const card = await fire(page, "A budget runs low");
    await ended(card, "delivered");
    const { notification, items, told } = await behind(server, card);
    expect(notification).toMatchObject({
      state: "DELIVERED",
      subscriber_id: "budget_warning",
      priority: "high",
      rows: 1,
    });
    expect(told).toHaveLength(1);
    // By the loop itself, which has made the calls.
    const thread_id = await idOf(card, "Conversation");
    expect(await eventsOf(data, thread_id, /^budget\./)).toMatchObject([
      { type: "budget.iteration.warning", source: "agent", payload: { scope: "thread", current: 3, limit: 4 } },
    ]);
    expect(items.filter((item) => item.type === "message" && item.role === "assistant")).toHaveLength(4);
    // What the agent said stands on the card; nothing covers it.
    await step(card, "The agent said").first().waitFor();
    expect(await page.getByRole("alert").filter({ hasText: "The agent says" }).count()).toBe(0);
    // And at its end the user is told.
    await server.call("turn/start", { thread_id, input: "And now?" });
    await expect
      .poll(() => eventsOf(data, thread_id, /^budget\.iteration\.exceeded$/), { timeout: PATIENCE_MS })
      .toHaveLength(1);
  });

  test("something critical during an answer: it is cut off, kept, and gone on with", async () => {
    const page = await openApp(server, { at: "/try" });
    const card = await fire(page, "Something critical in mid-answer");
    await ended(card, "delivered");
    // In the turn that the system has opened: what cannot wait, and then the words that are missing.
    await step(card, "The agent said").waitFor();
    const { notification, items, told } = await behind(server, card);
    expect(notification).toMatchObject({ state: "DELIVERED", channel: "context", priority: "critical" });
    expect(told).toHaveLength(1);
    const cut = items.find((item) => item.type === "message" && item.status === "interrupted");
    expect(cut?.content).toMatchObject({ text: expect.stringMatching(/^Gladly\. /) });
    await step(card, "The agent was cut off").waitFor();
    await step(card, "something critical has happened").waitFor();
    const [after] = items.filter(({ type, status }) => type === "message" && status === "completed").slice(-1);
    expect(after?.content).toMatchObject({
      text: expect.stringMatching(
        /^This cannot wait: The disk of the build machine is full: .*\nNow I go on: .* and why\. $/,
      ),
    });
    expect(await titleOf(server, card)).toBe("Please explain in detail how I get to hear of things here.");
  });

  test("what the agent must tell and does not: it comes to the user, and waits until it is seen", async () => {
    const page = await openApp(server, { at: "/try" });
    const card = await fire(page, "The agent keeps quiet about what you must know");
    await step(card, "the agent did not acknowledge it").getByText("escalated").waitFor();
    await step(card, "You have not acknowledged").waitFor();
    const before = await behind(server, card);
    expect(before.notification).toMatchObject({ channel: "floor", reason: "unacknowledged", read_at: null });
    await seen(card);
    await ended(card, "delivered");
    const { notification } = await behind(server, card);
    expect(notification).toMatchObject({ state: "DELIVERED", action: "clicked", target: "user", handler: "agent" });
  });

  test("what was fired is still there when one comes back, and can be fired again, in a conversation of its own", async () => {
    const page = await openApp(server, { at: "/try" });
    const card = await fire(page, "A budget runs low");
    await ended(card, "delivered");
    const thread_id = await idOf(card, "Conversation");
    await card.getByRole("link", { name: "Conversation" }).click();
    await page.waitForURL(`**/#/threads/${thread_id}`);
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Try it" }).click();
    expect(await idOf(card, "Conversation")).toBe(thread_id);
    await card.getByRole("button", { name: /^Fire again: / }).click();
    await expect.poll(() => idOf(card, "Conversation"), { timeout: PATIENCE_MS }).not.toBe(thread_id);
    await ended(card, "delivered");
  });
});

test("a rehearsal without props: what would fail is reported, as a tool and a server would, and the agent is told once", async () => {
  const data = await temporaryFolder();
  const server = await Server.start({ data, agent: "its own", args: ["--no-props"] });
  const page = await openApp(server, { at: "/try" });
  const command = page.getByRole("article", { name: "A background command fails" });
  await command.getByText("No command runs: its failure is reported, as a tool would report it.").waitFor();
  await command.getByText("--no-props").waitFor();
  await fire(page, "A background command fails");
  await ended(command, "delivered");
  const { notification, items, told } = await behind(server, command);
  expect(notification).toMatchObject({ state: "DELIVERED", kind: "tool.failed", source: "try-it" });
  expect(told).toHaveLength(1);
  expect(items.some((item) => item.type === "tool_call")).toBe(false);
  expect(await titleOf(server, command)).toMatch(/^Please run the nightly build in the background, /);
  await step(command, "the agent was told").getByText("delivered").waitFor();

  const drop = page.getByRole("article", { name: "An MCP server drops" });
  await drop.getByText("No server is lost: two events are reported").waitFor();
  await fire(page, "An MCP server drops");
  await ended(drop, "delivered");
  const behindDrop = await behind(server, drop);
  expect(behindDrop.notification).toMatchObject({
    state: "DELIVERED",
    channel: "context",
    source: "try-it",
    subscriber_id: "mcp_connection",
    rows: 2,
  });
  expect(behindDrop.told).toMatchObject([{ content: { text: behindDrop.notification.content } }]);
  // What the page shows are the very words that the agent was told.
  expect(await drop.locator("pre").textContent()).toBe(behindDrop.notification.content);
});

test("what cannot be acknowledged says why", async () => {
  const server = await Server.start();
  const page = await openApp(server, { at: "/try" });
  // As a page that is at fault: what it sends is refused, whatever has become of the notification meanwhile.
  await page.evaluate(`{
    const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (frame) {
      send.call(this, frame.includes('"clicked"') ? frame.replace(/"revision":[0-9]+/, '"revision":-1') : frame);
    };
  }`);
  const card = await fire(page, "The agent keeps quiet about what you must know");
  await card.getByRole("button", { name: "I have seen it" }).click();
  await card.getByText(/^revision: /).waitFor();
});

test("without an agent: it says what differs, refuses what cannot be, and takes to the user what nobody takes", async () => {
  const server = await Server.start();
  const page = await openApp(server, { at: "/try" });
  await page.getByText("No agent is hosted here").first().waitFor();
  const refused = page.getByRole("article", { name: "Something critical in mid-answer" });
  await expect.poll(() => refused.getByRole("button", { name: /^Fire: / }).isDisabled()).toBe(true);
  await refused.getByText("there is no answer to cut off").waitFor();
  const card = await fire(page, "The agent keeps quiet about what you must know");
  await step(card, "no agent took it before its deadline").getByText("escalated").waitFor();
  await seen(card);
  await ended(card, "delivered");
  const { notification } = await behind(server, card);
  expect(notification).toMatchObject({ state: "DELIVERED", reason: "deadline", action: "clicked" });
});

/** What the visit speaks of is outlined, in sight, and beneath it. */
async function uncovered(visit: Locator, place: Locator): Promise<void> {
  await expect.poll(() => place.getAttribute("style"), { timeout: PATIENCE_MS }).toMatch(/outline: .*solid/);
  const [above, below] = [await visit.boundingBox(), await place.boundingBox()];
  expect(below?.y).toBeGreaterThanOrEqual((above?.y ?? 0) + (above?.height ?? Number.POSITIVE_INFINITY));
  expect(below?.y).toBeLessThan(place.page().viewportSize()?.height ?? 0);
}

describe("the guided visit", () => {
  const remembered = (page: Page) => page.evaluate("localStorage.getItem('tidings.visited')");

  test("begins by itself where nothing has happened, can be skipped, and does not come again", async () => {
    const server = await Server.start({ agent: "its own" });
    const page = await openApp(server, { visit: "first" });
    const visit = page.getByRole("region", { name: "A short tour, step 1 of 5" });
    await visit.getByRole("button", { name: "Skip the tour" }).click();
    await visit.waitFor({ state: "detached" });
    expect(await remembered(page)).toBe("skipped");
    await page.reload();
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Try it" }).click();
    await page.getByText("Fire a situation").waitFor();
    expect(await page.getByRole("region", { name: "A short tour" }).count()).toBe(0);
    // It can be had again, and Escape ends it.
    await page.getByRole("button", { name: "Take the tour" }).click();
    await visit.waitFor();
    await page.keyboard.press("Escape");
    await visit.waitFor({ state: "detached" });
    expect((await server.call<{ threads: unknown[] }>("thread/list")).threads).toEqual([]);
  });

  test("covers nothing on a small screen: the page begins below it", async () => {
    const server = await Server.start({ agent: "its own" });
    const page = await openApp(server, { visit: "first", width: 390 });
    const visit = page.getByRole("region", { name: "A short tour, step 1 of 5" });
    await visit.waitFor();
    await page.goto(`${server.url}/#/ledger`);
    const end = page.getByText("0 notifications");
    const gap = async () => {
      const [strip, below] = [await visit.boundingBox(), await end.boundingBox()];
      return strip === null || below === null ? -1 : below.y - (strip.y + strip.height);
    };
    await expect.poll(gap, { timeout: 30_000 }).toBeGreaterThanOrEqual(0);
    await visit.getByRole("button", { name: "Skip the tour" }).click();
    await visit.waitFor({ state: "detached" });
    await end.waitFor();
  });

  test("leads by keyboard from the conversation to the inbox to the ledger, through what really happens", async () => {
    const server = await Server.start({ agent: "its own" });
    const page = await openApp(server, { visit: "first" });
    const at = (number: number) => page.getByRole("region", { name: `A short tour, step ${number} of 5` });
    const press = async (number: number, name: string) => {
      const button = at(number).getByRole("button", { name, disabled: false });
      await button.focus();
      await page.keyboard.press("Enter");
    };
    await at(1).waitFor();
    // Who listens to the page instead of looking at it is led along.
    await expect.poll(() => page.evaluate("document.activeElement.textContent.startsWith('A short tour')")).toBe(true);
    await press(1, "Show me");
    await press(2, "Make it happen");
    await at(3).getByText("kept silent").waitFor();
    const { threads } = await server.call<{ threads: { thread_id: string }[] }>("thread/list");
    expect(threads).toHaveLength(1);
    const [{ thread_id } = { thread_id: "" }] = threads;
    expect(page.url()).toBe(`${server.url}/#/threads/${thread_id}`);
    // It covers nothing of what it speaks of, which is outlined.
    await uncovered(at(3), page.getByRole("article", { name: "Escalated" }));
    await press(3, "On to the inbox");
    await at(4).waitFor();
    expect(page.url()).toBe(`${server.url}/#/inbox`);
    await page.getByRole("link", { name: "Inbox, 1 unread" }).waitFor();
    await press(4, "On to the ledger");
    await at(5).waitFor();
    const id = page.url().split("/").at(-1);
    const notification = await server.call<NotificationView>("notification/read", { id });
    expect(notification).toMatchObject({ thread_id, channel: "floor", reason: "unacknowledged", read_at: null });
    await uncovered(at(5), page.getByRole("img", { name: "The way that it took" }));
    await press(5, "Finish");
    await at(5).waitFor({ state: "detached" });
    expect(await remembered(page)).toBe("done");
  });
});
