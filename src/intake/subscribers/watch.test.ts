import { mkdir, open, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventually, temporaryFolder } from "../../../test/support/folder.js";
import { watchFolder } from "./watch.js";

/** A watched folder: how often it was said to have changed, and the names that were seen then. */
async function watched(folder: string) {
  let calls = 0;
  const watch = await watchFolder(folder, async () => {
    calls += 1;
  });
  onTestFinished(() => watch.close());
  /** Does something, and waits until it was noticed. */
  const notices = async (action: () => Promise<unknown>) => {
    const before = calls;
    await action();
    await eventually(
      async () => calls,
      (now) => now > before,
    );
  };
  return { watch, notices, calls: () => calls };
}

/** Whether the kernel watches the folder for this process. */
async function isWatched(folder: string): Promise<boolean> {
  const inode = `ino:${(await stat(folder)).ino.toString(16)} `;
  const files = await readdir("/proc/self/fdinfo");
  const infos = await Promise.all(files.map((name) => readFile(`/proc/self/fdinfo/${name}`, "utf8").catch(() => "")));
  return infos.some((info) => info.includes("inotify wd:") && info.includes(inode));
}

const resources = () => process.getActiveResourcesInfo().filter((name) => name === "FSEventWrap" || name === "Timeout");

describe("a watched folder", () => {
  it("is said to have changed when a file is made, edited, replaced by a rename, or removed", async () => {
    const folder = await temporaryFolder();
    const { notices } = await watched(folder);
    const file = join(folder, "a.toml");
    await notices(() => writeFile(file, "one"));
    // The same length, the same name.
    await notices(() => writeFile(file, "two"));
    await notices(async () => {
      await writeFile(join(folder, ".a.toml.new"), "six");
      await rename(join(folder, ".a.toml.new"), file);
    });
    await notices(() => rm(file));
  });

  it("also in its subfolders, old and new ones", async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, "templates"));
    const { notices } = await watched(folder);
    await notices(() => writeFile(join(folder, "templates/a.j2"), "one"));
    await notices(() => mkdir(join(folder, "more/deep"), { recursive: true }));
    await notices(() => writeFile(join(folder, "more/deep/a.j2"), "one"));
    await notices(() => rm(join(folder, "more"), { recursive: true }));
  });

  it("may be missing, appear, go, and come back", async () => {
    const folder = join(await temporaryFolder(), "deep/subscribers");
    const { notices } = await watched(folder);
    await notices(() => mkdir(folder, { recursive: true }));
    await notices(() => writeFile(join(folder, "a.toml"), "one"));
    await notices(() => rm(folder, { recursive: true }));
    await notices(() => mkdir(folder));
    await notices(() => writeFile(join(folder, "a.toml"), "one"));
  });

  it("may be replaced by another of its name, and swapped through a link", async () => {
    const parent = await temporaryFolder();
    const folder = join(parent, "subscribers");
    for (const name of ["subscribers", "other", "third"]) await mkdir(join(parent, name));
    const { notices } = await watched(folder);
    await notices(async () => {
      await rename(folder, join(parent, "old"));
      await rename(join(parent, "other"), folder);
    });
    await notices(() => writeFile(join(folder, "a.toml"), "one"));
    await notices(() => symlink(join(parent, "third"), join(folder, "..data")));
  });

  it("is waited for while a file is written in pieces", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "a.toml");
    const sizes: number[] = [];
    const watch = await watchFolder(folder, async () => {
      const handle = await open(file);
      sizes.push((await handle.stat()).size);
      await handle.close();
    });
    onTestFinished(() => watch.close());
    const handle = await open(file, "w");
    const pieces = 10_000;
    for (let piece = 0; piece < pieces; piece += 1) await handle.write("x");
    await handle.close();
    await eventually(
      async () => sizes.at(-1),
      (size) => size === pieces,
    );
    // It was not read over and over meanwhile.
    expect(sizes.length).toBeLessThan(20);
  });

  it("is never told of twice at a time, and of what changes meanwhile again", async () => {
    const folder = await temporaryFolder();
    let running = 0;
    let most = 0;
    let calls = 0;
    const watch = await watchFolder(folder, async () => {
      running += 1;
      most = Math.max(most, running);
      calls += 1;
      if (calls === 1) await writeFile(join(folder, "meanwhile.toml"), "x");
      await new Promise((resolve) => setTimeout(resolve, 50));
      running -= 1;
    });
    onTestFinished(() => watch.close());
    await writeFile(join(folder, "a.toml"), "x");
    await eventually(
      async () => calls,
      (now) => now >= 2,
    );
    expect(most).toBe(1);
  });

  it.runIf(process.platform === "linux")(
    "is watched by the kernel, with its subfolders, until it is closed",
    async () => {
      const folder = await temporaryFolder();
      const inner = join(folder, "templates");
      await mkdir(inner);
      const { watch } = await watched(folder);
      expect(await Promise.all([isWatched(folder), isWatched(inner)])).toEqual([true, true]);
      await watch.close();
      expect(await Promise.all([isWatched(folder), isWatched(inner)])).toEqual([false, false]);
    },
  );

  it("leaves no timer and no watcher behind when it is closed, nor calls anybody", async () => {
    const before = resources().length;
    const folder = await temporaryFolder();
    await mkdir(join(folder, "templates"));
    const { watch, notices, calls } = await watched(folder);
    await notices(() => writeFile(join(folder, "a.toml"), "one"));
    await writeFile(join(folder, "b.toml"), "two");
    await watch.close();
    const said = calls();
    await writeFile(join(folder, "c.toml"), "three");
    await eventually(
      async () => resources().length,
      (now) => now <= before,
    );
    await watch.close();
    expect(calls()).toBe(said);
  });
});
