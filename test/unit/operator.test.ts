/** What the operator is told of broken files, through the library on a real folder. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openTidings, temporaryFolder } from "../support/folder.js";

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
