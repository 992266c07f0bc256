/** The tools for files: what they do, and that nothing of it is done outside of the workspace. */
import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, readFile, realpath, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Tidings } from "../../../src/index.js";
import { call } from "../../support/background.js";
import { eventually, temporaryFolder } from "../../support/folder.js";
import { servedModel } from "../../support/hosted.js";
import { type Desk, desk } from "../../support/workspace.js";

/** What a call is answered: its text, or the error in its words. */
async function asked({ talk }: Desk, name: string, input: Record<string, unknown>): Promise<string> {
  await talk.say(call(name, input));
  const last = (await talk.calls()).at(-1);
  return `${last?.status === "failed" ? "failed: " : ""}${last?.content.output}`;
}

describe("reading", () => {
  test("whole, in part, and to its end; the lines are as they are", async () => {
    const one = await desk();
    const lines = Array.from({ length: 3_000 }, (_, n) => `line ${n + 1}\n`);
    await one.put("long.txt", lines.join(""));
    await one.put("short.txt", "ä\r\n\r\nlast without an end");
    await one.put("empty.txt", "");
    expect(await asked(one, "read_file", { path: "short.txt" })).toBe("ä\r\n\r\nlast without an end");
    expect(await asked(one, "read_file", { path: "./sub/../short.txt", offset: 3, limit: 1 })).toBe(
      "last without an end",
    );
    expect(await asked(one, "read_file", { path: "empty.txt" })).toBe("(the file is empty)");
    expect(await asked(one, "read_file", { path: "short.txt", offset: 4 })).toBe("(the file has fewer than 4 lines)");
    const whole = await asked(one, "read_file", { path: "long.txt" });
    expect(whole).toBe(`${lines.slice(0, 2_000).join("")}(more follows: offset 2001)`);
    expect(await asked(one, "read_file", { path: "long.txt", offset: 2_001 })).toBe(lines.slice(2_000).join(""));
    expect(await asked(one, "read_file", { path: join(one.folder, "long.txt"), offset: 3_000, limit: 5 })).toBe(
      "line 3000\n",
    );
  });

  test("a line that does not end is cut off; what is no text is not shown", async () => {
    const one = await desk();
    await one.put("line.txt", "x".repeat(9_000_000));
    await one.put("picture.png", new Uint8Array([137, 80, 0, 1]));
    const answer = await asked(one, "read_file", { path: "line.txt" });
    expect(answer).toHaveLength(100_000 + "\n(line 1 goes on; so much is shown at once)".length);
    expect(await asked(one, "read_file", { path: "picture.png" })).toMatch(/^failed: \{"error":"not_text"/);
  });

  test("a folder is listed, as deep as is asked, and not for ever", async () => {
    const one = await desk();
    await mkdir(one.at("src/deep"), { recursive: true });
    await mkdir(one.at("node_modules/left-pad"), { recursive: true });
    for (const path of ["b.txt", "a.txt", "src/main.ts", "src/deep/x"]) await one.put(path, "1234");
    await symlink("/etc/passwd", one.at("link"));
    expect(await asked(one, "list_files", {})).toBe("a.txt 4\nb.txt 4\nlink (no file)\nnode_modules/\nsrc/");
    expect(await asked(one, "list_files", { path: "src", depth: 2 })).toBe("deep/\ndeep/x 4\nmain.ts 4");
    expect(await asked(one, "list_files", { depth: 9 })).not.toContain("left-pad");
    await Promise.all(Array.from({ length: 1_200 }, (_, n) => one.put(`src/deep/${n}`, "")));
    const many = await asked(one, "list_files", { path: "src/deep" });
    expect(many.split("\n")).toHaveLength(1_001);
    expect(many).toContain("and more: at least 201");
    expect(await asked(one, "list_files", { path: "a.txt" })).toMatch(/^failed: \{"error":"not_a_folder"/);
  });
});

test("names that are hard to read or to tell", async () => {
  const one = await desk();
  for (const name of ["a\\b.txt", "c\nd 5", "e\u202ef"]) await one.put(name, "one\n");
  expect((await asked(one, "list_files", {})).split("\n")).toEqual(["a\\b.txt 4", "c\\u{000a}d 5 4", "e\\u{202e}f 4"]);
  await one.read("a\\b.txt");
  await one.put("a\\b.txt", "two\n");
  await one.announced("a\\b.txt modified");
});

test("the whole file system is a workspace, too", async () => {
  const folder = await temporaryFolder();
  const one = await desk({}, { folder: "/" });
  const path = join(folder, "a.txt");
  await writeFile(path, "one\n");
  expect(await asked(one, "read_file", { path })).toBe("one\n");
  await writeFile(path, "two\n");
  await one.announced(`${(await realpath(path)).slice(1)} modified`);
});

describe("writing", () => {
  test("whole or not at all, with its mode; folders are made", async () => {
    const one = await desk();
    expect(await asked(one, "write_file", { path: "new/folder/a.txt", content: "äb" })).toBe(
      "wrote 3 bytes to new/folder/a.txt",
    );
    expect(await readFile(one.at("new/folder/a.txt"), "utf8")).toBe("äb");
    await one.put("run.sh", "old");
    await chmod(one.at("run.sh"), 0o755);
    const { ino } = await stat(one.at("run.sh"));
    await asked(one, "write_file", { path: "run.sh", content: "new" });
    const after = await stat(one.at("run.sh"));
    expect(after.mode & 0o777).toBe(0o755);
    expect(after.ino, "it is another file that took its name").not.toBe(ino);
    expect(await readdir(one.folder), "and nothing is left of the writing").toEqual(["new", "run.sh"]);
  });

  test("an edit replaces what stands there exactly, and says why it does not", async () => {
    const one = await desk();
    await one.put("a.txt", "\ufeffone two two\r\n$& three");
    const edit = (old_text: string, new_text: string, more = {}) =>
      asked(one, "edit_file", { path: "a.txt", old_text, new_text, ...more });
    expect(await edit("one", "$&1")).toBe("wrote 24 bytes to a.txt; replaced once");
    expect(await edit("two", "2")).toMatch(/^failed: \{"error":"text_not_unique".*stands 2 times/);
    expect(await edit("two", "2", { all: true })).toMatch(/replaced 2 times$/);
    expect(await edit("four", "4")).toMatch(/^failed: \{"error":"text_not_found".*read_file/);
    expect(await readFile(one.at("a.txt"), "utf8")).toBe("\ufeff$&1 2 2\r\n$& three");
    await one.put("bytes", new Uint8Array([0xff, 0x6f, 0x6e, 0x65]));
    expect(await asked(one, "edit_file", { path: "bytes", old_text: "one", new_text: "1" })).toContain('"not_text"');
    await one.put("big", "one".padEnd(9_000_000, "x"));
    expect(await asked(one, "edit_file", { path: "big", old_text: "one", new_text: "1" })).toContain('"too_large"');
  });

  test("edits of one answer follow one another: none is lost", async () => {
    const one = await desk();
    const words = Array.from({ length: 20 }, (_, n) => `<${n}>`);
    await one.put("a.txt", words.join("\n"));
    await one.talk.say(
      ...words.map((word) => call("edit_file", { path: "a.txt", old_text: word, new_text: `done ${word}` })),
    );
    expect(await readFile(one.at("a.txt"), "utf8")).toBe(words.map((word) => `done ${word}`).join("\n"));
  });

  test("is not there where it is not wanted; others notice it, and reading is noticed by nobody", async () => {
    const one = await desk({ workspace: { read_only: true } });
    await one.put("a.txt", "one\n");
    expect(await asked(one, "read_file", { path: "a.txt" })).toBe("one\n");
    expect(await asked(one, "write_file", { path: "a.txt", content: "" })).toMatch(/^failed: there is no tool/);
    // An internal turn stays one while it reads, and is promoted before it writes.
    const { model, server } = await servedModel();
    const two = await desk({ model });
    await two.put("a.txt", "one\n");
    const decided = async (name: string, input: object) => {
      server.answers.push({ toolCalls: [{ name, arguments: JSON.stringify(input) }] }, { content: "Decided." });
      const notice = { content: "Something is new.", thread_id: "chat", target: "agent", handler: "agent" } as const;
      const { id } = await two.talk.tidings.notify(notice);
      const seen = await eventually(
        () => two.talk.tidings.read(id),
        (one) => "state" in one && (one.state === "DELIVERED" || one.state === "ESCALATED"),
      );
      return "state" in seen ? `${seen.state} ${seen.channel}` : "";
    };
    expect(await decided("read_file", { path: "a.txt" })).toBe("DELIVERED agent");
    expect(await decided("write_file", { path: "a.txt", content: "two\n" })).toBe("ESCALATED floor");
  });
});

describe("nothing leads out of it", () => {
  const outside = async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "secret.txt"), "secret");
    return folder;
  };
  const ways: [string, (other: string, one: Desk) => Promise<string>][] = [
    ["..", async (other) => `../${other.split("/").at(-1)}/secret.txt`],
    [".. further on", async (other) => `src/../../${other.split("/").at(-1)}/secret.txt`],
    ["a path in full", async (other) => join(other, "secret.txt")],
    [
      "a symlink to a file",
      async (other, one) => {
        await symlink(join(other, "secret.txt"), one.at("link.txt"));
        return "link.txt";
      },
    ],
    [
      "a symlink to a folder",
      async (other, one) => {
        await symlink(other, one.at("link"));
        return "link/secret.txt";
      },
    ],
    [
      "a symlink to a symlink",
      async (other, one) => {
        await symlink(other, one.at("second"));
        await symlink("second", one.at("first"));
        return "first/secret.txt";
      },
    ],
    [
      "a folder beside it whose name begins as its own",
      async (_other, one) => {
        await mkdir(`${one.folder}-2`);
        await writeFile(`${one.folder}-2/secret.txt`, "secret");
        onTestFinished(() => void execFileSync("rm", ["-r", `${one.folder}-2`]));
        return `${one.folder}-2/secret.txt`;
      },
    ],
  ];

  test.each(ways)("by %s: not read, written, edited or listed", async (_what, way) => {
    const [one, other] = [await desk(), await outside()];
    const path = await way(other, one);
    const refused = /^failed: \{"error":"outside_workspace"/;
    expect(await asked(one, "read_file", { path })).toMatch(refused);
    expect(await asked(one, "write_file", { path, content: "x" })).toMatch(refused);
    await asked(one, "write_file", { path: `${path}.new`, content: "x" });
    expect(await asked(one, "edit_file", { path, old_text: "s", new_text: "x" })).toMatch(refused);
    expect(await asked(one, "list_files", { path: path.replace(/\/?secret.txt$/, "") || path })).toMatch(/^failed: /);
    expect(await readFile(join(other, "secret.txt"), "utf8")).toBe("secret");
    expect(await readdir(other)).toEqual(["secret.txt"]);
  });

  test("a symlink that stays inside is followed; one that leads nowhere is replaced by what is written", async () => {
    const [one, other] = [await desk(), await outside()];
    await one.put("a.txt", "one\n");
    await symlink("a.txt", one.at("b.txt"));
    await symlink(join(other, "not-there.txt"), one.at("nowhere.txt"));
    expect(await asked(one, "read_file", { path: "b.txt" })).toBe("one\n");
    await one.put("a.txt", "two\n");
    await one.announced("a.txt modified");
    expect(await asked(one, "write_file", { path: "b.txt", content: "three\n" })).toBe("wrote 6 bytes to a.txt");
    expect(await asked(one, "read_file", { path: "nowhere.txt" })).toMatch(/^failed: /);
    await asked(one, "write_file", { path: "nowhere.txt", content: "here\n" });
    expect(await readdir(other)).toEqual(["secret.txt"]);
    expect(await readFile(one.at("nowhere.txt"), "utf8")).toBe("here\n");
  });

  test.each<[string, string, (one: Desk) => Promise<unknown>, string]>([
    ["what is not there", "none.txt", async () => undefined, "not_found"],
    ["a folder", "src", (one) => mkdir(one.at("src")), "not_a_file"],
    ["the workspace itself", ".", async () => undefined, "not_a_file"],
    [
      "a pipe that nobody writes to",
      "pipe",
      async (one) => execFileSync("sh", ["-c", 'mkfifo "$0"', one.at("pipe")]),
      "not_a_file",
    ],
    ["a symlink in a circle", "loop", (one) => symlink("loop", one.at("loop")), "not_a_file"],
    ["a file in a file", "a.txt/b", (one) => one.put("a.txt", ""), "not_a_folder"],
    ["what is outside and cannot be", "/etc/passwd/x", async () => undefined, "outside_workspace"],
    ["a name that is too long", "n".repeat(300), async () => undefined, "bad_path"],
    ["a path that is too long", "n/".repeat(600), async () => undefined, "bad_path"],
    ["a path with a NUL", "a\0b", async () => undefined, "bad_path"],
    ["a path with a line break", "a\nb", async () => undefined, "bad_path"],
  ])("%s: a typed answer", async (_what, path, make, error) => {
    const one = await desk();
    await make(one);
    expect(await asked(one, "read_file", { path })).toMatch(new RegExp(`^failed: \\{"error":"${error}"`));
    if (error !== "not_found")
      expect(await asked(one, "write_file", { path, content: "x" })).toMatch(/^failed: \{"error":"/);
  });

  test("a file that the host may not read", async () => {
    const one = await desk();
    await one.put("a.txt", "one\n");
    await one.read("a.txt");
    await one.put("mine.txt", "mine\n");
    await chmod(one.folder, 0o755);
    await chmod(one.at("mine.txt"), 0o000);
    // The superuser may read everything.
    const root = process.getuid?.() === 0;
    if (root) process.seteuid?.(65_534);
    try {
      expect(await asked(one, "read_file", { path: "mine.txt" })).toMatch(/^failed: \{"error":"not_allowed"/);
      expect(await asked(one, "edit_file", { path: "mine.txt", old_text: "m", new_text: "n" })).toContain(
        '"not_allowed"',
      );
    } finally {
      if (root) process.seteuid?.(0);
    }
    // One that the agent knows and that is not to be read any more is not another one by that.
    await chmod(one.at("a.txt"), 0o200);
    await one.read("mine.txt");
    await one.put("mine.txt", "yours\n");
    await one.announced("mine.txt modified");
  });
});

test("a folder that is none is refused at the start", async () => {
  const folder = join(await temporaryFolder(), "none");
  const open = Tidings.open({ data: await temporaryFolder(), agent: { provider: "rehearsal", workspace: { folder } } });
  await expect(open).rejects.toThrow(/agent\.workspace\.folder: .*is no folder/);
});
