/** Subscribers: what is switched off is muted, what cannot be says why, and a preview is what is then told. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { NotificationView } from "../../../src/domain/notification.js";
import { openApp } from "../../support/browser.js";
import { temporaryFolder } from "../../support/folder.js";
import { Server } from "../../support/server.js";

function row(page: Page, name: string) {
  return page.getByRole("table", { name: "Subscribers" }).getByRole("row").filter({ hasText: name });
}

let emitted = 0;

/** An event of the command line, and what became of it. */
async function report(server: Server): Promise<NotificationView> {
  emitted += 1;
  const event = { type: "cli.event", source: "test", dedupe_key: `report ${emitted}`, payload: { message: "done" } };
  const { matches } = await server.call<{ matches: { notification: NotificationView }[] }>("event/emit", event);
  return matches[0]?.notification as NotificationView;
}

test("one that is switched off is muted, and told again when it is on; what it took last is there", async () => {
  const server = await Server.start();
  const page = await openApp(server, { at: "/subscribers" });
  const cli = row(page, "Events from the command line");
  await cli.getByText("Shows the user what programs and scripts report").waitFor();
  await cli.getByText("never").waitFor();
  expect(await report(server)).toMatchObject({ state: "DISPATCHED", channel: "inbox" });

  const told = cli.getByRole("switch", { name: "On: Events from the command line" });
  await told.press("Space");
  await cli.getByRole("cell", { name: "switched off", exact: true }).waitFor();
  expect(await server.call("settings/get")).toMatchObject({ disabled_subscribers: ["cli_event"] });
  expect(await report(server)).toMatchObject({ state: "SUPPRESSED", reason: "muted" });

  await told.press("Space");
  await cli.getByRole("cell", { name: "switched off", exact: true }).waitFor({ state: "detached" });
  expect(await told.isChecked()).toBe(true);
  expect(await server.call("settings/get")).toMatchObject({ disabled_subscribers: [] });
  const again = await report(server);
  expect(again).toMatchObject({ state: "DISPATCHED", channel: "inbox" });

  // By itself, while one looks at it.
  await cli.getByText("never").waitFor({ state: "detached" });
  await cli.getByRole("link", { name: "Events from the command line" }).click();
  const drawer = page.getByRole("dialog", { name: "Events from the command line" });
  await drawer.getByRole("switch", { name: "On for me" }).waitFor();
  await drawer.getByText("On for me").waitFor();
  const matches = drawer.getByRole("table", { name: "Last matches" }).getByRole("row");
  await expect.poll(() => matches.count(), { timeout: 30_000 }).toBe(3);
  await matches.nth(1).getByText("switched off").waitFor();
  expect(await matches.first().getByRole("link", { name: "Story" }).getAttribute("href")).toBe(`#/ledger/${again.id}`);
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });
  expect(page.url()).toBe(`${server.url}/#/subscribers`);
});

test("a core one cannot be switched off, and says why", async () => {
  const server = await Server.start();
  const page = await openApp(server, { at: "/subscribers" });
  const core = row(page, "Exceeded budgets");
  await core.getByText("core", { exact: true }).waitFor();
  expect(await core.getByRole("switch").count()).toBe(0);
  await core.getByRole("link", { name: "Always on: it is core: what it tells must not be missed" }).click();
  const drawer = page.getByRole("dialog", { name: "Exceeded budgets" });
  await drawer.getByText("what it tells must not be missed").waitFor();
  // The page's own banner stays the only one.
  expect(await page.locator("header:not([role])").count()).toBe(1);
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });

  // One that is off for all does not look like it; and a type of event is never broken within a word.
  const icon = (name: string) => page.getByRole("link", { name }).locator("svg").getAttribute("class");
  expect(await icon("Tool calls. Off for all")).not.toBe(await icon("Exceeded budgets. Always on"));
  const type = await core.getByText("budget.token.exceeded").boundingBox();
  expect(type?.height).toBeLessThan(30);
});

test("a file that is broken is named with its line and reason, and no more when it is mended", async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "templates"));
  await writeFile(join(folder, "templates", "builds.j2"), "build: {{ event.payload.branch }}\n");
  const file = (priority: string) =>
    [
      "[subscriber]",
      'id = "builds"',
      'name = "Our builds"',
      'description = "Tells the agent when a build fails"',
      'version = "1.0.0"',
      "[events]",
      'types = ["build.*"]',
      "[output]",
      `priority = "${priority}"`,
      'inject_at = "next"',
      'template = "templates/builds.j2"',
    ].join("\n");
  const path = join(folder, "builds.toml");
  await writeFile(path, file("urgent"));
  const server = await Server.start({ args: ["--subscribers", folder] });
  const page = await openApp(server, { at: "/subscribers" });
  const alert = page.getByRole("alert").filter({ hasText: "A file cannot be used as it is" });
  await alert.getByText("builds.toml:9").waitFor();
  await alert.getByText(/^output.priority must be one of critical, high, normal, low/).waitFor();
  // Where it is, once.
  expect((await alert.textContent())?.match(/\b9\b/g)).toHaveLength(1);
  await row(page, "builds").getByRole("cell", { name: "broken", exact: true }).waitFor();
  await writeFile(path, file("normal"));
  await alert.waitFor({ state: "detached" });
  await writeFile(path, "[subscriber\n");
  await alert.getByText(/^builds.toml is not valid TOML/).waitFor();
  await writeFile(path, file("normal"));
  await alert.waitFor({ state: "detached" });
  // It is active: there is nothing to say of that but the switch, which is on.
  await row(page, "Our builds").getByRole("switch", { name: "On: Our builds", checked: true }).waitFor();
  expect(await row(page, "Our builds").getByText("broken", { exact: true }).count()).toBe(0);
  await rm(path);
  await row(page, "Our builds").waitFor({ state: "detached" });
});

test("files are counted, and not what is wrong with them", async () => {
  const folder = await temporaryFolder();
  const broken = (id: string) =>
    [
      `[subscriber]\nid = "${id}"\nname = "${id}"\nversion = "1.0.0"`,
      '[output]\npriority = "urgent"\ninject_at = "sometime"',
    ].join("\n");
  for (const id of ["one", "two"]) await writeFile(join(folder, `${id}.toml`), broken(id));
  const server = await Server.start({ args: ["--subscribers", folder] });
  const page = await openApp(server, { at: "/subscribers" });
  const alert = page.getByRole("alert").filter({ hasText: "cannot be used" });
  await alert.getByText("2 files cannot be used as they are").waitFor();
  expect(await alert.getByRole("listitem").count()).toBeGreaterThan(2);
});

test("what it makes of a sample, of an event that came and of one's own is what is really told", async () => {
  const server = await Server.start();
  const { thread_id } = await server.call<{ thread_id: string }>("thread/start");
  const event = {
    type: "mcp.disconnected",
    source: "mcp",
    severity: "warning",
    timestamp: "2026-01-03T15:30:05.000Z",
    thread_id,
    payload: { server: "files", reason: "the process has ended" },
  };
  const page = await openApp(server, { at: "/subscribers/mcp_connection" });
  const drawer = page.getByRole("dialog", { name: "MCP servers" });
  const words = drawer.getByRole("group", { name: "Its words" });
  // A sample, to begin with.
  await words.getByText("mcp_down").waitFor();

  // One's own, as it would be emitted.
  await drawer.getByText("Your own", { exact: true }).click();
  const editor = drawer.getByLabel("Event, as event/emit takes it");
  await editor.fill("{ not JSON");
  await drawer.getByText("This is no JSON object.").waitFor();
  await editor.fill(JSON.stringify({ ...event, severity: "loud" }));
  await drawer.getByRole("alert").getByText("severity").waitFor();
  await editor.fill(JSON.stringify(event));
  await words.getByText("the process has ended").waitFor();
  const previewed = await words.textContent();
  await drawer.getByRole("status").getByText("would be told").waitFor();

  // It is emitted, and told to an agent.
  const { matches } = await server.call<{ matches: { notification: NotificationView }[] }>("event/emit", event);
  const { carrier } = await server.call<{ carrier: { id: string; notifications: NotificationView[] } }>(
    "agent/collect",
    {
      thread_id,
      point: "turn_start",
    },
  );
  expect(carrier.notifications.map(({ id }) => id)).toEqual([matches[0]?.notification.id]);
  expect(previewed).toBe(carrier.notifications[0]?.content);

  // And looked at again as one that came.
  await drawer.getByRole("button", { name: "Preview mcp.disconnected" }).click();
  await drawer.getByLabel("Event", { exact: true }).first().waitFor();
  await expect.poll(() => words.textContent(), { timeout: 30_000 }).toBe(previewed);
});
