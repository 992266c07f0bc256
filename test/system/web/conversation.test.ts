/** Conversations in the web app: what is said streams in, the rest is recognised at a glance, and nothing is lost or doubled. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NotificationView, NotifyInput } from "../../../src/domain/notification.js";
import type { ThreadPage } from "../../../src/index.js";
import { openApp } from "../../support/browser.js";
import { CuttingProxy } from "../../support/cutting.js";
import { eventually } from "../../support/folder.js";
import { Person } from "../../support/inbox.js";
import { modelServer } from "../../support/recorder.js";
import { Server } from "../../support/server.js";

const LIMIT = { timeout: 30_000 };
/** What a browser says of a server that is gone. */
const GONE = /WebSocket connection to|Failed to load resource|ERR_/;
const HOSTILE = `<script>window.hit = 1</script><img src=x onerror="window.hit = 2"> </pre><a href="javascript:hit()">a</a> \u202Etxt.exe\u202C \u200B\u2066x\u2069 {{7*7}} &lt;b&gt;`;
const LONG_LINE = `${HOSTILE} ${"x".repeat(99_000 - HOSTILE.length)}`;

let folder: string;
let proxy: CuttingProxy;
let server: Server;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tidings-test-"));
  const workspace = join(folder, "files");
  await mkdir(workspace);
  await writeFile(join(workspace, "long.txt"), LONG_LINE);
  proxy = await CuttingProxy.start("http://127.0.0.1:1", () => undefined);
  const args = ["--provider", "rehearsal", "--workspace", workspace, "--allow-host", new URL(proxy.url).host];
  server = await Server.start({ data: join(folder, "data"), args, keep: true });
  proxy.pointAt(server.url);
});
afterAll(async () => {
  proxy.stop();
  await server.kill();
  await rm(folder, { recursive: true, force: true });
});

/** A page on a conversation of its own. */
class Talk {
  readonly page: Page;
  readonly thread_id: string;
  readonly log: Locator;
  readonly field: Locator;
  readonly status: Locator;

  constructor(page: Page, thread_id: string) {
    this.page = page;
    this.thread_id = thread_id;
    this.log = page.getByRole("log", { name: "Conversation" });
    this.field = page.getByRole("textbox", { name: "Message", exact: true });
    this.status = page.getByRole("region", { name: "Composer" }).getByRole("status");
  }

  static async open(options: Parameters<typeof openApp>[1] = {}, at: Pick<Server, "url" | "token"> = server) {
    const { thread_id } = await server.call<{ thread_id: string }>("thread/start");
    return new Talk(await openApp(at, { ...options, at: `/threads/${thread_id}` }), thread_id);
  }

  async say(text: string): Promise<void> {
    await this.field.fill(text);
    await this.field.press("Enter");
  }

  /** It says what became of what was sent. */
  said(words: string): Promise<void> {
    return this.status.getByText(words).waitFor();
  }

  from(who: "You" | "Agent" | "Agent, answering"): Locator {
    return this.log.getByRole("article", { name: who, exact: true });
  }

  pill(word: string): Locator {
    return this.log.getByRole("article", { name: word, exact: true });
  }

  async told(input: Omit<NotifyInput, "thread_id">): Promise<string> {
    const notification = { thread_id: this.thread_id, dedupe_key: input.content.slice(0, 400), ...input };
    return (await server.call<{ id: string }>("notification/notify", notification)).id;
  }

  /** The agent has nothing to do. */
  async idle(): Promise<void> {
    await eventually(
      () => server.call<{ turns: unknown[] }>("queue/list", { thread_id: this.thread_id }),
      ({ turns }) => turns.length === 0,
      30_000,
    );
    await expect.poll(() => this.from("Agent, answering").count(), LIMIT).toBe(0);
  }

  /** What is on the page, line by line, without times. */
  async lines(): Promise<string[]> {
    const texts = await this.log.getByRole("article").evaluateAll((found) =>
      found.map((one) => {
        const copy = one.cloneNode(true) as typeof one;
        for (const time of copy.querySelectorAll("time")) time.remove();
        return `${one.getAttribute("aria-label")}: ${copy.textContent}`;
      }),
    );
    return texts;
  }
}

function read(id: string): Promise<NotificationView> {
  return server.call("notification/read", { id });
}

/** Whether nothing of what came from outside became a part of the page. */
async function isHarmless(page: Page): Promise<void> {
  expect(await page.evaluate("window.hit")).toBeUndefined();
  expect(await page.locator(".outside :is(script, img, b:not(.outside b), a[href^='javascript'])").count()).toBe(0);
}

describe("what is said", () => {
  test("streams in, is there once, names the conversation, and is the same after a reload in the middle", async () => {
    const page = await openApp(server);
    await page.getByRole("button", { name: "New conversation" }).first().click();
    await page.waitForURL(/#\/threads\/.+/);
    const talk = new Talk(page, decodeURIComponent(page.url().split("/").at(-1) ?? ""));
    await talk.say("say slowly 1000");
    await talk.said("Sent: the agent has begun a turn.");
    expect(await talk.field.inputValue()).toBe("");
    await talk.from("Agent, answering").getByText("word-4 ").waitFor();
    // That it was sent need not be said for ever.
    await talk.said("steers");
    const moving = () => page.evaluate("document.getAnimations().length");
    expect(await moving()).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: "reduce" });
    await expect.poll(moving, LIMIT).toBe(0);
    await page.reload();
    // From its first word on, though that was said before the page was there.
    await talk
      .from("Agent, answering")
      .getByText(/^word-1 word-2 .*word-9 /)
      .waitFor();
    await talk.page.getByRole("button", { name: "Stop", exact: true }).click();
    await talk.said("Stopped.");
    await talk.say("thank you");
    await talk.from("Agent").getByText('I read: "thank you".').waitFor();
    await talk.idle();
    const lines = await talk.lines();
    expect(lines).toEqual([
      "You: Yousay slowly 1000",
      expect.stringMatching(/^Agent: Agent(word-\d+ )+Cut off by you$/),
      "You: Youthank you",
      expect.stringMatching(/^Agent: AgentI read: "thank you"\./),
    ]);
    const words = lines[1]?.match(/word-\d+/g) ?? [];
    expect(words).toEqual(words.map((_, index) => `word-${index + 1}`));
    await page
      .getByRole("navigation", { name: "Conversations" })
      .getByRole("link", { name: "say slowly 1000" })
      .waitFor();
    await page.reload();
    await talk.from("Agent").getByText('I read: "thank you".').waitFor();
    expect(await talk.lines()).toEqual(lines);
    await talk.from("You").last().locator("time").hover();
    await page
      .getByRole("tooltip")
      .getByText(/^\d+ \w+ \d{4}.* \d\d:\d\d:\d\d /)
      .waitFor();
  });

  test("a steer is taken up, or comes back when the turn is stopped by Escape", async () => {
    const talk = await Talk.open();
    await talk.say("say slowly 90");
    await talk.from("Agent, answering").getByText("word-2 ").waitFor();
    await talk.say("mind this");
    await talk.said("Steered: the running turn takes it up at its next step.");
    const tray = talk.page.getByRole("region", { name: "Composer" }).getByRole("listitem");
    await tray.filter({ hasText: "Steer" }).getByText("mind this").waitFor();
    await talk.from("You").filter({ hasText: "steered the turn" }).getByText("mind this").waitFor();
    await talk.idle();
    expect(await tray.count()).toBe(0);

    await talk.say("say slowly 1000");
    await talk.from("Agent, answering").getByText("word-2 ").waitFor();
    await talk.say("too late");
    await tray.getByText("too late").waitFor();
    await talk.field.press("Escape");
    await talk.said("What it had not taken up is in the field again.");
    expect(await talk.field.inputValue()).toBe("too late");
    await talk.from("Agent").getByText("Cut off by you").waitFor();
    await talk.idle();
    expect(await tray.count()).toBe(0);
  });

  test("a turn is stopped, or gives way to a reply; the answer says by whom it was cut off", async () => {
    const talk = await Talk.open();
    await talk.say("say slowly 1000");
    await talk.from("Agent, answering").getByText("word-2 ").waitFor();
    await talk.field.fill("hello instead");
    await talk.page.getByRole("button", { name: "Other ways to send" }).click();
    await talk.page.getByRole("menuitem", { name: "Stop, and go on with this" }).click();
    await talk.said("Interrupted: the agent goes on with what you said.");
    await talk.from("Agent").getByText("Cut off by your reply").waitFor();
    await talk.from("Agent").getByText('I read: "hello instead".').waitFor();
    await talk.idle();
    await talk.say("say slowly 999");
    await talk.from("Agent, answering").getByText("word-2 ").waitFor();
    // What is critical stays until it is dismissed, and must not lie over the way to stop the agent.
    await server.call("notification/notify", { content: "The disk is full", target: "user", severity: "critical" });
    const toast = talk.page.getByRole("alert").filter({ hasText: "The disk is full" });
    await toast.waitFor();
    await talk.page.getByRole("button", { name: "Stop", exact: true }).click();
    await toast.getByRole("button", { name: "Dismiss" }).click();
    await talk.said("Stopped.");
    await talk.from("Agent").getByText("Cut off by you", { exact: true }).waitFor();
    await talk.idle();
  });

  test("what waits can be changed and taken back; a paused conversation keeps it, a closed one takes nothing", async () => {
    const talk = await Talk.open();
    const { page } = talk;
    await page.getByRole("button", { name: "This conversation" }).click();
    await page.getByRole("menuitem", { name: "Pause" }).click();
    await page.getByRole("status").getByText("Paused.").waitFor();
    await talk.say("one");
    await talk.said("Queued: it has its turn when the conversation is free.");
    await talk.say("two");
    const tray = page.getByRole("region", { name: "Composer" }).getByRole("listitem");
    await expect.poll(() => tray.count(), LIMIT).toBe(2);
    await tray.nth(1).getByRole("button", { name: "Take the queued message back" }).click();
    await tray.first().getByRole("button", { name: "Change the queued message" }).click();
    await page.getByRole("textbox", { name: "Queued message" }).fill("other words");
    await page.getByRole("button", { name: "Save" }).click();
    await tray.getByText("other words").waitFor();
    await expect.poll(() => tray.count(), LIMIT).toBe(1);
    await page.getByRole("link", { name: "one" }).getByText("paused").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await talk.from("Agent").getByText('I read: "other words".').waitFor();
    await talk.idle();
    await page.getByRole("button", { name: "This conversation" }).click();
    await page.getByRole("menuitem", { name: "Close…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close it" }).click();
    await talk.said("This conversation is closed: nothing more can be said in it.");
    expect(await talk.field.isDisabled()).toBe(true);
    expect(await page.getByRole("button", { name: "Send" }).isDisabled()).toBe(true);
    await page
      .getByRole("navigation", { name: "Conversations" })
      .getByRole("link", { name: /one/ })
      .getByText("closed")
      .waitFor();
  });
});

describe("what the system does", () => {
  test("a tool call is folded; unfolded it shows what went in and came out", async () => {
    const talk = await Talk.open();
    await talk.say('call read_notifications {"pending":true}\ncall deploy {"target":"staging"}');
    const deploy = talk.pill("Tool").filter({ hasText: "deploy" });
    await deploy.getByText("failed").waitFor();
    await talk.pill("Tool").filter({ hasText: "read_notifications" }).getByText("done").waitFor();
    expect(await deploy.getByText("staging").count()).toBe(0);
    const fold = deploy.getByRole("button", { name: /deploy/ });
    expect(await fold.getAttribute("aria-expanded")).toBe("false");
    await fold.click();
    await deploy.getByText('"target": "staging"').waitFor();
    await deploy.getByText('there is no tool "deploy"').waitFor();
    await fold.click();
    await expect.poll(() => deploy.getByText("staging").count(), LIMIT).toBe(0);
    await talk.idle();
  });

  test("something critical cuts an answer off; the system opens a turn, which goes on with it", async () => {
    const talk = await Talk.open();
    await talk.say("say slowly 100");
    await talk.from("Agent, answering").getByText("word-4 ").waitFor();
    await talk.told({ content: "The primary database is down", severity: "critical" });
    await talk
      .from("Agent")
      .getByText("Cut off by something critical; the agent goes on in the turn that follows")
      .waitFor();
    await talk.pill("System turn").getByText("because something critical has happened").waitFor();
    await talk.from("Agent").getByText("word-100 ").waitFor();
    await talk.from("Agent").getByText("The primary database is down").waitFor();
    await talk.idle();
    const words = ((await talk.log.textContent()) ?? "").match(/word-\d+ /g) ?? [];
    expect(words.map((word) => word.trim())).toEqual(Array.from({ length: 100 }, (_, index) => `word-${index + 1}`));
  });

  test("what the agent is to tell it tells; what it was told is shown when one asks, and that is kept", async () => {
    const talk = await Talk.open();
    const id = await talk.told({ content: "Lunch is ready", target: "user", handler: "agent" });
    await talk.from("Agent").getByText("You should know: Lunch is ready").waitFor();
    await talk.idle();
    expect(await read(id)).toMatchObject({ state: "DELIVERED" });
    expect(await talk.pill("Told to the agent").count()).toBe(0);
    expect(await talk.pill("Escalated").count()).toBe(0);
    await talk.page.getByRole("switch", { name: "Show what the agent was told" }).click();
    const told = talk.pill("Told to the agent").first();
    await told.getByRole("button", { name: /Told to the agent/ }).click();
    await told.getByText("Lunch is ready", { exact: true }).waitFor();
    expect(await told.getByRole("link", { name: "Its story, in the ledger" }).getAttribute("href")).toBe(
      `#/ledger/${id}`,
    );
    await talk.page.reload();
    await talk.pill("Told to the agent").first().waitFor();
    expect(await talk.page.getByRole("switch", { name: "Show what the agent was told" }).isChecked()).toBe(true);
  });

  test("on a phone the menu of the conversation shows what the agent was told", async () => {
    const talk = await Talk.open({ width: 390, height: 844 });
    await talk.told({ content: "Tea is ready", target: "user", handler: "agent" });
    await talk.from("Agent").getByText("You should know: Tea is ready").waitFor();
    await talk.idle();
    expect(await talk.page.getByRole("switch").count()).toBe(0);
    await talk.page.getByRole("button", { name: "This conversation" }).click();
    await talk.page.getByRole("menuitem", { name: "Show what the agent was told" }).click();
    await talk.pill("Told to the agent").first().waitFor();
    await talk.page.getByRole("button", { name: "This conversation" }).click();
    await talk.page.getByRole("menuitem", { name: "Hide what the agent was told" }).click();
    await talk.pill("Told to the agent").first().waitFor({ state: "detached" });
  });

  test("what it does not tell is escalated, in its place, and acknowledged when it is seen", async () => {
    const talk = await Talk.open();
    await talk.say("stay silent");
    await talk.idle();
    const id = await talk.told({
      content: "The certificate ends today",
      target: "user",
      handler: "agent",
      severity: "error",
    });
    const pill = talk.pill("Escalated");
    await pill.getByText("The certificate ends today").waitFor();
    await pill.getByText("The agent was to tell you, and did not.").waitFor();
    await pill.getByText("error", { exact: true }).waitFor();
    const seen = await eventually(
      () => read(id),
      ({ state }) => state === "DELIVERED",
    );
    expect(seen).toMatchObject({ action: "rendered", read_at: null, reason: "unacknowledged" });
    await talk.idle();
    await pill.getByRole("link", { name: "Its story, in the ledger" }).click();
    await talk.page.waitForURL(new RegExp(`#/ledger/${id}$`));
    await eventually(
      () => read(id),
      ({ action }) => action === "clicked",
    );
  });

  test("what the agent decides to tell is a promotion", async () => {
    const talk = await Talk.open();
    const directive = 'call tell_user {"text":"The queue is stuck since noon"}';
    await talk.told({ content: "queue", target: "agent", handler: "agent", directive });
    const pill = talk.pill("Promoted");
    await pill.getByText("The queue is stuck since noon").waitFor();
    await talk.idle();
    expect(await talk.pill("System turn").count()).toBe(0);
  });

  test("a notice is acknowledged as rendered once, whoever shows it, and is unread until it is done with, in every tab", async () => {
    const talk = await Talk.open();
    const other = new Talk(
      await openApp(server, { beside: talk.page, at: `/threads/${talk.thread_id}` }),
      talk.thread_id,
    );
    await talk.say("good day");
    for (const one of [talk, other]) await one.from("Agent").getByText('I read: "good day".').waitFor();
    const id = await talk.told({ content: "The disk is nearly full", target: "user", severity: "warning" });
    for (const one of [talk, other]) {
      await one.pill("Notice").getByText("The disk is nearly full").waitFor();
      await one.page
        .getByRole("link", { name: /good day/ })
        .getByLabel("1 unread")
        .waitFor();
    }
    await eventually(
      () => read(id),
      ({ state }) => state === "DELIVERED",
    );
    await talk.idle();
    await other.idle();
    expect(await other.lines()).toEqual(await talk.lines());
    const { story } = await server.call<{ story: { text: string }[] }>("notification/explain", { id });
    expect(story.filter(({ text }) => text.includes("rendered"))).toHaveLength(1);

    await other.pill("Notice").getByRole("button", { name: "Dismiss" }).click();
    for (const one of [talk, other]) {
      await one.page
        .getByRole("link", { name: /good day/ })
        .getByLabel("1 unread")
        .waitFor({ state: "hidden" });
      await expect.poll(() => one.pill("Notice").getByLabel("unread").count(), LIMIT).toBe(0);
    }
    expect(await read(id)).toMatchObject({ action: "dismissed" });
  });
});

test("whoever looks into another's conversation is told whose it is, and changes nothing in it", async () => {
  const ada = await Person.on(server, "ada is looked at");
  const thread_id = await ada.thread();
  await ada.call("turn/start", { thread_id, input: "good day" });
  const id = await ada.notify("The disk is nearly full", { thread_id });
  const page = await openApp(server, { at: `/ledger/${id}` });
  await page.getByRole("link", { name: /^Conversation: / }).click();
  const theirs = new Talk(page, thread_id);
  await theirs.pill("Notice").getByText("The disk is nearly full").waitFor();
  await page.getByRole("note").getByText("ada is looked at").waitFor();
  await theirs.log.getByRole("article", { name: "ada is looked at" }).getByText("good day").waitFor();
  expect(await theirs.from("You").count()).toBe(0);
  for (const name of ["Dismiss", "This conversation", "Send"])
    expect(await page.getByRole("button", { name }).count()).toBe(0);
  expect(await theirs.field.count()).toBe(0);
  // Nobody tells this page what is another's.
  await ada.notify("And now it is full", { thread_id });
  await page.getByRole("button", { name: "Read it again" }).click();
  await theirs.pill("Notice").getByText("And now it is full").waitFor();
  await theirs.pill("Notice").first().getByRole("link", { name: "Its story, in the ledger" }).click();
  await page.waitForURL(new RegExp(`#/ledger/${id}$`));

  // Also on a phone, where its menu is for looking alone.
  const phone = await openApp(server, { at: `/threads/${thread_id}`, width: 390, height: 844 });
  await phone.getByRole("button", { name: "This conversation" }).click();
  await expect
    .poll(() => phone.getByRole("menuitem").allTextContents(), LIMIT)
    .toEqual(["Show what the agent was told"]);
  await phone.close();

  // What is one's own is acknowledged, and by then the other would have been.
  const { thread_id: mine } = await server.call<{ thread_id: string }>("thread/start");
  await page.goto(`${server.url}/#/threads/${mine}`);
  const own = await new Talk(page, mine).told({ content: "For whoever looks", target: "user" });
  await eventually(
    () => read(own),
    ({ state }) => state === "DELIVERED",
  );
  expect(await ada.read(id)).toMatchObject({ state: "DISPATCHED", action: null, read_at: null });
  await openApp(server, { token: ada.token, at: `/threads/${thread_id}` });
  await eventually(
    () => ada.read(id),
    ({ state, action }) => state === "DELIVERED" && action === "rendered",
  );
});

test("a long answer is whole while it comes and after it; a very long one is folded later, and what is unfolded stays so", async () => {
  const model = await modelServer({}, { latency: 40, chunkSize: 1_000 });
  const words = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => `word-${from + index}`).join(" ");
  model.answers.push({ content: words(10_000, 6_000) }, { content: words(90_000, 900) });
  const own = await Server.start({
    args: [
      ...["--provider", "openai-compatible", "--base-url", `${model.url}/v1`],
      ...["--model", "any", "--api-key-env", "MODEL_KEY"],
    ],
    env: { MODEL_KEY: "a key" },
  });
  const { thread_id } = await own.call<{ thread_id: string }>("thread/start");
  const talk = new Talk(await openApp(own, { at: `/threads/${thread_id}` }), thread_id);
  const unfold = talk.log.getByRole("button", { name: /Show all/ });
  const answer = talk.from("Agent").first();
  await talk.say("tell me everything");
  await talk
    .from("Agent, answering")
    .getByText(/word-12000 /)
    .waitFor();
  expect(await talk.from("Agent, answering").textContent()).toContain("word-10000 word-10001 ");
  await answer.getByText(/word-15999/).waitFor();
  await talk.page.reload();
  await unfold.click();
  await answer.getByText(/word-15999/).waitFor();
  await talk.page.goto(`${own.url}/#/subscribers`);
  await talk.log.waitFor({ state: "detached" });
  await talk.page.goBack();
  await answer.getByText(/word-15999/).waitFor();
  await talk.say("and the rest");
  await talk
    .from("Agent")
    .getByText(/word-90899$/)
    .waitFor();
  expect(await unfold.count()).toBe(0);
});

describe("connections that break", () => {
  test("the server is killed in the middle of a turn: the page goes on, with nothing lost and nothing twice", async () => {
    const own = await Server.start({ agent: "its own" });
    const { port } = new URL(own.url);
    const { thread_id } = await own.call<{ thread_id: string }>("thread/start");
    const talk = new Talk(await openApp(own, { at: `/threads/${thread_id}`, complaints: GONE }), thread_id);
    await talk.say("first");
    await talk.from("Agent").getByText('I read: "first".').waitFor();
    await talk.say("say slowly 1000");
    await talk.from("Agent, answering").getByText("word-5 ").waitFor();
    await talk.say("and this");
    await talk.said("Steered");
    await own.kill();
    await talk.said("The server does not answer.");
    await talk.say("kept");
    const again = await Server.start({ data: own.data, agent: "its own", args: ["--port", port] });
    await talk.pill("Turn failed").getByText("its host was gone before it was over").waitFor();
    await expect.poll(() => talk.from("Agent, answering").count(), LIMIT).toBe(0);
    expect(await talk.field.inputValue()).toBe("kept");
    await expect.poll(() => talk.page.getByRole("button", { name: "Send" }).isEnabled(), LIMIT).toBe(true);
    await talk.field.press("Enter");
    await talk
      .from("Agent")
      .getByText(/I read: "kept"/)
      .waitFor();
    await eventually(
      () => again.call<{ turns: unknown[] }>("queue/list", { thread_id }),
      ({ turns }) => turns.length === 0,
    );
    await expect.poll(() => talk.from("Agent, answering").count(), LIMIT).toBe(0);
    expect(await talk.page.getByRole("region", { name: "Composer" }).getByRole("listitem").count()).toBe(0);
    const lines = await talk.lines();
    await talk.page.reload();
    await talk
      .from("Agent")
      .getByText(/I read: "kept"/)
      .waitFor();
    expect(await talk.lines()).toEqual(lines);
    expect(lines.filter((line) => line.startsWith("You: "))).toEqual([
      expect.stringMatching(/first$/),
      expect.stringMatching(/say slowly 1000$/),
      expect.stringMatching(/and this$/),
      expect.stringMatching(/kept$/),
    ]);
  });

  test("words that nobody knows to have arrived stay in the field, and are not said twice", async () => {
    const talk = await Talk.open({ complaints: GONE }, { url: proxy.url, token: server.token });
    await talk.say("good day");
    await talk.from("Agent").getByText('I read: "good day".').waitFor();
    // They arrive; the answer does not.
    proxy.silence();
    await talk.say("did you hear me?");
    await eventually(
      () => server.call<ThreadPage>("thread/read", { thread_id: talk.thread_id }),
      ({ items }) => JSON.stringify(items).includes("did you hear me?"),
    );
    expect(await talk.field.inputValue()).toBe("did you hear me?");
    // Whoever looks at something else meanwhile finds them so.
    await talk.page.goto(`${proxy.url}/#/subscribers`);
    await talk.page.getByRole("heading", { level: 1, name: "Subscribers" }).waitFor();
    await talk.page.goBack();
    proxy.cut();
    await talk.said("It had arrived after all.");
    expect(await talk.field.inputValue()).toBe("");
    await talk.from("Agent").getByText('I read: "did you hear me?"').waitFor();
    await talk.idle();
    expect(await talk.from("You").filter({ hasText: "did you hear me?" }).count()).toBe(1);
  });

  test("what is marked as read while the server is away is read when it is back", async () => {
    const talk = await Talk.open({ complaints: GONE }, { url: proxy.url, token: server.token });
    const id = await talk.told({ content: "Read it when you can", target: "user" });
    await eventually(
      () => read(id),
      ({ state }) => state === "DELIVERED",
    );
    proxy.pointAt("http://127.0.0.1:1");
    proxy.cut();
    await talk.said("The server does not answer.");
    await talk.pill("Notice").getByRole("button", { name: "Dismiss" }).click();
    proxy.pointAt(server.url);
    await eventually(
      () => read(id),
      ({ action }) => action === "dismissed",
      30_000,
    );
    await expect.poll(() => talk.pill("Notice").getByLabel("unread").count(), LIMIT).toBe(0);
  });

  test("words that did not arrive can be sent again, once", async () => {
    const own = await Server.start({ agent: "its own" });
    const { port } = new URL(own.url);
    const { thread_id } = await own.call<{ thread_id: string }>("thread/start");
    const talk = new Talk(await openApp(own, { at: `/threads/${thread_id}`, complaints: GONE }), thread_id);
    await talk.field.waitFor();
    own.process.kill("SIGSTOP");
    await talk.say("into the void");
    await own.kill();
    await talk.said("this page looks whether it arrived");
    await Server.start({ data: own.data, agent: "its own", args: ["--port", port] });
    await talk.said("It did not arrive. Send it again.");
    expect(await talk.field.inputValue()).toBe("into the void");
    await talk.field.press("Enter");
    await talk.from("Agent").getByText('I read: "into the void".').waitFor();
    expect(await talk.from("You").count()).toBe(1);
  });
});

test("of a long conversation only what is in view is in the page; older items come as one scrolls up, and stay in place", async () => {
  const count = 200;
  const talk = await Talk.open();
  const batch = 100;
  for (let at = 0; at < count; at += batch)
    await server.post(
      "/rpc",
      Array.from({ length: batch }, (_, index) => ({
        jsonrpc: "2.0",
        id: index,
        method: "notification/notify",
        params: {
          thread_id: talk.thread_id,
          content: `note ${at + index}.`,
          target: "user",
          dedupe_key: `note ${at + index}`,
        },
      })),
    );
  await talk
    .pill("Notice")
    .getByText(`note ${count - 1}.`)
    .waitFor();
  await talk.page.reload();
  await talk
    .pill("Notice")
    .getByText(`note ${count - 1}.`)
    .waitFor();
  const shown = async () => (await talk.lines()).map((line) => Number(/note (\d+)\./.exec(line)?.[1] ?? Number.NaN));
  const isInOrder = (numbers: readonly number[]) =>
    numbers.every((number, index) => index === 0 || number === (numbers[index - 1] ?? 0) + 1);
  await talk.log.focus();
  let oldest = count;
  while (oldest > 0) {
    const before = oldest;
    await talk.page.keyboard.press("Home");
    // What came before is put above what one looks at.
    await expect.poll(async () => (oldest = Math.min(...(await shown()))), LIMIT).toBeLessThan(before);
    const numbers = await shown();
    expect(numbers.length).toBeLessThan(60);
    expect(isInOrder(numbers), numbers.join(" ")).toBe(true);
  }
  await talk.page.getByRole("button", { name: "To the newest" }).click();
  await talk
    .pill("Notice")
    .getByText(`note ${count - 1}.`)
    .waitFor();
  await talk.told({ content: "the newest of all", target: "user" });
  await talk.pill("Notice").getByText("the newest of all").waitFor();
});

test("of very many conversations the list has the newest thousand, and says so", async () => {
  const ada = await Person.on(server, "ada talks much");
  const start = (_: unknown, id: number) => ({ jsonrpc: "2.0", id, method: "thread/start", params: {} });
  for (let batch = 0; batch < 11; batch += 1) await server.post("/rpc", Array.from({ length: 92 }, start), ada.token);
  const page = await openApp(server, { token: ada.token, at: "/threads" });
  const list = page.getByRole("navigation", { name: "Conversations" });
  const older = list.getByRole("button", { name: "Older conversations" });
  for (const count of [100, 200, 400, 800, 1_000]) {
    await older.click();
    await expect.poll(() => list.getByRole("link").count(), LIMIT).toBe(count);
  }
  await list.getByText("The 1000 that were active last.").waitFor();
  expect(await older.count()).toBe(0);
});

describe("text from outside is text", () => {
  test("what is said, shown, told and answered", async () => {
    const talk = await Talk.open();
    await talk.say(HOSTILE);
    await talk.from("You").getByText(HOSTILE, { exact: true }).waitFor();
    await talk.idle();
    await talk.told({ content: `${HOSTILE} ${"y".repeat(10_000)}`, target: "user", handler: "system" });
    const notice = talk.pill("Notice");
    await notice.getByRole("button", { name: /Show all/ }).click();
    await expect.poll(() => notice.locator(".outside").first().textContent(), LIMIT).toContain(`${HOSTILE} yyyy`);
    await talk.told({ content: `told ${HOSTILE}`, target: "user", handler: "agent" });
    await talk.from("Agent").getByText("You should know: told").waitFor();
    await talk.idle();
    await talk.page.getByRole("switch", { name: "Show what the agent was told" }).click();
    for (const told of await talk.pill("Told to the agent").all()) {
      await told.getByRole("button", { name: /Told to the agent/ }).click();
      await told.getByText("<script>window.hit").waitFor();
    }
    await talk.say('call read_file {"path":"long.txt"}');
    const call = talk.pill("Tool").filter({ hasText: "read_file" });
    await call.getByRole("button", { name: /read_file/ }).click();
    await call.getByRole("button", { name: /Show all \d+,\d+ characters/ }).click();
    await expect
      .poll(async () => (await call.locator("pre").last().textContent())?.includes(LONG_LINE), LIMIT)
      .toBe(true);
    await talk.idle();
    await isHarmless(talk.page);
    expect(await talk.page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    const titled = talk.page
      .getByRole("navigation", { name: "Conversations" })
      .getByRole("link", { name: /^<script>window\.hit = 1/ });
    expect(await titled.count()).toBe(1);
  });

  test("a tool by any name", async () => {
    const model = await modelServer();
    const name = '<img src=x onerror="window.hit=3">';
    model.answers.push({ toolCalls: [{ name, arguments: JSON.stringify({ [HOSTILE]: HOSTILE }) }] });
    const own = await Server.start({
      args: [
        "--provider",
        "openai-compatible",
        "--base-url",
        `${model.url}/v1`,
        "--model",
        "any",
        "--api-key-env",
        "MODEL_KEY",
      ],
      env: { MODEL_KEY: "a key" },
    });
    const { thread_id } = await own.call<{ thread_id: string }>("thread/start");
    const talk = new Talk(await openApp(own, { at: `/threads/${thread_id}` }), thread_id);
    await talk.say("go");
    const call = talk.pill("Tool").filter({ hasText: name });
    await call.getByText("failed").waitFor();
    await call.getByRole("button", { name: /img src=x/ }).click();
    await call.locator("pre").first().getByText("<script>window.hit = 1").waitFor();
    await talk.from("Agent").getByText("All right.").waitFor();
    await isHarmless(talk.page);
  });
});

test("on a phone the list is a screen of its own, with a way back", async () => {
  const { thread_id } = await server.call<{ thread_id: string }>("thread/start");
  await server.call("turn/start", { thread_id, input: "from a phone" });
  const page = await openApp(server, { width: 390, height: 844, at: "/threads" });
  const list = page.getByRole("navigation", { name: "Conversations" });
  await list.getByRole("link", { name: "from a phone" }).click();
  await new Talk(page, thread_id).from("Agent").getByText('I read: "from a phone".').waitFor();
  expect(await list.count()).toBe(0);
  await page.getByRole("link", { name: "All conversations" }).click();
  await list.getByRole("link", { name: "from a phone" }).waitFor();
});
