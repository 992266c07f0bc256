/** A process that has written so much that a thread checkpoints beside it: it ends as any other does, with all that it answered. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { Cli } from "./cli.js";

const run = promisify(execFile);
const LIBRARY = new URL("../../dist/index.js", import.meta.url).href;
const EVENTS = 9_000;

/** As a program that uses the library: it emits, closes, and has nothing else to wait for. */
const PROGRAM = `
  const { Tidings } = await import(${JSON.stringify(LIBRARY)});
  const tidings = await Tidings.open({ data: process.argv[1] });
  const event = (n) => ({ type: "cli.event", source: "busy", payload: { n } });
  const outcomes = await tidings.emitMany(Array.from({ length: ${EVENTS} }, (_, n) => event(n)));
  await tidings.close();
  console.log(outcomes.filter((one) => !("error" in one)).length);
`;

test("a busy program closes, and all of it is there (I6)", async () => {
  const cli = new Cli();
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", PROGRAM, cli.data]);
  expect(stdout).toBe(`${EVENTS}\n`);
  expect(existsSync(join(cli.data, "tidings.db-wal"))).toBe(false);
  expect(await cli.json("audit")).toMatchObject({ ok: true, problems: [] });
  cli.remove();
});
