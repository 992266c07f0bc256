/** Tidings' own files in a workspace: its data, its configuration and its subscribers are not the agent's. */
import { access, link, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, type OpenOptions, Tidings } from "../../../src/index.js";
import { call } from "../../support/background.js";
import { temporaryFolder } from "../../support/folder.js";
import { changes, type Desk, desk } from "../../support/workspace.js";

const REFUSED = /^failed: \{"error":"not_allowed","message":".*Tidings' own/;

async function asked({ talk }: Desk, name: string, input: Record<string, unknown>): Promise<string> {
  await talk.say(call(name, input));
  const last = (await talk.calls()).at(-1);
  return `${last?.status === "failed" ? "failed: " : ""}${last?.content.output}`;
}

/** A workspace that the data folder is in, with a secret. */
async function around(options: OpenOptions = {}): Promise<Desk> {
  const folder = await temporaryFolder();
  const data = join(folder, ".tidings");
  await mkdir(data);
  await writeFile(join(data, "server.json"), "secret");
  return desk({}, { folder, data, ...options });
}

async function isRefused(one: Desk, path: string): Promise<void> {
  expect.soft(await asked(one, "read_file", { path }), path).toMatch(REFUSED);
  expect.soft(await asked(one, "write_file", { path, content: "x" }), path).toMatch(REFUSED);
  expect.soft(await asked(one, "edit_file", { path, old_text: "secret", new_text: "x" }), path).toMatch(REFUSED);
}

describe("the data folder in the workspace", () => {
  test.each<[string, string, (one: Desk) => Promise<unknown>]>([
    ["by its name", ".tidings/server.json", async () => undefined],
    ["by a way about", "src/../.tidings/./server.json", async () => undefined],
    ["by a symlink to it", "link/server.json", (one) => symlink(".tidings", one.at("link"))],
    ["by a symlink to a file in it", "link", (one) => symlink(".tidings/server.json", one.at("link"))],
  ])("%s: neither read, written nor edited", async (_how, path, make) => {
    const one = await around();
    await make(one);
    await isRefused(one, path);
    await isRefused(one, join(one.folder, path));
    expect(await readFile(one.at(".tidings/server.json"), "utf8")).toBe("secret");
  });

  test("what is not there yet is not made in it, and it is not listed", async () => {
    const one = await around();
    await one.put("a.txt", "one\n");
    const before = await readdir(one.at(".tidings"));
    for (const path of [".tidings/tidings.toml", ".tidings/subscribers/mine.toml", ".tidings/new/a", ".tidings"])
      expect.soft(await asked(one, "write_file", { path, content: "x" }), path).toMatch(REFUSED);
    expect(await readdir(one.at(".tidings"))).toEqual(before);
    expect(await asked(one, "list_files", { depth: 5 })).toBe("a.txt 4");
    expect(await asked(one, "list_files", { path: ".tidings" })).toMatch(REFUSED);
  });

  test("a tool's word about it has no effect: nothing of it is watched", async () => {
    const know = defineTool({
      name: "know",
      description: "Has to do with files.",
      input: z.object({}),
      async run(_input, { files }) {
        await files.read(".tidings/server.json");
        await files.wrote(".tidings/server.json", "secret");
        await files.read("a.txt");
        return "done";
      },
    });
    const folder = await temporaryFolder();
    const one = await desk({ tools: [know] }, { folder, data: join(folder, ".tidings") });
    for (const path of [".tidings/server.json", "a.txt"]) await one.put(path, "one\n");
    await one.talk.say(call("know", {}));
    await one.put(".tidings/server.json", "two\n");
    await one.put("a.txt", "two\n");
    await one.announced("a.txt modified");
    await one.talk.say("hello");
    expect(await changes(one.talk.tidings)).toEqual(["a.txt modified"]);
  });
});

describe("a configuration and subscribers that are elsewhere in the workspace", () => {
  test("are not the agent's; what is beside them is", async () => {
    const folder = await temporaryFolder();
    const [config_file, subscribers_folder] = [join(folder, "conf/tidings.toml"), join(folder, "rules")];
    const one = await desk({}, { folder, config_file, subscribers_folder });
    await mkdir(one.at("conf"));
    await mkdir(one.at("rules"));
    await one.put("conf/other.toml", "secret");
    await isRefused(one, "rules/mine.toml");
    // Not there yet, also by a name that is the same one on some file systems.
    await isRefused(one, "conf/tidings.toml");
    await isRefused(one, "conf/Tidings.TOML");
    await one.put("conf/tidings.toml", "");
    await isRefused(one, "conf/tidings.toml");
    await link(one.at("conf/tidings.toml"), one.at("conf/second.toml"));
    await isRefused(one, "conf/second.toml");
    expect(await asked(one, "list_files", { depth: 3 })).toBe("conf/\nconf/other.toml 6");
    expect(await asked(one, "edit_file", { path: "conf/other.toml", old_text: "secret", new_text: "x" })).toMatch(
      /^wrote 1 bytes/,
    );
  });

  test("nor is what the configuration's symlink leads to, there or not", async () => {
    const folder = await temporaryFolder();
    await symlink("second.toml", join(folder, "first.toml"));
    await symlink("third.toml", join(folder, "second.toml"));
    const one = await desk({}, { folder, config_file: join(folder, "first.toml") });
    for (const path of ["first.toml", "second.toml", "third.toml"]) await isRefused(one, path);
    await one.put("third.toml", "");
    for (const path of ["first.toml", "second.toml", "third.toml"]) await isRefused(one, path);
    expect(await asked(one, "list_files", {})).toBe("(the folder is empty)");
  });
});

test.each<[string, (data: string) => Promise<string>]>([
  ["the data folder itself", async (data) => data],
  [
    "a folder in it",
    async (data) => {
      await mkdir(join(data, "work"));
      return join(data, "work");
    },
  ],
  [
    "a symlink to it",
    async (data) => {
      const way = join(await temporaryFolder(), "link");
      await symlink(data, way);
      return way;
    },
  ],
])("a workspace that is %s is refused at the start", async (_what, make) => {
  const data = await temporaryFolder();
  const folder = await make(data);
  const open = Tidings.open({ data, agent: { provider: "rehearsal", workspace: { folder } } });
  await expect(open).rejects.toThrow(/^agent\.workspace\.folder: .*Tidings' own.*choose another/);
  await access(folder);
});
