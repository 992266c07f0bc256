/** The examples are run as they stand. */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const FOLDER = fileURLToPath(new URL("../../examples/", import.meta.url));
const run = promisify(execFile);

const PRINTS: Record<string, string[]> = {
  "background-build.mjs": [
    "the agent has answered: completed",
    "tool_failed: build (handle b1) has failed",
    "exit_code: 1",
    "error: 2 errors",
    '{"exit_code":1,"handle":"b1","tool":"build","state":"stopped","error":{"message":"2 errors","transient":false},"output":"compiling broken\\n"}',
  ],
  "own-tools.mjs": [
    "It is sunny in Bergen.",
    '{"handle":"d1","tool":"deploy","state":"running"}',
    '{"status":"pending","completed":[],"pending":[{"handle":"d1","tool":"deploy","state":"waiting","question":"Deploy 1.2 to production?"}]}',
    '{"handle":"d1","tool":"deploy","state":"running","applied":"answered"}',
    '{"status":"completed","completed":[{"handle":"d1","tool":"deploy","state":"stopped","result":"1.2 is live"}],"pending":[]}',
  ],
};

test("each is here", () => {
  expect(readdirSync(FOLDER).sort()).toEqual(Object.keys(PRINTS));
});

test.each(Object.entries(PRINTS))("%s", async (name, lines) => {
  const { stdout } = await run(process.execPath, [name], { cwd: FOLDER });
  expect(stdout.trimEnd().split("\n")).toEqual(lines);
});
