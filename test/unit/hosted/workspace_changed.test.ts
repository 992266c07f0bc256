/** The agent writes a file that somebody else has changed since it knew it: nobody's work is lost without a word. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/index.js";
import { call } from "../../support/background.js";
import { eventually, temporaryFolder } from "../../support/folder.js";
import { servedModel } from "../../support/hosted.js";
import { changes, desk, states } from "../../support/workspace.js";

const calls = (name: string, input: object) => ({ toolCalls: [{ name, arguments: JSON.stringify(input) }] });

/** Told only when a turn is over: what is pending stays so while the agent works. */
const late = { id: "workspace_change", types: ["workspace.*"], inject_at: "turn_end" } as const;

/** A tool by which somebody else saves, or removes, `a.txt` while the agent is at work. */
const others = (folder: string) =>
  defineTool({
    name: "others",
    description: "Somebody changes a file.",
    input: z.object({ content: z.string().nullable() }),
    async run({ content }) {
      if (content === null) await rm(join(folder, "a.txt"));
      else await writeFile(join(folder, "a.txt"), content);
      return "done";
    },
  });

const WRITES: [string, Record<string, unknown>][] = [
  ["write_file", { path: "a.txt", content: "Title\nprice = 1\n" }],
  ["edit_file", { path: "a.txt", old_text: "title", new_text: "Title" }],
];

test.each(WRITES)("%s is refused until the agent has read it, and what is pending stays so", async (name, input) => {
  const { model, server } = await servedModel();
  const folder = await temporaryFolder();
  const { talk, put, at } = await desk({ model, tools: [others(folder)] }, { folder, subscribers: [late] });
  await put("a.txt", "title\nprice = 1\n");
  server.answers.push(calls("read_file", { path: "a.txt" }), calls("others", { content: "title\nprice = 999\n" }));
  server.answers.push(calls(name, input), { content: "It was refused." });
  await talk.say("go");
  expect(await talk.answer()).toMatchObject({ failed: true, error: "changed_since_read" });
  expect((await talk.answer())["message"]).toContain("read_file");
  expect(await readFile(at("a.txt"), "utf8")).toBe("title\nprice = 999\n");
  expect(await states(talk.tidings)).toEqual(["PENDING"]);

  // It reads, and writes; a second time, too.
  server.answers.push(calls("read_file", { path: "a.txt" }), calls(name, input), { content: "Done." });
  await talk.say("again");
  const last = (await talk.calls()).at(-1);
  expect([last?.status, last?.content.output]).toEqual(["completed", expect.stringMatching(/^wrote \d+ bytes/)]);
  expect(await readFile(at("a.txt"), "utf8")).toContain("Title");
});

test("what nobody has noticed yet is refused, too, and told with the refusal", async () => {
  const { talk, put, read, at } = await desk();
  await put("a.txt", "one\n");
  await read("a.txt");
  await put("a.txt", "two\n");
  await talk.say(call("write_file", { path: "a.txt", content: "three\n" }));
  const told = (await talk.told()).length;
  const [last] = await talk.calls().then((all) => all.slice(-1));
  // Told with the message, if it was noticed before; then it may write.
  if (last?.status === "failed") expect(await readFile(at("a.txt"), "utf8")).toBe("two\n");
  expect(told).toBe(1);
});

test("a read in the same answer does not count: it was not seen when the write was decided", async () => {
  const { model, server } = await servedModel();
  const folder = await temporaryFolder();
  const { talk, put, at } = await desk({ model, tools: [others(folder)] }, { folder, subscribers: [late] });
  await put("a.txt", "one\n");
  const [name, input] = ["write_file", { path: "a.txt", content: "three\n" }];
  server.answers.push(calls("read_file", { path: "a.txt" }), calls("others", { content: "two\n" }), {
    toolCalls: [...calls("read_file", { path: "a.txt" }).toolCalls, ...calls(name, input).toolCalls],
  });
  await talk.say("go");
  expect(await talk.answer()).toMatchObject({ failed: true, error: "changed_since_read" });
  expect(await readFile(at("a.txt"), "utf8")).toBe("two\n");
  server.answers.push(calls(name, input));
  await talk.say("again");
  expect((await talk.calls()).at(-1)?.content.output).toBe("wrote 6 bytes to a.txt");
});

test("of what the agent was told it knows: it may write; and its own writes of one answer follow one another", async () => {
  const { talk, put, read, announced, at } = await desk();
  await put("a.txt", "one\n");
  await read("a.txt");
  await put("a.txt", "two\n");
  await announced("a.txt modified");
  const write = (content: string) => call("write_file", { path: "a.txt", content });
  await talk.say(
    write("three\n"),
    write("four\n"),
    call("edit_file", { path: "a.txt", old_text: "four", new_text: "5" }),
  );
  expect((await talk.calls()).filter(({ status }) => status === "failed")).toEqual([]);
  expect(await readFile(at("a.txt"), "utf8")).toBe("5\n");
});

test("a file that it does not know may be written over, and it says so; one that was removed is made anew", async () => {
  const { model, server } = await servedModel();
  const folder = await temporaryFolder();
  const { talk, put } = await desk({ model, tools: [others(folder)] }, { folder, subscribers: [late] });
  await put("a.txt", "theirs\n");
  const write = calls("write_file", { path: "a.txt", content: "mine\n" });
  const output = async () => (await talk.calls()).at(-1)?.content.output;
  server.answers.push(write);
  await talk.say("go");
  expect(await output()).toBe("wrote 5 bytes to a.txt; in the place of a file of 7 bytes that you had not read");
  server.answers.push(write);
  await talk.say("go");
  expect(await output()).toBe("wrote 5 bytes to a.txt");
  server.answers.push(calls("others", { content: null }), write);
  await talk.say("go");
  expect(await output()).toBe("wrote 5 bytes to a.txt; somebody else had removed it");
  expect(await states(talk.tidings), "that is told by it").toEqual(["SUPPRESSED observed"]);
});

test("a tool that overwrites without a look: the agent is still told, whatever becomes of the file then", async () => {
  const { model, server } = await servedModel();
  const folder = await temporaryFolder();
  const save = defineTool({
    name: "save",
    description: "Writes a file.",
    input: z.object({}),
    async run(_input, { files }) {
      await writeFile(join(folder, "a.txt"), "mine\n");
      await files.wrote("a.txt");
      return "saved";
    },
  });
  const { talk, put } = await desk({ model, tools: [others(folder), save] }, { folder, subscribers: [late] });
  await put("a.txt", "one\n");
  server.answers.push(calls("read_file", { path: "a.txt" }), calls("others", { content: "two\n" }), calls("save", {}));
  // Changed again, and back to what it wrote: the first change is still not known to it.
  server.answers.push(calls("others", { content: "three\n" }), calls("others", { content: "mine\n" }));
  await talk.say("go");
  expect(await changes(talk.tidings)).toEqual(["a.txt modified"]);
  await talk.say("hello");
  expect(await talk.told()).toEqual([expect.stringMatching(/a\.txt.*modified/)]);
  expect(await states(talk.tidings)).toEqual(["DELIVERED"]);
  // And from then on as ever.
  await put("a.txt", "four\n");
  await eventually(
    () => changes(talk.tidings),
    (all) => all.length === 2,
  );
});

test("a part of a file that somebody has changed says so", async () => {
  const { model, server } = await servedModel();
  const folder = await temporaryFolder();
  const { talk, put } = await desk({ model, tools: [others(folder)] }, { folder, subscribers: [late] });
  await put("a.txt", "one\ntwo\n");
  const part = calls("read_file", { path: "a.txt", limit: 1 });
  server.answers.push(part, calls("others", { content: "one\n2\n" }), part, part);
  await talk.say("go");
  const outputs = (await talk.calls()).map(({ content }) => content.output);
  expect(outputs).toEqual([
    "one\n(more follows: offset 2)",
    "done",
    "one\n(more follows: offset 2)\n(somebody else has changed the file since you knew it, here or in what is not shown)",
    "one\n(more follows: offset 2)",
  ]);
  expect(await states(talk.tidings)).toEqual(["SUPPRESSED observed"]);
});
