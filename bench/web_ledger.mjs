/** A long ledger in a real browser: to its end by the keyboard, through it by its scroll bar, and while more arrives. */
import { launchChromium } from "../scripts/chromium.mjs";
import { framesWhile, moveFor } from "./web_frames.mjs";
import { emit, openView, send, serve } from "./web_server.mjs";

const BATCH = 1_000;
const LIMIT_MS = 300_000;
const GRID = '[role="grid"]';

export async function largeLedger(workspace, { rows, seconds, rate }, say) {
  const server = await serve(workspace.newFolder("ledger"));
  // One with scroll bars: they are dragged.
  const browser = await launchChromium({ ignoreDefaultArgs: ["--hide-scrollbars"] });
  try {
    for (let sent = 0; sent < rows; sent += BATCH) await emit(server, Math.min(BATCH, rows - sent));
    const page = await browser.newPage({ viewport: { width: 1_280, height: 800 } });
    page.setDefaultTimeout(LIMIT_MS);
    await openView(page, server, "ledger");
    await page.locator(GRID).waitFor();
    const before = await memory(page);

    const begun = performance.now();
    moveFor(page, LIMIT_MS).catch(() => {});
    const reading = await framesWhile(browser, async () => {
      await page.keyboard.press("End");
      await page.getByText(`${rows.toLocaleString("en")} notifications`, { exact: true }).waitFor();
      await page.locator(`${GRID} [aria-rowindex="${rows}"]`).waitFor();
    });
    const endMs = performance.now() - begun;
    const after = await memory(page);
    say(
      `ledger of ${rows}: its end after ${(endMs / 1_000).toFixed(1)} s, ${reading.perSecond.toFixed(1)} frames a second`,
    );

    await page.keyboard.press("Home");
    await page.locator(`${GRID} [aria-rowindex="1"]`).waitFor();
    const counting = page.evaluate(mostRows, { grid: GRID, ms: 2_000 * seconds });
    const dragged = await framesWhile(browser, () => drag(page, seconds));
    const reached = await page.evaluate((grid) => {
      const { scrollTop, clientHeight, scrollHeight } = document.querySelector(grid);
      return (scrollTop + clientHeight) / scrollHeight;
    }, GRID);
    if (reached < 0.99) throw new Error(`the scroll bar was dragged to ${(100 * reached).toFixed(0)}% only`);
    const most = await counting;
    say(
      `ledger of ${rows}: ${dragged.perSecond.toFixed(1)} frames a second while it is dragged through, at most ${most} rows on the page`,
    );

    await page.keyboard.press("Home");
    await page.mouse.move(20, 500);
    const over = { is: false };
    let sending;
    const arriving = await framesWhile(browser, async () => {
      sending = send(server, { rate, over });
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
      over.is = true;
    });
    await sending;
    say(`ledger of ${rows}: ${arriving.perSecond.toFixed(1)} frames a second while more arrive`);
    return { rows, endMs, reading, dragged, arriving, most, bytes: after, bytesAtFirst: before };
  } finally {
    await browser.close();
    server.end();
  }
}

/** What the page's script holds, after what is of no use was thrown away. */
async function memory(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  await session.detach();
  return metrics.find(({ name }) => name === "JSHeapUsedSize").value;
}

/** In the page: the most rows that were there at once. */
function mostRows({ grid, ms }) {
  const end = performance.now() + ms;
  let most = 0;
  return new Promise((resolve) => {
    const step = (now) => {
      most = Math.max(most, document.querySelectorAll(`${grid} [aria-rowindex]`).length);
      if (now < end) requestAnimationFrame(step);
      else resolve(most);
    };
    requestAnimationFrame(step);
  });
}

/** From the right and from above: in the middle of the bar, below its button. */
const BAR = 7;
const THUMB = 22;

/** The scroll bar, by the mouse, from the upper end to the lower. */
async function drag(page, seconds) {
  const box = await page.locator(GRID).boundingBox();
  const [x, y] = [box.x + box.width - BAR, box.y + THUMB];
  await page.mouse.move(x, y);
  await page.mouse.down();
  const begun = performance.now();
  for (let part = 0; part < 1; ) {
    part = Math.min(1, (performance.now() - begun) / (seconds * 1_000));
    await page.mouse.move(x, y + box.height * 1.05 * part);
  }
  await page.mouse.up();
}
