/** What the operator is told of broken files, through the library on a real folder. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Tidings } from "../../src/index.js";
import { eventually, openTidings, temporaryFolder } from "../support/folder.js";

const OFF = "[conversation.notifications]\nenable = false\n";

async function opened(files: Readonly<Record<string, string>>) {
  const data = await temporaryFolder();
  mkdirSync(join(data, "subscribers"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(data, name), text);
  const lines: string[] = [];
  const tidings = await openTidings({ data, onProblem: (line) => lines.push(line) });
  return { data, tidings, lines };
}

describe("a broken file at the start", () => {
  it("is one notice with all that is wrong, and what holds meanwhile", async () => {
    const { data, tidings, lines } = await opened({
      "tidings.toml": `${OFF}enabled = true\n[conversation.tools.git]\nimpakt = 1\n`,
      "subscribers/bad.toml": '[subscriber]\nid = "bad"\nnam = "x"\n',
    });
    const { notifications } = await tidings.list();
    expect(notifications.map(({ kind }) => kind).sort()).toEqual(["config.file_broken", "config.subscriber_broken"]);
    const config = notifications.find(({ kind }) => kind === "config.file_broken");
    const kept = " (until it is mended, nothing is switched off)";
    expect(config?.content).toBe(
      [
        `${join(data, "tidings.toml")}:3:1: conversation.notifications.enabled is not a known key; did you mean enable?${kept}`,
        `${join(data, "tidings.toml")}:5:1: conversation.tools.git.impakt is not a known key; did you mean impact?${kept}`,
      ].join("\n"),
    );
    const subscriber = notifications.find(({ kind }) => kind === "config.subscriber_broken");
    expect(subscriber?.content.split("\n").length).toBeGreaterThan(1);
    expect([...(subscriber?.content.split("\n") ?? []), ...(config?.content.split("\n") ?? [])]).toEqual(lines);
    // As it says: nothing is off.
    const { matches } = await tidings.emit({ type: "cli.a.b", source: "here" });
    expect(matches).toMatchObject([{ outcome: "queued" }]);
    const { problems } = await tidings.subscribers();
    expect(problems.find(({ key }) => key?.endsWith("enabled"))).toMatchObject({ instead: "all_on" });
  });
});

describe("the switches", () => {
  it.each([
    ["the master", OFF],
    ["the source", "[conversation.notifications.kinds.config]\nenable = false\n"],
    ["the name", "[conversation.notifications.kinds.config]\nsubscriber_broken = false\n"],
  ])("do not keep from the operator what is wrong with the files: %s", async (_which, config) => {
    const { tidings } = await opened({ "tidings.toml": config, "subscribers/bad.toml": "nonsense" });
    const { notifications } = await tidings.list();
    expect(notifications).toMatchObject([
      { kind: "config.subscriber_broken", state: "DISPATCHED", source: "tidings", subscriber_id: "direct" },
    ]);
    // Nobody else can pass for it.
    const { state } = await tidings.notify({
      kind: "config.subscriber_broken",
      content: "buy this",
      target: "user",
      address: "user",
    });
    expect(state).toBe("SUPPRESSED");
    const emitted = await tidings.emit({ type: "config.subscriber_broken", source: "tidings", severity: "critical" });
    const collected = await tidings.thread("t").collect("turn_start");
    expect(emitted.matches.map(({ subscriber_id }) => subscriber_id)).toEqual(["config_change"]);
    expect(collected?.notifications).toEqual([]);
  });
});

describe("an edit of the configuration", () => {
  const reloads = async (tidings: Tidings, user_id: string) => {
    const { notifications } = await tidings.as(user_id).list({ channel: "context" });
    const found = notifications.filter(({ kind }) => kind === "config.reloaded");
    return Promise.all(found.map(async ({ id }) => tidings.as(user_id).read(id)));
  };
  const becomes = (tidings: Tidings, user_id: string, count: number) =>
    eventually(
      () => reloads(tidings, user_id),
      (found) => found.length === count,
    );

  it("is told to all who have a conversation, each once, and of what concerns them; what waits for a start is named so", async () => {
    const { data, tidings } = await opened({ "tidings.toml": "" });
    const file = join(data, "tidings.toml");
    for (const thread_id of ["b1", "b2"]) await tidings.startThread({ user_id: "bob", thread_id });
    await tidings.startThread({ user_id: "carol", thread_id: "c" });
    await tidings.thread("c").close();
    writeFileSync(
      file,
      "[agent.budgets.day]\ntokens = 5\n[agent.shell]\nenable = true\n[mcp.servers.files]\ncommand = 'secret'\n[server.limits]\nbody_bytes = 5000\n",
    );
    const [operator] = await becomes(tidings, "local", 1);
    expect(operator).toMatchObject({
      events: [
        {
          payload: {
            file,
            changed: ["agent.budgets.day.tokens", "mcp.servers.files.command"],
            restart: ["agent.shell.enable", "server.limits.body_bytes"],
          },
        },
      ],
      content: expect.stringContaining(
        'takes effect with the next start: "agent.shell.enable, server.limits.body_bytes"',
      ),
    });
    const [bob] = await becomes(tidings, "bob", 1);
    expect(bob).toMatchObject({
      user_id: "bob",
      events: [{ payload: { file: null, changed: ["agent.budgets.day", "mcp.servers.files"] } }],
    });
    expect(JSON.stringify(bob)).not.toContain(data);
    expect(await reloads(tidings, "carol")).toEqual([]);
  });

  it("is the operator's alone where it concerns nobody else", async () => {
    const { data, tidings } = await opened({ "tidings.toml": "" });
    await tidings.startThread({ user_id: "bob", thread_id: "b" });
    writeFileSync(join(data, "tidings.toml"), "[agent.shell]\nenable = true\n");
    const [operator] = await becomes(tidings, "local", 1);
    expect(operator).toMatchObject({ events: [{ payload: { changed: [], restart: ["agent.shell.enable"] } }] });
    await tidings.close();
    const again = await openTidings({ data });
    expect(await reloads(again, "bob")).toEqual([]);
  });
});
