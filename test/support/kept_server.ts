/** A server for all tests of a file: started before the first, and looked after when the last is over. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { run } from "../system/cli.js";
import { Server } from "./server.js";

/** On a folder of its own; `endKeptServer` ends it. */
export async function startKeptServer(args: readonly string[]): Promise<Server> {
  const data = await mkdtemp(join(tmpdir(), "tidings-kept-"));
  return Server.start({ data, keep: true, args });
}

/** It ends in order, has complained of nothing, and its journal is whole. */
export async function endKeptServer(server: Server): Promise<void> {
  expect(await server.stop()).toBe(0);
  expect(server.stderr).toBe("");
  expect(await run(["audit", "--data", server.data, "--json"])).toMatchObject({ code: 0, stderr: "" });
  await rm(server.data, { recursive: true, force: true });
}
