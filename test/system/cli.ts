/** Runs the built program as its users do: another process, its words, its exit code. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** The caller's own Tidings settings stay outside. */
function environment(extra: Record<string, string>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TIDINGS_"));
  return { ...Object.fromEntries(inherited), ...extra };
}

export function start(line: readonly string[], env: Record<string, string> = {}, program = PROGRAM): ChildProcess {
  return spawn(process.execPath, [program, ...line], { env: environment(env), stdio: "pipe" });
}

export function run(
  line: readonly string[],
  options: { input?: string | Uint8Array; env?: Record<string, string>; program?: string } = {},
): Promise<Ended> {
  const child = start(line, options.env, options.program);
  return new Promise((resolve, reject) => {
    let stdout = "";
    let stderr = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.input ?? "");
  });
}

/** The program on one data folder. */
export class Cli {
  readonly root = mkdtempSync(join(tmpdir(), "tidings-cli-"));
  readonly data = join(this.root, "data");

  path(name: string): string {
    return join(this.root, name);
  }

  run(line: string, ...more: string[]): Promise<Ended> {
    return run([...words(line), ...more, "--data", this.data]);
  }

  feed(input: string | Uint8Array, line: string): Promise<Ended> {
    return run([...words(line), "--data", this.data], { input });
  }

  /** One JSON answer; fails if the exit code is another than the expected one. */
  async json<Answer = Record<string, unknown>>(line: string, ...more: string[]): Promise<Answer> {
    const { code, stdout, stderr } = await this.run(line, ...more, "--json");
    if (code !== 0) throw new Error(`tidings ${line} ended with ${code}: ${stdout}${stderr}`);
    return JSON.parse(stdout) as Answer;
  }

  async ledger(line = ""): Promise<Row[]> {
    const { code, stdout, stderr } = await this.run(`ledger --json ${line}`);
    if (code !== 0) throw new Error(`tidings ledger ended with ${code}: ${stdout}${stderr}`);
    return ndjson(stdout) as Row[];
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** What the tests look at in a notification. */
export interface Row {
  id: string;
  state: string;
  channel: string;
  content: string;
  count: number;
  revision: number;
  reason: string | null;
  action: string | null;
  read_at: string | null;
  user_id: string;
  redrive_of: string | null;
}

export interface Page {
  notifications: Row[];
  next: string | null;
}

function words(line: string): string[] {
  return line.split(" ").filter((word) => word !== "");
}

export function ndjson(text: string): unknown[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

/** Asks again until the answer is there; generous, since a loaded machine is slow and never wrong. */
export async function eventually<Value>(ask: () => Promise<Value | undefined>, limitMs = 60_000): Promise<Value> {
  const end = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > end) throw new Error(`nothing came within ${limitMs} ms`);
  }
}
