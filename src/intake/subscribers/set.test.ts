import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventually, temporaryFolder } from "../../../test/support/folder.js";
import { problemLine, type SubscriberChange, SubscriberSet } from "./set.js";

function toml(id: string, name = id, more = ""): string {
  return `[subscriber]
id = "${id}"
name = "${name}"
description = "d"
version = "1"
[events]
types = ["my.event"]
[output]
priority = "normal"
inject_at = "next"
template = "mine.j2"
${more}`;
}

async function openSet(files: Readonly<Record<string, string>> = {}, watch = true) {
  const folder = await temporaryFolder();
  const write = async (name: string, content: string) => {
    // As editors do: whole, under another name, then renamed.
    await writeFile(join(folder, `.${name}.new`), content);
    await rename(join(folder, `.${name}.new`), join(folder, name));
  };
  await write("mine.j2", "mine: {{ event.type }}");
  for (const [name, content] of Object.entries(files)) await write(name, content);
  const set = await SubscriberSet.open({ folder, watch });
  onTestFinished(() => set.close());
  const changes: SubscriberChange[] = [];
  set.onChange((change) => changes.push(change));
  const own = () => set.current.filter((one) => !one.built_in).map(({ id, name }) => `${id} ${name}`);
  const becomes = (...wanted: string[]) =>
    eventually(
      async () => own(),
      (now) => now.join() === wanted.join(),
    );
  return { set, folder, write, own, becomes, changes };
}

const nameOf = (set: SubscriberSet, id: string) => set.current.find((one) => one.id === id)?.name;
const reasons = (set: SubscriberSet) => set.problems.map((problem) => [problem.reason, problem.instead]);

describe("the set of subscribers", () => {
  it("is the built-in ones where there is no folder", async () => {
    const set = await SubscriberSet.open();
    onTestFinished(() => set.close());
    expect(set.problems).toEqual([]);
    expect(set.current.length).toBe(14);
    expect(set.current.every((one) => one.built_in)).toBe(true);
  });

  it("has an operator's subscriber in the place of the built-in one of its id", async () => {
    const { set, own } = await openSet({ "a.toml": toml("mine"), "mcp.toml": toml("mcp_connection", "My servers") });
    expect(own()).toEqual(["mcp_connection My servers", "mine mine"]);
    expect(set.current.filter(({ id }) => id === "mcp_connection")).toHaveLength(1);
    expect(set.current.length).toBe(15);
    expect(set.problems).toEqual([]);
  });

  it("follows the folder without a restart: new files, edits, removals, templates", async () => {
    const { set, folder, write, becomes, changes } = await openSet();
    await write("a.toml", toml("a"));
    await becomes("a a");
    await write("a.toml", toml("a", "edited"));
    await becomes("a edited");
    await write("b.toml", toml("b"));
    await becomes("a edited", "b b");
    expect(changes.map(({ added, changed, removed }) => [added, changed, removed])).toEqual([
      [["a"], [], []],
      [[], ["a"], []],
      [["b"], [], []],
    ]);
    await write("mine.j2", "mine: {{ event.source }}");
    await eventually(
      async () => changes.at(-1)?.changed,
      (changed) => changed?.join() === "a,b",
    );
    await rm(join(folder, "a.toml"));
    await becomes("b b");
    expect(changes.at(-1)).toMatchObject({ removed: ["a"] });
    expect(set.problems).toEqual([]);
  });

  it("gives a built-in subscriber its place back", async () => {
    const { set, folder, write, becomes } = await openSet();
    const original = nameOf(set, "rate_limit");
    await write("r.toml", toml("rate_limit", "Mine"));
    await becomes("rate_limit Mine");
    await rm(join(folder, "r.toml"));
    await becomes();
    expect(nameOf(set, "rate_limit")).toBe(original);
  });

  it("keeps the last good version through a broken edit, says so, and goes on with the next good one", async () => {
    const { set, folder, write, becomes, changes } = await openSet({ "a.toml": toml("a"), "b.toml": toml("b") });
    const kept = set.current.find(({ id }) => id === "a");
    await write("a.toml", toml("a", "broken", "window_ms = 5\n"));
    await eventually(
      async () => set.problems,
      (problems) => problems.length === 1,
    );
    expect(set.current.find(({ id }) => id === "a")).toBe(kept);
    expect(set.problems.map(problemLine)).toEqual([
      `${join(folder, "a.toml")}:12:1: output.window_ms is not a known key; it belongs into [batching] (the last good version stays in effect)`,
    ]);
    expect(changes).toMatchObject([
      { added: [], changed: [], removed: [], problems: [{ instead: "last_good" }], solved: [] },
    ]);
    // Another mistake is another problem; the version that was good is the same.
    await write("a.toml", "[subscriber");
    await eventually(
      async () => set.problems[0]?.reason ?? "",
      (reason) => reason.includes("TOML"),
    );
    expect(set.current.find(({ id }) => id === "a")).toBe(kept);
    await write("a.toml", toml("a", "mended"));
    await becomes("a mended", "b b");
    expect(set.problems).toEqual([]);
    expect(changes.at(-1)).toMatchObject({ changed: ["a"], solved: [{ file: join(folder, "a.toml") }] });
  });

  it("keeps it through a broken or missing template, too", async () => {
    const { set, folder, write, own } = await openSet({ "a.toml": toml("a") });
    await write("mine.j2", "{% if %}");
    await eventually(
      async () => set.problems,
      (problems) => problems.length === 1,
    );
    expect(set.problems).toMatchObject([{ file: join(folder, "mine.j2"), line: 1, instead: "last_good" }]);
    await rm(join(folder, "mine.j2"));
    await eventually(
      async () => set.problems[0]?.reason ?? "",
      (reason) => reason.includes("does not exist"),
    );
    expect(own()).toEqual(["a a"]);
  });

  it("has nothing to keep for a file that never was good, but a built-in one of that id stays", async () => {
    const { set, own } = await openSet({
      "a.toml": toml("a", "a", "x = 1\n"),
      "c.toml": toml("cli_event", "c", "x = 1\n"),
    });
    expect(own()).toEqual([]);
    expect(reasons(set)).toEqual([
      [expect.stringContaining("not a known key"), null],
      [expect.stringContaining("not a known key"), "built_in"],
    ]);
    expect(set.problems.map(problemLine)[1]).toMatch(/the built-in one stays in effect/);
  });

  it("lets a whole file have the id of one that broke", async () => {
    const { set, write, becomes } = await openSet({ "a.toml": toml("x", "from a") });
    await write("a.toml", "broken");
    await write("b.toml", toml("x", "from b"));
    await becomes("x from b");
    expect(reasons(set)).toEqual([[expect.stringContaining("TOML"), null]]);
  });

  it("forgets everything when the folder is removed, and reads one that is made later", async () => {
    const { folder, becomes } = await openSet({ "a.toml": toml("a") });
    await rm(folder, { recursive: true });
    await becomes();
    await mkdir(folder);
    await writeFile(join(folder, "mine.j2"), "mine: {{ event.type }}");
    await writeFile(join(folder, "b.toml"), toml("b"));
    await becomes("b b");
  });

  it("reads again when it is told to, and says nothing if nothing has changed", async () => {
    const { set, write, own, changes } = await openSet({ "a.toml": toml("a") }, false);
    const before = set.current;
    await set.reload();
    expect(changes).toEqual([]);
    expect(set.current).toEqual(before);
    await write("b.toml", toml("b"));
    expect(own()).toEqual(["a a"]);
    await Promise.all([set.reload(), set.reload()]);
    expect(own()).toEqual(["a a", "b b"]);
    expect(changes).toHaveLength(1);
    // What has not changed is the same object.
    expect(set.current.find(({ id }) => id === "a")).toBe(before.find(({ id }) => id === "a"));
  });

  it("tells nobody any more after a listener has left or the set is closed", async () => {
    const { set, write, changes } = await openSet({}, false);
    const heard: SubscriberChange[] = [];
    const leave = set.onChange((change) => heard.push(change));
    leave();
    await write("b.toml", toml("b"));
    await set.reload();
    expect([heard.length, changes.length]).toEqual([0, 1]);
    await set.close();
  });
});
