/** Frames that the browser drew, by its own trace. */
const CATEGORY = "disabled-by-default-devtools.timeline.frame";

export async function framesWhile(browser, run) {
  const session = await browser.newBrowserCDPSession();
  const drawn = [];
  session.on("Tracing.dataCollected", ({ value }) => {
    for (const { name, ts } of value) if (name === "DrawFrame") drawn.push(ts);
  });
  await session.send("Tracing.start", { traceConfig: { includedCategories: [CATEGORY] } });
  await run();
  const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await complete;
  await session.detach();
  drawn.sort((one, other) => one - other);
  const gaps = drawn.slice(1).map((at, index) => (at - drawn[index]) / 1_000);
  return {
    perSecond: (drawn.length - 1) / ((drawn.at(-1) - drawn[0]) / 1e6),
    worstMs: Math.max(...gaps),
  };
}

/** Something small moves in the page all the time, so that a frame is due at each tick. */
export function moveFor(page, ms) {
  return page.evaluate(move, ms);
}

function move(ms) {
  const dot = document.body.appendChild(document.createElement("div"));
  Object.assign(dot.style, { position: "fixed", bottom: "0", width: "4px", height: "4px", background: "currentColor" });
  const end = performance.now() + ms;
  return new Promise((resolve) => {
    const step = (now) => {
      dot.style.transform = `translateX(${Math.round(now / 10) % 200}px)`;
      if (now < end) requestAnimationFrame(step);
      else resolve();
    };
    requestAnimationFrame(step);
  });
}
