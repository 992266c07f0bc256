// A browser for scripts: the system's, or the one that comes by npm.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import packed from "@sparticuz/chromium";
import { chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/** A machine without graphics, and perhaps without a user for a sandbox. */
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];

/** `options`: further ones of Playwright. */
export async function launchChromium(options = {}) {
  const found = (process.env["PATH"] ?? "")
    .split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
  return chromium.launch({ executablePath: found ?? (await packed.executablePath()), args: ARGUMENTS, ...options });
}
