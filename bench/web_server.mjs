/** A server for the web app's benchmarks, and what arrives there. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));

/** `{ url, token, end }`. */
export async function serve(data) {
  const server = spawn(process.execPath, [CLI, "serve", "--port", "0", "--data", data, "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { url, token } = await new Promise((resolve, reject) => {
    server.once("exit", () => reject(new Error("the server did not start")));
    createInterface({ input: server.stdout }).once("line", (line) => resolve(JSON.parse(line).ready));
  });
  return { url, token, end: () => server.kill() };
}

let number = 0;

/** So many events at once, each of which becomes a notification. */
export async function emit({ url, token }, count) {
  const events = Array.from({ length: count }, () => {
    number += 1;
    return {
      type: "cli.build.finished",
      source: "bench",
      dedupe_key: `bench-${number}`,
      payload: { message: `Build ${number} is done` },
    };
  });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const { status } = await fetch(`${url}/v1/events`, { method: "POST", headers, body: JSON.stringify(events) });
  if (status !== 202) throw new Error(`the events were answered with ${status}`);
}

/** By the clock, so many a second, until it is over; answers how many. */
export async function send(server, { rate, over }) {
  const begun = performance.now();
  let sent = 0;
  while (rate > 0 && !over.is) {
    const due = Math.floor(((performance.now() - begun) / 1_000) * rate) - sent;
    if (due > 0) {
      await emit(server, due);
      sent += due;
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000 / rate));
  }
  return sent;
}

export async function openView(page, { url, token }, view) {
  await page.addInitScript(() => localStorage.setItem("tidings.visited", "yes"));
  await page.goto(`${url}/#token=${token}`);
  await page.locator('[aria-label="Places"] a').first().waitFor({ state: "attached" });
  await page.goto(`${url}/#/${view}`);
  await page.waitForLoadState("networkidle");
}
