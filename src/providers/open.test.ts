/** Opening a model: names, keys, addresses, and packages that are not there. */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import { expect, onTestFinished, test, vi } from "vitest";
import { temporaryFolder } from "../../test/support/folder.js";
import { modelServer } from "../../test/support/recorder.js";
import { capabilitiesOf } from "./capabilities.js";
import { type Environment, type ModelOptions, openModel } from "./open.js";

async function asked(options: ModelOptions, environment: Environment): Promise<void> {
  const model = await openModel(options, environment);
  const request = {
    system: "",
    tools: [],
    messages: [{ role: "user" as const, text: "Hello" }],
    signal: new AbortController().signal,
  };
  for await (const _ of model.stream(request));
}

test("an unknown provider is told with what was meant", async () => {
  await expect(openModel({ provider: "antropic", model: "x" }, {})).rejects.toThrow(
    'there is no provider "antropic"; did you mean anthropic?; one of openai, anthropic, openai-compatible, rehearsal',
  );
});

test("without a key the message names the variable", async () => {
  await expect(openModel({ provider: "openai", model: "x" }, { OPENAI_API_KEY: " " })).rejects.toMatchObject({
    kind: "auth",
    message: expect.stringContaining("set the environment variable OPENAI_API_KEY, or name another with api_key_env"),
  });
  await expect(
    openModel({ provider: "anthropic", model: "x", api_key_env: "MINE" }, { ANTHROPIC_API_KEY: "a" }),
  ).rejects.toMatchObject({
    kind: "auth",
    message: expect.stringContaining("set the environment variable MINE, which api_key_env names"),
  });
});

test("openai-compatible without an address says what to set", async () => {
  await expect(openModel({ provider: "openai-compatible", model: "x" }, {})).rejects.toMatchObject({
    kind: "bad_request",
    message: expect.stringContaining("set base_url"),
  });
});

test("the SDKs' own variables: address and key", async () => {
  const server = await modelServer();
  await asked({ provider: "openai", model: "gpt-5.1" }, { OPENAI_API_KEY: "o", OPENAI_BASE_URL: `${server.url}/v1` });
  await asked(
    { provider: "openai-compatible", model: "m" },
    { OPENAI_API_KEY: "o", OPENAI_BASE_URL: `${server.url}/v1` },
  );
  await asked(
    { provider: "anthropic", model: "claude-opus-5" },
    { ANTHROPIC_API_KEY: "a", ANTHROPIC_BASE_URL: server.url },
  );
  expect(
    server.recorder.requests.map(({ path, headers }) => [path, headers["authorization"] ?? headers["x-api-key"]]),
  ).toEqual([
    ["/v1/responses", "Bearer o"],
    ["/v1/chat/completions", "Bearer o"],
    ["/v1/messages", expect.stringMatching(/^(Bearer )?a$/)],
  ]);
});

test("OpenAI's key and names do not go to another address, unless the key is named for it", async () => {
  // The SDK reads these by itself.
  for (const name of ["OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"])
    vi.stubEnv(name, "secret");
  onTestFinished(() => void vi.unstubAllEnvs());
  const server = await modelServer();
  const base_url = `${server.url}/v1`;
  await asked({ provider: "openai-compatible", model: "m", base_url }, process.env);
  await asked({ provider: "openai-compatible", model: "m", base_url, api_key_env: "OPENAI_API_KEY" }, process.env);
  const [first, second] = server.recorder.requests;
  expect(JSON.stringify(first)).not.toContain("secret");
  expect(second?.headers["authorization"]).toBe("Bearer secret");
});

test.each([
  ["responses", "gpt-5.1", "developer"],
  ["responses", "gpt-4o", "developer"],
  ["responses", "o1-mini", "text"],
  ["chat", "gpt-4o-mini", "developer"],
  ["chat", "openai/gpt-5.1", "developer"],
  ["chat", "o3-mini", "developer"],
  ["chat", "o1-mini", "text"],
  ["chat", "gpt-oss:20b", "text"],
  ["chat", "qwen3.5:32b", "text"],
  ["chat", "gemini-3-pro", "text"],
  ["messages", "claude-opus-4-8", "system"],
  ["messages", "claude-opus-4-8-20260528", "system"],
  ["messages", "claude-opus-4-7", "text"],
  ["messages", "claude-opus-4-20250514", "text"],
  ["messages", "claude-opus-5-5", "system"],
  ["messages", "claude-sonnet-5", "system"],
  ["messages", "claude-haiku-5-5", "system"],
  ["messages", "claude-fable-5-2", "system"],
  ["messages", "claude-haiku-4-5", "text"],
  ["messages", "claude-3-5-sonnet-latest", "text"],
  ["messages", "us.anthropic.claude-opus-4-8", "text"],
] as const)("%s: %s takes a block as %s", (api, model, form) => {
  expect(capabilitiesOf(api, model).block).toBe(form);
});

test("a provider whose package is not installed says which, and how", async () => {
  // The same code, as it is shipped, in a folder from which only its own dependency can be found.
  const folder = await temporaryFolder();
  const [own, found] = ["node_modules/@toon-format", join(folder, "node_modules/@toon-format")];
  await mkdir(dirname(found));
  await symlink(resolve(import.meta.dirname, "../..", own), found);
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  const source = resolve(import.meta.dirname, "..");
  for (const layer of ["providers", "platform", "domain"]) {
    for (const name of await readdir(join(source, layer), { recursive: true })) {
      if (!name.endsWith(".ts") || name.endsWith(".test.ts")) continue;
      const target = join(folder, layer, name.replace(/\.ts$/, ".js"));
      await mkdir(dirname(target), { recursive: true });
      const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true };
      const code = ts.transpileModule(await readFile(join(source, layer, name), "utf8"), { compilerOptions: options });
      await writeFile(target, code.outputText);
    }
  }
  const open = pathToFileURL(join(folder, "providers/open.js")).href;
  const script = `
    const { openModel } = await import(${JSON.stringify(open)});
    for (const provider of ["openai", "anthropic", "openai-compatible"])
      await openModel({ provider, model: "m", base_url: "http://127.0.0.1:9", api_key_env: "A_KEY" }, { A_KEY: "k" })
        .catch((error) => console.log(error.kind + ": " + error.message));
    console.log((await openModel({ provider: "rehearsal", model: "m" })).provider);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    cwd: folder,
  });
  expect(stdout.trim().split("\n")).toEqual([
    "missing_sdk: the provider openai needs a package that is not installed: npm install openai@6 (or use the provider rehearsal, which needs nothing)",
    "missing_sdk: the provider anthropic needs a package that is not installed: npm install @anthropic-ai/sdk@1 (or use the provider rehearsal, which needs nothing)",
    "missing_sdk: the provider openai-compatible needs a package that is not installed: npm install openai@6 (or use the provider rehearsal, which needs nothing)",
    "rehearsal",
  ]);
});
