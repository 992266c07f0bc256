/** Pages that come from elsewhere, in a real browser: those of an origin that is allowed may use the server, others may not. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { rolldown } from "rolldown";
import { expect, onTestFinished, test } from "vitest";
import { browser } from "../../support/browser.js";
import { Server } from "../../support/server.js";

const CLIENT = fileURLToPath(new URL("../../../dist/client/index.js", import.meta.url));

const SCRIPT = `
  import { TidingsClient } from "/client.js";
  window.talk = async (url, token, transport, content) => {
    const client = await TidingsClient.connect({ url, token, transport });
    const told = new Promise((resolve) =>
      client.listen(({ method, params }) => method === "notification/created" && resolve(params.notification.content)));
    await client.call("notification/notify", { content, target: "user" });
    return told.finally(() => client.close());
  };
  window.ask = async (url, options) => {
    const answer = await fetch(url, options);
    return { status: answer.status, id: answer.headers.get("x-request-id"), again: answer.headers.get("retry-after") };
  };
  window.ready = true;
`;

/** A site with the client for browsers on it; the answer is its origin. */
async function site(): Promise<string> {
  const built = await rolldown({ input: CLIENT, platform: "browser" });
  const { output } = await built.generate({ format: "esm" });
  const files: Readonly<Record<string, readonly [type: string, text: string]>> = {
    "/": ["text/html", "<!doctype html><title>Elsewhere</title><script type=module src=/page.js></script>"],
    "/page.js": ["text/javascript", SCRIPT],
    "/client.js": ["text/javascript", output[0].code],
  };
  const pages = createServer(({ url = "" }, response) => {
    const [type, text] = files[url] ?? ["text/plain", ""];
    response.writeHead(200, { "content-type": type }).end(text);
  });
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    pages.close();
    pages.closeAllConnections();
  });
  return `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
}

async function open(origin: string): Promise<Page> {
  const context = await (await browser()).newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(origin);
  await page.waitForFunction("window.ready");
  return page;
}

const evaluate = (page: Page, name: "talk" | "ask", ...values: readonly unknown[]) =>
  page.evaluate(`${name}(...${JSON.stringify(values)})`);

test("a page of an origin that is allowed has the client over every transport, calls, events and streams", async () => {
  const origin = await site();
  const server = await Server.start({ args: ["--allow-origin", origin] });
  const { url, token } = server;
  const page = await open(origin);
  for (const transport of ["ndjson", "websocket"])
    expect(await evaluate(page, "talk", url, token, transport, `over ${transport}`)).toMatch(/^over /);
  const authorization = `Bearer ${token}`;
  const event = JSON.stringify({ type: "cli.page.spoke", source: "page" });
  const json = { authorization, "content-type": "application/json" };
  const ask = (path: string, options: object) => evaluate(page, "ask", `${url}${path}`, options);
  expect(
    await ask("/v1/events", { method: "POST", headers: { ...json, "x-request-id": "mine" }, body: event }),
  ).toEqual({ status: 202, id: "mine", again: null });
  const attributes = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "/page", "ce-type": "cli.page.spoke" };
  expect(await ask("/v1/events", { method: "POST", headers: { ...json, ...attributes }, body: "{}" })).toMatchObject({
    status: 202,
  });
  const { journal_id } = await server.call<{ journal_id: string }>("initialize");
  const resumed = { authorization, "last-event-id": `${journal_id}:1` };
  expect(await ask("/sse", { headers: resumed })).toMatchObject({ status: 200 });
  // What is refused can be read as well.
  expect(await ask("/rpc", { method: "POST", headers: { ...json, authorization: "Bearer none" }, body: "{}" })).toEqual(
    {
      status: 401,
      id: expect.any(String),
      again: null,
    },
  );
});

test("a page of any other origin can do nothing, with a token and without", async () => {
  const [allowed, other] = await Promise.all([site(), site()]);
  const server = await Server.start({ args: ["--allow-origin", allowed] });
  const { url, token } = server;
  const page = await open(other);
  for (const transport of ["ndjson", "websocket"])
    await expect(evaluate(page, "talk", url, token, transport, "from another")).rejects.toThrow();
  const body = JSON.stringify({ type: "cli.page.spoke", source: "page" });
  const headers = { authorization: `Bearer ${token}` };
  // The first is asked about before it is sent; the second is sent, as forms are, and refused.
  for (const options of [{ method: "POST", headers, body }, { method: "POST", body }, { method: "GET" }])
    await expect(evaluate(page, "ask", `${url}/v1/events`, options)).rejects.toThrow("Failed to fetch");
  expect(await server.call("notification/list")).toMatchObject({ notifications: [] });
});
