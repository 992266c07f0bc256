/**
 * Files that the agent knows, changed by others: real files in folders of their own. That something is not told is shown by something
 * later that is: what is noticed later is announced later.
 */
import { appendFile, mkdir, rename, rm, truncate, unlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/index.js";
import { call, spawn, Talk } from "../../support/background.js";
import { eventually, temporaryFolder } from "../../support/folder.js";
import { servedModel } from "../../support/hosted.js";
import { changes, desk, states } from "../../support/workspace.js";

/** What a model answers that calls one tool. */
const calls = (name: string, input: object) => ({ toolCalls: [{ name, arguments: JSON.stringify(input) }] });

/** Several lines of the same. */
const times = (count: number, line: (n: number) => string) => Array.from({ length: count }, (_, n) => line(n));

test("told once, with the next message, in words that say what to do", async () => {
  const { model, server } = await servedModel();
  const { talk, put, announced } = await desk({ model });
  await put("a.txt", "one\n");
  server.answers.push(calls("read_file", { path: "a.txt" }));
  await talk.say("read it");
  await put("a.txt", "two\n");
  await announced("a.txt modified");
  await talk.say("hello");
  await talk.say("hello again");
  const bodies = server.recorder.requests.map(({ body }) => body);
  expect(bodies).toHaveLength(4);
  expect(bodies[1]).toContain("one\\n");
  const words = "workspace: a.txt modified outside of this conversation\\nsince: ";
  expect(bodies.map((body) => body.split(words).length - 1)).toEqual([0, 0, 1, 1]);
  expect(bodies[2]).toContain("next: call read_file with its path to see the change before you edit it or rely on it");
  expect(await states(talk.tidings)).toEqual(["DELIVERED"]);
  expect(talk.tidings.agentCounters, "nobody is woken for it").toMatchObject({ wakes: 0 });
  expect((await talk.tidings.audit()).problems).toEqual([]);
});

describe("however it is saved", () => {
  test.each<[string, (file: string) => Promise<void>]>([
    ["in place", (file) => writeFile(file, "new\n")],
    [
      "by a copy that takes its name",
      async (file) => {
        await writeFile(`${file}~`, "new\n");
        await rename(`${file}~`, file);
      },
    ],
    [
      "by a copy, twice",
      async (file) => {
        for (const content of ["newer\n", "new\n"]) {
          await writeFile(`${file}.swp`, content);
          await rename(`${file}.swp`, file);
        }
      },
    ],
    [
      "removed and made anew",
      async (file) => {
        await unlink(file);
        await writeFile(file, "new\n");
      },
    ],
    [
      "the old one moved away first",
      async (file) => {
        await rename(file, `${file}.bak`);
        await writeFile(file, "new\n");
      },
    ],
    [
      "truncated, then written slowly",
      async (file) => {
        await truncate(file, 0);
        for (let n = 0; n < 10; n += 1) {
          await appendFile(file, `${n}\n`);
          await new Promise((resolve) => setTimeout(resolve, 40));
        }
      },
    ],
  ])("%s: one change, and the next one, too", async (_how, save) => {
    const { talk, at, put, read, announced } = await desk();
    await put("a.txt", "old\n");
    await read("a.txt");
    await save(at("a.txt"));
    await announced("a.txt modified");
    await talk.say("hello");
    // It is watched on.
    await put("a.txt", "newest\n");
    await announced("a.txt modified", "a.txt modified");
    expect(await states(talk.tidings)).toEqual(["DELIVERED", "PENDING"]);
  });

  test("removed and made anew much later: told of both; with nobody told in between, of what it is now", async () => {
    const { talk, at, put, read, announced } = await desk();
    await put("a.txt", "old\n");
    await read("a.txt");
    await unlink(at("a.txt"));
    await announced("a.txt deleted");
    await talk.say("hello");
    expect((await talk.told()).at(-1)).toContain("workspace: a.txt deleted");
    await put("a.txt", "new\n");
    await announced("a.txt deleted", "a.txt created");
    await unlink(at("a.txt"));
    // As the agent was told: there is nothing to say.
    await eventually(
      () => states(talk.tidings),
      (all) => all.join() === "DELIVERED,SUPPRESSED observed",
    );
    await put("a.txt", "new\n");
    await announced("a.txt deleted", "a.txt created", "a.txt created");
    await talk.say("hello");
    await unlink(at("a.txt"));
    await announced("a.txt deleted", "a.txt created", "a.txt created", "a.txt deleted");
    await put("a.txt", "newest\n");
    // Not deleted any more: modified, and only that is told.
    await announced("a.txt deleted", "a.txt created", "a.txt created", "a.txt deleted", "a.txt modified");
    await talk.say("hello");
    expect((await talk.told()).at(-1)).toContain("workspace: a.txt modified");
    expect(await states(talk.tidings)).toEqual([
      "DELIVERED",
      "SUPPRESSED observed",
      "DELIVERED",
      "SUPPRESSED observed",
      "DELIVERED",
    ]);
  });
});

describe("what is pending", () => {
  test("is withdrawn when the agent reads the file itself: told of the other alone", async () => {
    const { model, server } = await servedModel();
    const folder = await temporaryFolder();
    const others = defineTool({
      name: "others",
      description: "Somebody changes files while the agent is at work.",
      input: z.object({}),
      async run() {
        for (const name of ["a.txt", "b.txt"]) await writeFile(join(folder, name), "two\n");
        return "done";
      },
    });
    const late = { id: "workspace_change", types: ["workspace.*"], inject_at: "turn_end" } as const;
    const { talk, put } = await desk({ model, tools: [others] }, { folder, subscribers: [late] });
    for (const name of ["a.txt", "b.txt"]) await put(name, "one\n");
    server.answers.push({
      toolCalls: ["a.txt", "b.txt"].map((path) => ({ name: "read_file", arguments: JSON.stringify({ path }) })),
    });
    await talk.say("read them");
    server.answers.push(calls("others", {}), calls("read_file", { path: "a.txt" }), { content: "I have seen a." });
    await talk.say("go on");
    expect((await changes(talk.tidings)).sort()).toEqual(["a.txt modified", "b.txt modified"]);
    await talk.say("hello");
    const told = (await talk.told()).join("\n");
    expect(told).toContain("b.txt");
    expect(told).not.toContain("a.txt");
  });

  test("is withdrawn when the file is again as the agent knows it; what was told is not", async () => {
    const { talk, put, read, announced } = await desk();
    await put("a.txt", "one\n");
    await read("a.txt");
    await put("a.txt", "two\n");
    await announced("a.txt modified");
    await put("a.txt", "one\n");
    await eventually(
      () => states(talk.tidings),
      (all) => all.join() === "SUPPRESSED observed",
    );
    await talk.say("hello");
    expect(await talk.told()).toEqual([]);
    await put("a.txt", "two\n");
    await announced("a.txt modified", "a.txt modified");
    await talk.say("hello");
    await put("a.txt", "one\n");
    await announced("a.txt modified", "a.txt modified", "a.txt modified");
    await talk.say("hello");
    expect(await talk.told()).toHaveLength(2);
  });

  test("stands for further changes; once it is told, the next one is told again; a new time is no change", async () => {
    const { talk, at, put, read, announced } = await desk();
    for (const name of ["a.txt", "z.txt"]) await put(name, "0\n");
    await read("a.txt", "z.txt");
    await put("a.txt", "1\n");
    await announced("a.txt modified");
    for (const content of ["2\n", "3\n"]) await put("a.txt", content);
    await put("z.txt", "1\n");
    await announced("a.txt modified", "z.txt modified");
    await talk.say("hello");
    expect(await talk.told()).toHaveLength(1);
    await utimes(at("a.txt"), 1, 1);
    await put("z.txt", "2\n");
    await announced("a.txt modified", "z.txt modified", "z.txt modified");
    await put("a.txt", "4\n");
    await announced("a.txt modified", "z.txt modified", "z.txt modified", "a.txt modified");
  });
});

describe("what the agent does itself", () => {
  test("is not told, however much and however quickly", async () => {
    const { talk, put, read, announced } = await desk();
    await put("z.txt", "0\n");
    await read("z.txt");
    await talk.say(...times(40, (n) => call("write_file", { path: `${n % 8}.txt`, content: `${n}\n` })));
    for (let n = 0; n < 10; n += 1) {
      await talk.say(
        call("write_file", { path: "a.txt", content: `${n}\n` }),
        call("write_file", { path: "z.txt", content: `${n}\n` }),
      );
      await talk.say(call("edit_file", { path: "a.txt", old_text: `${n}`, new_text: `line ${n}` }));
    }
    expect((await talk.calls()).filter(({ status }) => status === "failed")).toEqual([]);
    await put("z.txt", "others\n");
    await announced("z.txt modified");
    await put("a.txt", "others\n");
    await announced("z.txt modified", "a.txt modified");
  });

  test("by tools of the program, which say so; one that does not is taken for somebody else", async () => {
    const folder = await temporaryFolder();
    const save = (name: string, says: boolean) =>
      defineTool({
        name,
        description: "Writes a file.",
        input: z.object({ path: z.string(), content: z.string(), wait_ms: z.number().default(0) }),
        async run({ path, content, wait_ms }, { files }) {
          await writeFile(join(folder, path), content);
          // Longer than anybody waits who has heard of the change.
          await new Promise((resolve) => setTimeout(resolve, wait_ms));
          if (says) await files.wrote(join(folder, path));
          return "saved";
        },
      });
    const look = defineTool({
      name: "look",
      description: "Looks at a file.",
      input: z.object({ path: z.string() }),
      async run({ path }, { files }) {
        await files.read(path, "one\n");
        await files.read("../outside.txt");
        return "seen";
      },
    });
    const { talk, put, announced } = await desk(
      { tools: [save("save", true), save("scribble", false), look] },
      { folder },
    );
    for (const name of ["a.txt", "z.txt"]) await put(name, "one\n");
    await talk.say(call("look", { path: "a.txt" }), call("look", { path: "z.txt" }));
    await talk.say(call("save", { path: "a.txt", content: "two\n", wait_ms: 2_500 }));
    await talk.say(call("save", { path: "b.txt", content: "two\n" }));
    await put("z.txt", "two\n");
    await announced("z.txt modified");
    await talk.say(call("scribble", { path: "b.txt", content: "three\n" }));
    await announced("z.txt modified", "b.txt modified");
  });

  test("a file that was another one when it was read than it is now: told", async () => {
    const folder = await temporaryFolder();
    const stale = defineTool({
      name: "stale",
      description: "Shows a file that is changed before the answer is there.",
      input: z.object({}),
      async run(_input, { files }) {
        await files.read("a.txt", "one\n");
        await writeFile(join(folder, "a.txt"), "two\n");
        return "one\n";
      },
    });
    const { talk, put, announced } = await desk({ tools: [stale] }, { folder });
    await put("a.txt", "one\n");
    await talk.say(call("stale", {}));
    await announced("a.txt modified");
  });

  test("by a command in the background is told: the agent knows that it ran, and not what it has done to the file", async () => {
    const folder = await temporaryFolder();
    const { talk, put, read, announced } = await desk({ shell: { command_lines: true, folder } }, { folder });
    await put("a.txt", "one\n");
    await read("a.txt");
    await talk.say(spawn("fmt", { command: "echo two > a.txt" }), call("await", { all: ["fmt"] }));
    await announced("a.txt modified");
    expect(await talk.told(), "with the result that says that it has ended").toEqual([
      expect.stringContaining("a.txt modified"),
    ]);
  });

  test("by a tool in the background that says so is not", async () => {
    const folder = await temporaryFolder();
    const format = defineTool({
      name: "format",
      description: "Formats a file.",
      input: z.object({ path: z.string() }),
      async spawn({ path }, { files }) {
        await writeFile(join(folder, path), "formatted\n");
        await files.wrote(path, "formatted\n");
        return "done";
      },
    });
    const { talk, put, read, announced } = await desk({ tools: [format] }, { folder });
    for (const name of ["a.txt", "z.txt"]) await put(name, "one\n");
    await read("a.txt", "z.txt");
    await talk.say(spawn("f", { path: "a.txt" }, "format"), call("await", { all: ["f"] }));
    await put("z.txt", "two\n");
    await announced("z.txt modified");
  });
});

test("what others do while a tool runs is told with its result", async () => {
  const folder = await temporaryFolder();
  const others = defineTool({
    name: "others",
    description: "Somebody changes a file meanwhile.",
    input: z.object({}),
    async run() {
      await writeFile(join(folder, "a.txt"), "two\n");
      return "done";
    },
  });
  const { talk, put, read } = await desk({ tools: [others] }, { folder });
  await put("a.txt", "one\n");
  await read("a.txt");
  await talk.say(call("others", {}));
  expect(await talk.told()).toEqual([expect.stringContaining("a.txt modified")]);
  expect(await changes(talk.tidings)).toEqual(["a.txt modified"]);
});

test("two conversations: each is told of what it knows, and of what the other's agent writes", async () => {
  const { talk, put, read, announced } = await desk();
  const { thread_id } = await talk.tidings.startThread({ thread_id: "second" });
  const second = new Talk(talk.tidings, thread_id);
  for (const name of ["a.txt", "b.txt"]) await put(name, "one\n");
  await read("a.txt", "b.txt");
  await second.say(call("read_file", { path: "a.txt" }));
  await put("b.txt", "two\n");
  await announced("b.txt modified");
  await second.say(call("write_file", { path: "a.txt", content: "two\n" }));
  await announced("b.txt modified", "a.txt modified");
  await put("a.txt", "three\n");
  // The first one's notification stands for both changes.
  await announced("b.txt modified", "a.txt modified", "second a.txt modified");
  await second.say("hello");
  expect(await second.told()).toHaveLength(1);
  await talk.say("hello");
  expect((await talk.told()).join()).toMatch(/b\.txt.*\n.*a\.txt/);

  // What is closed hears nothing, and nothing of it is kept.
  await talk.tidings.closeThread(thread_id);
  await put("a.txt", "four\n");
  await announced("b.txt modified", "a.txt modified", "second a.txt modified", "a.txt modified");
  expect((await talk.tidings.audit()).problems).toEqual([]);
});

describe("much", () => {
  const known = (files: number) =>
    defineTool({
      name: "know",
      description: "Reads many files.",
      input: z.object({}),
      async run(_input, context) {
        for (let n = 0; n < files; n += 1) await context.files.read(`${n}.txt`);
        return "done";
      },
    });

  test("500 files at once: one notification, with a row for each of the first and one for the rest", async () => {
    const folder = await temporaryFolder();
    const all = (content: string) =>
      Promise.all(times(500, (n) => `${n}.txt`).map((name) => writeFile(join(folder, name), content)));
    const checkout = defineTool({
      name: "checkout",
      description: "Somebody checks out another branch meanwhile.",
      input: z.object({}),
      async run() {
        await all("two\n");
        return "done";
      },
    });
    const { talk, put, announced } = await desk({ tools: [known(500), checkout] }, { folder });
    await all("one\n");
    await talk.say(call("know", {}));
    await talk.say(call("checkout", {}));
    const found = await changes(talk.tidings);
    expect(found).toHaveLength(25);
    expect(found.at(-1)).toBe("476 more files that you know changed");
    expect(await states(talk.tidings)).toEqual(["DELIVERED"]);
    expect(await talk.told()).toEqual([expect.stringContaining("476 more files that you know")]);
    // All of them count as told.
    await put("499.txt", "three\n");
    await announced(...found, "499.txt modified");
  });

  test("the same many again at once: told again, and nobody's work is written over unseen", async () => {
    const folder = await temporaryFolder();
    const all = (content: string) =>
      Promise.all(times(60, (n) => `${n}.txt`).map((name) => writeFile(join(folder, name), content)));
    const checkout = defineTool({
      name: "checkout",
      description: "Somebody checks out another branch meanwhile.",
      input: z.object({ branch: z.string() }),
      async run({ branch }) {
        await all(branch);
        return "done";
      },
    });
    const { talk } = await desk({ tools: [known(60), checkout] }, { folder });
    await all("main");
    await talk.say(call("know", {}));
    await talk.say(call("checkout", { branch: "one" }));
    await talk.say(call("checkout", { branch: "two" }));
    await talk.say("nothing");
    const rest = (await talk.told()).filter((text) => text.includes("36 more files that you know"));
    expect(rest).toHaveLength(2);
  });

  test("however long a call goes on when somebody has changed them: told with its result", async () => {
    const folder = await temporaryFolder();
    const names = times(400, (n) => `${n}.txt`);
    const checkout = defineTool({
      name: "checkout",
      description: "Somebody checks out another branch meanwhile.",
      input: z.object({ branch: z.string(), wait_ms: z.number() }),
      async run({ branch, wait_ms }) {
        await Promise.all(names.map((name) => writeFile(join(folder, name), branch)));
        // About as long as it takes until what was heard is looked at: the call ends before, during and after that.
        await new Promise((resolve) => setTimeout(resolve, wait_ms));
        return "done";
      },
    });
    const { talk } = await desk({ tools: [known(400), checkout] }, { folder });
    await Promise.all(names.map((name) => writeFile(join(folder, name), "main")));
    await talk.say(call("know", {}));
    const told: number[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      const before = (await changes(talk.tidings)).length;
      await talk.say(call("checkout", { branch: `branch ${turn}`, wait_ms: 150 + turn * 16 }));
      told.push((await changes(talk.tidings)).length - before);
    }
    expect(told).toEqual(Array(8).fill(25));
  });

  test("more files than are kept: those that were touched last", async () => {
    const { talk, put, announced } = await desk({ tools: [known(5)], workspace: { files_max: 3 } });
    for (let n = 0; n < 5; n += 1) await put(`${n}.txt`, "one\n");
    await talk.say(call("know", {}));
    await talk.say(call("read_file", { path: "0.txt" }));
    for (const n of [1, 2]) await put(`${n}.txt`, "two\n");
    await put("0.txt", "two\n");
    await announced("0.txt modified");
    await put("4.txt", "two\n");
    await announced("0.txt modified", "4.txt modified");
  });

  test("a file of 50 MB: read in part, and told by its size and time", async () => {
    const { talk, at, put, read, announced } = await desk();
    const line = `${"x".repeat(99)}\n`;
    await put("big.txt", line.repeat(500_000));
    await read("big.txt");
    const [first] = await talk.calls();
    expect(first?.content.output).toMatch(/^(x{99}\n)+/);
    expect(first?.content.output?.length).toBeLessThan(120_000);
    await talk.say(call("read_file", { path: "big.txt", offset: 499_999 }));
    expect((await talk.calls()).at(-1)?.content.output).toBe(line.repeat(2));
    await appendFile(at("big.txt"), "y");
    await announced("big.txt modified");
  });
});

describe("folders", () => {
  test("a folder that is removed, and is there again", async () => {
    const { talk, at, put, read, announced } = await desk();
    await mkdir(at("src/deep"), { recursive: true });
    await put("src/deep/a.txt", "one\n");
    await read("src/deep/a.txt");
    await rm(at("src"), { recursive: true });
    await announced("src/deep/a.txt deleted");
    await talk.say("hello");
    await mkdir(at("src/deep"), { recursive: true });
    await put("src/deep/a.txt", "one\n");
    await announced("src/deep/a.txt deleted", "src/deep/a.txt created");
    await put("src/deep/a.txt", "two\n");
    await talk.say("hello");
    await put("src/deep/a.txt", "three\n");
    await announced("src/deep/a.txt deleted", "src/deep/a.txt created", "src/deep/a.txt modified");
  });

  test("the workspace itself is removed: told, and nothing breaks", async () => {
    const { talk, folder, put, read, announced } = await desk();
    await put("a.txt", "one\n");
    await read("a.txt");
    await rm(folder, { recursive: true });
    await announced("a.txt deleted");
    await read("a.txt");
    expect((await talk.calls()).at(-1)).toMatchObject({ status: "failed" });
    await talk.say(call("list_files", {}));
    expect(await talk.answer()).toMatchObject({ failed: true, error: "not_found" });
  });
});

describe("after a restart", () => {
  test("what has changed meanwhile is told, once; what has not, is not", async () => {
    const [data, folder] = [await temporaryFolder(), await temporaryFolder()];
    const first = await desk({}, { data, folder });
    for (const name of ["a.txt", "b.txt", "c.txt", "d.txt"]) await first.put(name, "one\n");
    await first.read("a.txt", "b.txt", "c.txt", "d.txt");
    await first.put("d.txt", "two\n");
    await first.announced("d.txt modified");
    await first.talk.say("hello");
    await first.talk.tidings.close();

    await first.put("a.txt", "two\n");
    await rm(first.at("b.txt"));
    const second = await desk({}, { data, folder });
    await eventually(
      () => changes(second.talk.tidings),
      (found) => found.length === 3,
    );
    await second.talk.say("hello");
    expect((await second.talk.told()).at(-1)).toMatch(/a\.txt,modified.*\n.*b\.txt,deleted/);
    await second.talk.tidings.close();

    const third = await desk({}, { data, folder });
    await third.put("c.txt", "two\n");
    await eventually(
      () => changes(third.talk.tidings),
      (found) => found.at(-1) === "c.txt modified",
    );
    expect(await changes(third.talk.tidings)).toHaveLength(4);
    expect((await third.talk.tidings.audit()).problems).toEqual([]);
    await third.talk.tidings.close();

    // Of another folder nothing is known.
    const elsewhere = await desk({}, { data });
    await elsewhere.put("z.txt", "one\n");
    await elsewhere.read("z.txt");
    await elsewhere.put("z.txt", "two\n");
    await eventually(
      () => changes(elsewhere.talk.tidings),
      (found) => found.at(-1) === "z.txt modified",
    );
    expect(await changes(elsewhere.talk.tidings)).toHaveLength(5);
  });
});
