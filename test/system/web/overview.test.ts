/** The overview: what was emitted is in its pictures, and in the tables that say the same. */
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { openApp } from "../../support/browser.js";
import { Server } from "../../support/server.js";

/** A panel as a table: its rows by their names, as numbers. */
async function figures(page: Page, title: string): Promise<Record<string, string[]>> {
  const panel = page.getByRole("region", { name: title, exact: true });
  const asTable = panel.getByRole("button", { name: "as a table" });
  if ((await asTable.count()) > 0) await asTable.click();
  const rows = await panel.getByRole("table", { name: title }).getByRole("row").all();
  const read = await Promise.all(rows.map(cells));
  return Object.fromEntries(read.map(([name = "", ...rest]) => [name, rest]));
}

async function cells(row: Locator): Promise<string[]> {
  return row.locator("th, td").allTextContents();
}

test("says what to do where nothing has happened; then shows what does, by itself, also as numbers", async () => {
  const server = await Server.start();
  const page = await openApp(server, { at: "/overview" });
  await page.getByText("Nothing has happened in the last 5 minutes").waitFor();
  await page.getByRole("region", { name: "Provider", exact: true }).getByText("No agent is hosted here.").waitFor();

  for (const name of ["one", "two", "three"])
    await server.call("event/emit", { type: "cli.event", source: "test", dedupe_key: name });
  // The same one again, and one that nobody takes.
  await server.call("event/emit", { type: "cli.event", source: "test", dedupe_key: "three" });
  await server.call("event/emit", { type: "nobody.takes.this", source: "test" });
  const { id } = await server.call("notification/notify", { content: "shown", target: "user" });
  await server.call("notification/ack", { id, revision: 1, action: "clicked" });
  const { thread_id } = await server.call("thread/start");
  await server.call("notification/notify", { thread_id, content: "context" });
  await server.call("notification/notify", { thread_id, content: "tell", target: "user", handler: "agent" });
  const { carrier } = await server.call<{ carrier: { id: string } }>("agent/collect", {
    thread_id,
    point: "turn_start",
  });
  await server.call("agent/settle", { carrier_id: carrier.id });

  const flow = () => figures(page, "Events and notifications");
  await page.getByRole("region", { name: "Events and notifications", exact: true }).waitFor();
  await expect.poll(async () => (await flow())["All"], { timeout: 30_000 }).toEqual(["8", "6", "1"]);
  // Its toasts show what comes to the inbox and the floor, and that counts.
  const delivered = async () => (await figures(page, "Delivered, by channel"))["All"];
  await expect.poll(delivered, { timeout: 30_000 }).toEqual(["4", "1", "0", "1"]);
  expect((await figures(page, "Escalated, suppressed, failed"))["All"]).toEqual(["1", "0", "0"]);
  const [tokens = "0"] = (await figures(page, "Tokens injected"))["All"] ?? [];
  expect(Number(tokens)).toBeGreaterThan(0);
  // pending, dispatched, locked, escalated
  await expect
    .poll(() => figures(page, "What is open now"), { timeout: 30_000 })
    .toMatchObject({
      inbox: ["0", "0", "0", "0"],
      floor: ["0", "0", "0", "0"],
      agent: ["0", "0", "0", "0"],
      context: ["0", "0", "0", "0"],
    });
  expect(await figures(page, "Longest wait")).toMatchObject({
    inbox: ["nothing waits"],
    context: ["nothing waits"],
  });

  // The same over other spans, as pictures again that say in words what they show.
  for (const span of ["15 min", "Hour", "Day", "Week"]) {
    await page.getByText(span, { exact: true }).click();
    const step = { "15 min": "30 seconds", Hour: "minute", Day: "quarter of an hour", Week: "hour" }[span];
    await page
      .getByRole("columnheader", { name: `From (each ${step})`, exact: true })
      .first()
      .waitFor();
    expect((await flow())["All"], span).toEqual(["8", "6", "1"]);
  }
  await page.getByRole("button", { name: "Events and notifications: as a picture" }).click();
  await page
    .getByRole("img", { name: "Events and notifications in the last week: 8 events, 6 notifications, 1 merged" })
    .waitFor();
  // Only what there was is drawn.
  await page.getByRole("button", { name: "Escalated, suppressed, failed: as a picture" }).click();
  const around = page.getByRole("img", { name: "Escalated, suppressed, failed in the last week" });
  await around.getByText("escalated", { exact: true }).waitFor();
  expect(await around.getByText("failed", { exact: true }).count()).toBe(0);
  // Who comes now sees as far back as there is anything to see.
  await page.reload();
  await page.getByRole("img", { name: "Events and notifications in the last 5 minutes: 8 events" }).waitFor();
});

test("a dead letter is not open; it is named beside what is", async () => {
  const server = await Server.start();
  await server.call("notification/notify", { content: "too late", target: "user", ttl_ms: 1 });
  await expect
    .poll(() => server.call("notification/list", { state: "FAILED" }), { timeout: 30_000 })
    .toMatchObject({ notifications: [{ content: "too late" }] });
  const page = await openApp(server, { at: "/overview" });
  await page
    .getByRole("img", {
      name: "What is open now: everything is settled, 1 dead letter",
      exact: true,
    })
    .waitFor();
  await page
    .getByRole("img", { name: "Escalated, suppressed, failed in the last 5 minutes" })
    .getByText("failed")
    .waitFor();
  await page.getByRole("link", { name: "1 dead letter" }).click();
  await page.getByRole("grid", { name: "Ledger" }).getByText("too late").waitFor();
  expect(await page.getByRole("radio", { name: "Dead letters" }).isChecked()).toBe(true);
});

test("how the provider does", async () => {
  const server = await Server.start({ agent: "its own" });
  const page = await openApp(server, { at: "/overview" });
  const provider = page.getByRole("region", { name: "Provider", exact: true });
  await provider.getByText("Nothing was asked yet.").waitFor();
  const { thread_id } = await server.call("thread/start");
  await server.call("turn/start", { thread_id, input: "hello" });
  await provider.getByText("Working", { exact: true }).waitFor();
  expect(await figures(page, "Provider")).toMatchObject({ calls: ["1"], answered: ["1"], failures: ["0"] });
  await page.getByRole("button", { name: "Provider: as a picture" }).click();
  await provider.getByText(/^Counted since the server was started/).waitFor();
  await provider.getByText("1 call", { exact: true }).waitFor();
});
