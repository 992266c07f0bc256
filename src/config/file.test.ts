import { execFile } from "node:child_process";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventually, temporaryFolder } from "../../test/support/folder.js";
import { type ConfigChange, ConfigFile } from "./file.js";

const run = promisify(execFile);
const MUTED = "[conversation.notifications]\nenable = false\n";

async function opened(content: string | null, watch = true) {
  const path = join(await temporaryFolder(), "tidings.toml");
  const write = async (text: string) => {
    // As editors do: whole, under another name, then renamed.
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  };
  if (content !== null) await write(content);
  const file = await ConfigFile.open({ path, watch });
  onTestFinished(() => file.close());
  const changes: ConfigChange[] = [];
  file.onChange((change) => changes.push(change));
  const told = (count: number) =>
    eventually(
      async () => changes.length,
      (now) => now >= count,
    );
  return { path, file, write, changes, told };
}

describe("the file with the switches", () => {
  it("says nothing where there is none, and is read when there is one", async () => {
    const { file, write, changes, told } = await opened(null);
    expect([file.current.notifications.enable, file.current.file, file.problem]).toEqual([true, null, null]);
    await write(MUTED);
    await told(1);
    expect(file.current.notifications.enable).toBe(false);
    expect(changes).toEqual([{ changed: ["conversation.notifications.enable"], problem: null }]);
  });

  it("takes effect without a restart, and names the keys whose values are others", async () => {
    const { file, write, changes, told, path } = await opened(`${MUTED}[conversation.tools.git]\nstateful = true\n`);
    expect(file.current.file).toBe(path);
    await write(
      '[conversation.notifications.kinds]\n"mcp.reconnected" = false\n"mcp.disconnected" = true\n[conversation.tools.git]\nstateful = true\n[conversation.tools.git.notifications]\nwaiting = false\n',
    );
    await told(1);
    // What is said and is as it would be anyway, has not changed.
    expect(changes[0]?.changed).toEqual([
      "conversation.notifications.enable",
      "conversation.notifications.kinds.mcp.reconnected",
      "conversation.tools.git.notifications.waiting",
    ]);
    expect(file.current.notifications.enable).toBe(true);
  });

  it("keeps the last good version through a broken edit, says so once, and goes on with the next good one", async () => {
    const { file, write, changes, told } = await opened(MUTED);
    await write("[conversation.notifications]\nenabled = true\n");
    await told(1);
    expect(file.current.notifications.enable).toBe(false);
    expect(file.problem?.message).toContain("did you mean enable?");
    // Broken in the same way: no news.
    await write("[conversation.notifications]\nenabled = true\n\n");
    await write("[conversation.notifications\n");
    await told(2);
    expect(changes.map(({ problem }) => problem?.problems[0]?.reason)).toEqual([
      expect.stringContaining("is not a known key"),
      expect.stringContaining("is not valid TOML"),
    ]);
    await write("");
    await told(3);
    expect([file.problem, file.current.notifications.enable]).toEqual([null, true]);
    expect(changes[2]).toEqual({ changed: ["conversation.notifications.enable"], problem: null });
  });

  it("is as if it said nothing after it was removed", async () => {
    const { file, path, told } = await opened(MUTED);
    await rm(path);
    await told(1);
    expect([file.current.notifications.enable, file.current.file]).toEqual([true, null]);
  });

  it("has nothing to keep if it is broken from the start", async () => {
    const { file, path } = await opened("nonsense", false);
    expect(file.current.file).toBeNull();
    expect(file.problem?.message).toContain(`${path}:1:`);
  });

  it("is read to the end of its writing", async () => {
    const { file, path, told, changes } = await opened(null);
    // In pieces, the first of which is whole and means something else.
    await writeFile(path, "[conversation.notifications]\n");
    await writeFile(path, "enable = false\n", { flag: "a" });
    await told(1);
    expect(file.current.notifications.enable).toBe(false);
    expect(changes).toHaveLength(1);
  });

  it("is left alone if nobody watches it, and after it is closed", async () => {
    const { file, write, changes } = await opened("", false);
    await write(MUTED);
    expect(file.current.notifications.enable).toBe(true);
    await file.look();
    expect([file.current.notifications.enable, changes.length]).toEqual([false, 1]);
    await file.close();
    await write("");
    await file.look();
    expect(changes).toHaveLength(1);
  });

  it.each([
    ["is no text", Buffer.from([0x61, 0xff]), /is not UTF-8 text/],
    ["is far too large", Buffer.alloc(1_048_577, "#"), /is larger than/],
  ])("is refused if it %s", async (_what, bytes, reason) => {
    const { file, path } = await opened(MUTED, false);
    await writeFile(path, bytes);
    await file.look();
    expect(file.problem?.message).toMatch(reason);
    expect(file.current.notifications.enable).toBe(false);
  });

  it("is refused if it is a folder", async () => {
    const { file, path } = await opened(MUTED, false);
    await rm(path);
    await mkdir(path);
    await file.look();
    expect(file.problem?.message).toBe(`${path}: is not a file`);
    expect(file.current.notifications.enable).toBe(false);
  });

  it.runIf(process.platform !== "win32")("is refused if it is a pipe, which nobody waits for", async () => {
    const path = join(await temporaryFolder(), "tidings.toml");
    await run("mkfifo", [path]);
    const file = await ConfigFile.open({ path, watch: false });
    onTestFinished(() => file.close());
    expect(file.problem?.message).toBe(`${path}: is not a file`);
  });

  it("is read through a link", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "real.toml"), MUTED);
    await symlink(join(folder, "real.toml"), join(folder, "tidings.toml"));
    const file = await ConfigFile.open({ path: join(folder, "tidings.toml"), watch: false });
    onTestFinished(() => file.close());
    expect(file.current.notifications.enable).toBe(false);
  });
});
