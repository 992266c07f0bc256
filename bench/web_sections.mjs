/** Section p: the web app in a real browser: its first load, its frames while much arrives, and a long ledger. */
import { launchChromium } from "../scripts/chromium.mjs";
import { framesWhile, moveFor } from "./web_frames.mjs";
import { largeLedger } from "./web_ledger.mjs";
import { openView, send, serve } from "./web_server.mjs";

const VIEWS = ["inbox", "ledger"];
/** What the browser does on this machine, while the same arrives at the server and nobody is told of it. */
const EMPTY = "empty page";

/** p: first loads, and frames a second of each view, still and while notifications arrive. */
export async function webApp(workspace, { runs, sizes }, say) {
  const { seconds, rate, rows } = sizes.web;
  const server = await serve(workspace.newFolder("web"));
  const browser = await launchChromium();
  try {
    const measured = { loads: [], empty: [], still: {}, arriving: {} };
    for (let run = 0; run < runs; run += 1) {
      const load = await firstLoad(browser, server);
      measured.loads.push(load);
      const empty = await frames(browser, server, { view: EMPTY, seconds, rate });
      measured.empty.push(empty);
      say(
        `run ${run + 1} of ${runs}: an empty page ${empty.perSecond.toFixed(1)} frames a second, the machine's own limit`,
      );
      for (const view of VIEWS) {
        const [still, arriving] = [
          await frames(browser, server, { view, seconds, rate: 0 }),
          await frames(browser, server, { view, seconds, rate }),
        ];
        push(measured.still, view, still);
        push(measured.arriving, view, arriving);
        say(
          `run ${run + 1} of ${runs}: ${view} ${still.perSecond.toFixed(1)} frames a second still, ` +
            `${arriving.perSecond.toFixed(1)} while ${arriving.sent} notifications arrive`,
        );
      }
      say(
        `run ${run + 1} of ${runs}: first load ${load.kilobytes.toFixed(0)} kB of script, usable after ${load.ms.toFixed(0)} ms`,
      );
    }
    const large = await largeLedger(workspace, { rows, seconds, rate }, say);
    return { ...measured, large };
  } finally {
    await browser.close();
    server.end();
  }
}

function push(into, key, value) {
  into[key] ??= [];
  into[key].push(value);
}

/** With nothing cached: compressed script, and the time until the places can be chosen from. */
async function firstLoad(browser, { url, token }) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.addInitScript(() => {
      const look = () => {
        if (document.querySelector('[aria-label="Places"] a') === null) return requestAnimationFrame(look);
        // After the frame in which they are shown.
        return requestAnimationFrame(() => setTimeout(() => (window.usableAt = performance.now()), 0));
      };
      look();
    });
    await page.goto(`${url}/#token=${token}`);
    await page.waitForFunction(() => window.usableAt !== undefined);
    await page.waitForLoadState("networkidle");
    return await page.evaluate(() => ({
      ms: window.usableAt,
      kilobytes:
        performance
          .getEntriesByType("resource")
          // What comes after the first view is fetched ahead, when there is nothing else to do.
          .filter(
            ({ name, startTime }) =>
              name.endsWith(".js") && startTime < performance.getEntriesByName("tidings:shown")[0].startTime,
          )
          .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0) / 1_000,
    }));
  } finally {
    await context.close();
  }
}

/** Frames that the browser drew, by its own trace, while something moves all the time and notifications arrive. */
async function frames(browser, server, { view, seconds, rate }) {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 } });
  try {
    const page = await context.newPage();
    if (view !== EMPTY) await openView(page, server, view);
    const over = { is: false };
    let sending;
    const drawn = await framesWhile(browser, async () => {
      sending = send(server, { rate, over });
      await moveFor(page, seconds * 1_000);
      over.is = true;
    });
    return { ...drawn, sent: await sending };
  } finally {
    await context.close();
  }
}
