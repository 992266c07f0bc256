/** Text from outside is text, in every field and wherever it is shown; and the lists are for everybody. */
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../support/folder.js";
import { openLive, Person, row, toast } from "../../support/inbox.js";
import { modelServer } from "../../support/recorder.js";
import { Server } from "../../support/server.js";

const SCRIPT = `<script>window.hurt = 1</script><img src=x onerror="window.hurt = 2"><svg/onload=window.hurt=3>`;
const MARKUP = `<b>bold</b> [link](javascript:window.hurt=4) **strong** &lt;i&gt;`;
const BIDI = `\u202Edesrever\u202C \u2066isolated\u2069 \u200Bzero`;
const LONG = "x".repeat(16_000);

test("script, markup, direction marks and endless lines show as text in toasts, lists, details and stories", async () => {
  const server = await Server.start({ agent: "its own" });
  const ada = await Person.on(server, `ada ${SCRIPT.slice(0, 100)}`);
  const thread_id = await ada.thread();
  const page = await openLive(server, { token: ada.token, at: "/overview" });
  const hurt = () => page.evaluate("[window.hurt, document.querySelectorAll('#app img[src=x], #app b').length]");
  const evil = {
    subject: `${SCRIPT.slice(0, 200)} ${BIDI}`,
    dedupe_key: `${MARKUP} ${BIDI}`,
    data: { [SCRIPT]: MARKUP, bidi: BIDI, long: "y".repeat(60_000) },
  };
  const id = await ada.notify(`${SCRIPT} ${MARKUP} ${BIDI}`, evil);
  const long = await ada.notify(LONG, { severity: "critical" });
  await ada.call("event/emit", {
    type: "cli.step.finished",
    source: SCRIPT,
    payload: { message: LONG, [SCRIPT]: BIDI },
  });
  const told = await ada.notify(`${MARKUP} ${SCRIPT}`, { target: "agent", thread_id });
  await ada.call("turn/start", { thread_id, input: SCRIPT });
  await toast(page, "<script>window.hurt").first().waitFor();
  await toast(page, "xxxxxxxx").first().waitFor();
  const { width } = page.viewportSize() ?? { width: 0 };
  const isWithin = async () =>
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
  await isWithin();
  const read = await ada.read(id);

  for (const [place, text] of [
    [`/inbox/${id}`, read.content],
    [`/inbox/${long}`, LONG],
    [`/ledger/${id}`, read.content],
    [`/ledger/${told}`, "What the model was told, exactly"],
    ["/inbox", "xxxxxxxx"],
  ] as const) {
    await page.goto(`${server.url}/#${place}`);
    await page.getByText(text).first().waitFor();
    for (const button of await page.getByRole("button", { name: "Show the event" }).all()) await button.click();
    await isWithin();
    expect(await hurt()).toEqual([undefined, 0]);
  }
  await page.goto(`${server.url}/#/inbox/${id}`);
  const data = page.getByRole("region", { name: "Data" });
  expect(JSON.parse((await data.textContent()) ?? "")).toEqual(evil.data);
});

test("so it is in the names, descriptions and problems of subscribers, in the ids of conversations and in a provider's errors", async () => {
  const folder = await temporaryFolder();
  const EVIL = `${SCRIPT} ${MARKUP} ${BIDI}`.replaceAll("\\", "");
  const name = EVIL.slice(0, 100);
  const toml = (id: string, more: string) => `[subscriber]
id = "${id}"
name = ${JSON.stringify(name)}
description = ${JSON.stringify(EVIL)}
version = "1.0.0"
[events]
types = ["evil.*"]
[output]
priority = "normal"
inject_at = "next"
template = "evil.j2"
${more}`;
  await writeFile(join(folder, "evil.j2"), "{{ event.payload.text }}\n");
  await writeFile(join(folder, "evil.toml"), toml("evil", ""));
  await writeFile(join(folder, "broken.toml"), toml("broken", `${JSON.stringify(SCRIPT)} = 1`));
  const model = await modelServer();
  model.answers.push({ error: { message: EVIL, type: "invalid_request_error" }, status: 400 });
  const provider = ["--provider", "openai-compatible", "--base-url", `${model.url}/v1`, "--model", "any"];
  const server = await Server.start({
    agent: "its own",
    args: [...provider, "--api-key-env", "MODEL_KEY", "--subscribers", folder],
    env: { MODEL_KEY: "a key" },
  });
  const thread_id = `${SCRIPT} ${BIDI}`.slice(0, 120);
  await server.call("thread/start", { thread_id });
  const { id } = await server.call("notification/notify", { thread_id, content: "On this floor", target: "user" });
  await server.call("turn/start", { thread_id, input: "hello" });
  const page = await openLive(server, { at: "/subscribers" });
  const { width } = page.viewportSize() ?? { width: 0 };
  const isSound = async () => {
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    expect(await page.evaluate("[window.hurt, document.querySelectorAll('#app img[src=x]').length]")).toEqual([
      undefined,
      0,
    ]);
  };
  for (const [place, text] of [
    ["/subscribers", name],
    ["/subscribers", "<script>window.hurt = 1</script>"],
    ["/subscribers/evil", EVIL],
    ["/overview", "window.hurt = 1"],
    ["/inbox", "On this floor"],
    [`/inbox/${id}`, thread_id],
    ["/ledger", "On this floor"],
    [`/ledger/${id}`, thread_id],
  ] as const) {
    await page.goto(`${server.url}/#${place}`);
    if (text === thread_id) await page.getByRole("button", { name: "Details", exact: true }).click();
    await page.getByText(text).first().waitFor();
    await isSound();
  }
  await page.goto(`${server.url}/#/threads/${encodeURIComponent(thread_id)}`);
  await page.getByText("On this floor").first().waitFor();
  await isSound();
});

/** So long that it would be seen at once if it were not broken, cut or scrolled in its place. */
const endless = (mark: string, chars: number) => `${SCRIPT} ${mark}`.padEnd(chars, mark.at(-1));

test("lines of 100,000 characters in an answer and in a tool's input and output, and the longest that there may be in a message and a notification (16,384 characters; data and payload 65,536 bytes), are text in their place", async () => {
  const workspace = await temporaryFolder();
  const [input, output] = [endless("input i", 100_000), endless("output o", 100_000)];
  await writeFile(join(workspace, "endless.txt"), output);
  const model = await modelServer();
  const answer = endless("answer a", 100_000);
  const asked = (more: object) => ({
    name: "read_file",
    arguments: JSON.stringify({ path: "endless.txt", ...more }),
  });
  model.answers.push({ toolCalls: [asked({}), asked({ why: input })] }, { content: answer });
  const provider = ["--provider", "openai-compatible", "--base-url", `${model.url}/v1`, "--model", "any"];
  const server = await Server.start({
    agent: "its own",
    args: [...provider, "--api-key-env", "MODEL_KEY", "--workspace", workspace],
    env: { MODEL_KEY: "a key" },
  });
  const ada = await Person.on(server, "ada");
  const thread_id = await ada.thread();
  const page = await openLive(server, { token: ada.token, at: `/threads/${thread_id}` });
  const { width } = page.viewportSize() ?? { width: 0 };
  const isSound = async () => {
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    expect(await page.evaluate("[window.hurt, document.querySelectorAll('#app img[src=x]').length]")).toEqual([
      undefined,
      0,
    ]);
  };
  const log = page.getByRole("log", { name: "Conversation" });
  const message = endless("message m", 16_384);
  await ada.call("turn/start", { thread_id, input: message });
  const calls = log.getByRole("article", { name: "Tool", exact: true });
  // What one has seen come is whole; whoever comes later finds it folded.
  await log.getByRole("article", { name: "Agent", exact: true }).waitFor();
  await page.reload();
  for (const index of [0, 1])
    await calls
      .nth(index)
      .getByRole("button", { name: /read_file/ })
      .click();
  for (const [part, text] of [
    [calls.nth(0).locator("pre").last(), output],
    [calls.nth(1).locator("pre").first(), JSON.stringify(input)],
    [log.getByRole("article", { name: "You", exact: true }), message],
    [log.getByRole("article", { name: "Agent", exact: true }), answer],
  ] as const) {
    await part.getByRole("button", { name: /Show all [\d,]+ characters/ }).click();
    await expect.poll(async () => (await part.textContent())?.includes(text), { timeout: 30_000 }).toBe(true);
    await isSound();
  }

  const content = endless("content c", 16_384);
  const data = { line: endless("data d", 65_536 - '{"line":""}'.length - 20) };
  const id = await ada.notify(content, { data });
  const payload = { message: endless("payload p", 65_536 - '{"message":""}'.length - 20) };
  await ada.call("event/emit", { type: "cli.step.finished", source: "ci", payload });
  for (const [place, list] of [
    ["/inbox", "Inbox"],
    ["/ledger", "Ledger"],
  ] as const) {
    await page.goto(`${server.url}/#${place}/${id}`);
    const open = page.getByRole("region", { name: place === "/inbox" ? "Notification" : "Story", exact: true });
    await expect.poll(() => open.textContent(), { timeout: 30_000 }).toContain(content);
    if (place === "/ledger") await open.getByRole("button", { name: "Data", exact: true }).click();
    const shown = open.getByRole("region", { name: "Data", exact: true });
    expect(JSON.parse((await shown.textContent()) ?? "")).toEqual(data);
    await isSound();
    // What is beside it can still be used.
    await page.keyboard.press("Escape");
    await row(page, list, "payload p").getByText("payload p").first().click();
    await open.getByText("payload p").first().waitFor();
    await isSound();
  }
});

test("axe finds nothing serious in the inbox and the ledger, light and dark, wide and narrow", async () => {
  const server = await Server.start({ agent: "its own" });
  const ada = await Person.on(server, "ada");
  const thread_id = await ada.thread();
  for (const severity of ["debug", "info", "warning", "error", "critical"])
    await ada.notify(`This is ${severity}`, { severity });
  const id = await ada.notify("Told to the agent", { target: "agent", thread_id, data: { some: "data" } });
  await ada.call("turn/start", { thread_id, input: "hello" });
  await expect.poll(() => ada.read(id), { timeout: 30_000 }).toMatchObject({ state: "DELIVERED" });
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  for (const look of [
    { scheme: "light", width: 1_440 },
    { scheme: "dark", width: 390 },
  ] as const) {
    const page = await openLive(server, { token: ada.token, at: "/overview", motion: "reduce", ...look });
    const shown = await ada.notify("A toast", { severity: "error" });
    await toast(page, "A toast").waitFor();
    for (const [place, text] of [
      ["/overview", "A toast"],
      ["/inbox", "This is warning"],
      [`/inbox/${shown}`, "Its story in the ledger"],
      ["/ledger", "This is warning"],
      [`/ledger/${id}`, "What the model was told"],
    ] as const) {
      await page.goto(`${server.url}/#${place}`);
      await page.getByText(text).first().waitFor();
      expect(await serious(page, axe), `${place}, ${look.scheme}`).toEqual([]);
    }
  }
});

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

async function serious(page: Page, axe: string): Promise<string[]> {
  await page.evaluate(axe);
  // Views of others are not what is looked at here.
  const found = await page.evaluate<Violation[]>(
    "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
  );
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
    );
}
