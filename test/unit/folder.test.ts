/** One data folder, several openers: who may write, and what is seen meanwhile. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { StoreError, Tidings } from "../../src/index.js";
import { openTidings, temporaryFolder } from "../support/folder.js";

const run = promisify(execFile);
const EVENT = { type: "cli.event", source: "x" } as const;
const DIST = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

/** Whether another process can become the writer. */
async function anotherProcessCanWrite(data: string): Promise<boolean> {
  const script = `import { Tidings } from ${JSON.stringify(DIST)};
    const tidings = await Tidings.open({ data: ${JSON.stringify(data)}, wait_ms: 0 }).catch((error) => error.code);
    console.log(typeof tidings === "string" ? tidings : "writer");
    if (typeof tidings !== "string") await tidings.close();`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script]);
  expect(["writer", "store_busy"]).toContain(stdout.trim());
  return stdout.trim() === "writer";
}

it("a second opening in the same process is refused, and does not let the folder go (I1)", async () => {
  const data = await temporaryFolder();
  const first = await openTidings({ data });
  await first.emit(EVENT);
  for (let attempt = 0; attempt < 3; attempt += 1)
    await expect(Tidings.open({ data, wait_ms: 0 })).rejects.toThrow(StoreError);
  const beside = await Tidings.open({ data, mode: "write_if_free" });
  expect(beside.writable).toBe(false);
  await beside.close();
  expect(await anotherProcessCanWrite(data)).toBe(false);
  await first.emit(EVENT);
  await first.close();
  expect(await anotherProcessCanWrite(data)).toBe(true);
});

it("audit sees one moment while everybody goes on writing", async () => {
  const data = await temporaryFolder();
  const writer = await openTidings({ data });
  const reader = await openTidings({ data, mode: "write_if_free" });
  let busy = true;
  let written = 0;
  const writing = (async () => {
    while (busy) {
      const answers = await Promise.all(Array.from({ length: 16 }, () => writer.emit(EVENT)));
      for (const { matches } of answers)
        await writer.ack({ id: matches[0]?.notification.id ?? "", revision: 1, action: "rendered" });
      written += answers.length;
    }
  })();
  for (let round = 0; round < 5; round += 1) {
    const before = written;
    expect((await writer.audit()).problems).toEqual([]);
    expect((await reader.audit()).problems).toEqual([]);
    while (written === before) await turn();
  }
  busy = false;
  await writing;
  expect((await writer.audit()).checked.events).toBe(written);
});

it("backup copies one moment while everybody goes on writing", async () => {
  const data = await temporaryFolder();
  const writer = await openTidings({ data });
  await Promise.all(Array.from({ length: 2_000 }, () => writer.emit(EVENT)));
  const reader = await openTidings({ data, mode: "read" });
  let busy = true;
  const writing = (async () => {
    while (busy) await writer.emit(EVENT);
  })();
  const folder = await temporaryFolder();
  for (const [name, source] of [
    ["one", writer],
    ["two", reader],
  ] as const)
    await source.backup(join(folder, name, "tidings.db"));
  busy = false;
  await writing;
  for (const name of ["one", "two"]) {
    const copy = await openTidings({ data: join(folder, name) });
    const report = await copy.audit();
    expect(report.problems).toEqual([]);
    expect(report.checked.events).toBeGreaterThanOrEqual(2_000);
  }
  await expect(writer.backup(join(folder, "one", "tidings.db"))).rejects.toThrow(/exists/);
});
