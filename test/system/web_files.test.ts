/** The web app's files as the server gives them, and the token with which a page comes back. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../support/folder.js";
import { Server } from "../support/server.js";

describe("the page", () => {
  test("comes with a policy that names nobody else, and a nonce that nobody had before", async () => {
    const server = await Server.start();
    const pages = [await server.get("/", null), await server.get("/index.html", null)];
    const nonces = pages.map(({ headers, text }) => {
      const policy = headers.get("content-security-policy") ?? "";
      const [, nonce = ""] = /style-src 'self' 'nonce-([\w-]{16,})'/.exec(policy) ?? [];
      expect(policy.replace(nonce, "N")).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-N'; font-src 'self'; img-src 'self' data:; " +
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      );
      expect(text).toContain(`nonce="${nonce}"`);
      expect(headers.get("cache-control")).toBe("no-store");
      return nonce;
    });
    expect(new Set(nonces).size).toBe(2);
  });

  test("names files that are there, compressed for whoever takes that, and the same for a year", async () => {
    const server = await Server.start();
    const { text } = await server.get("/", null);
    const [, script = ""] = /src="(\/assets\/[\w.-]+\.js)"/.exec(text) ?? [];
    for (const [accepted, encoding] of [
      ["br, gzip", "br"],
      ["identity", null],
    ] as const) {
      const { status, headers } = await fetch(`${server.url}${script}`, { headers: { "accept-encoding": accepted } });
      expect(status).toBe(200);
      expect(headers.get("content-encoding")).toBe(encoding);
      expect(headers.get("content-type")).toBe("text/javascript; charset=utf-8");
      expect(headers.get("cache-control")).toContain("immutable");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
  });

  test.each(["/assets/", "/assets/../server.json", "/%2e%2e/package.json", "/LICENSES.md", "/assets/none.js"])(
    "there is nothing at %s",
    async (path) => {
      const server = await Server.start();
      expect((await server.get(path, null)).status).toBe(404);
    },
  );

  test("is asked for, and nothing else", async () => {
    const server = await Server.start();
    expect(await server.request("/", { method: "POST", token: null })).toMatchObject({ status: 405 });
    const { headers } = await server.request("/", { method: "POST", token: null });
    expect(headers.get("allow")).toBe("GET, HEAD");
  });
});

describe("the server's own token", () => {
  test("is kept for the next start, for its owner alone, until it is replaced", async () => {
    const data = await temporaryFolder();
    const first = await Server.start({ data });
    const file = join(data, "server.token");
    expect(readFileSync(file, "utf8")).toBe(`${first.token}\n`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await first.stop();
    const second = await Server.start({ data });
    expect(second.token).toBe(first.token);
    await second.kill();
    const third = await Server.start({ data, args: ["--new-token"] });
    expect(third.token).not.toBe(first.token);
    expect((await third.rpc("runtime/status", {}, first.token)).error).toMatchObject({ code: -32002 });
    await third.stop();
    expect((await Server.start({ data })).token).toBe(third.token);
  });

  test("that is broken is replaced; one that was given is not kept", async () => {
    const data = await temporaryFolder();
    writeFileSync(join(data, "server.token"), "short\n");
    const first = await Server.start({ data });
    expect(first.token).toMatch(/^tdg_/);
    await first.stop();
    const given = "a-token-that-was-given-1234";
    const second = await Server.start({ data, env: { TIDINGS_OWN_TOKEN: given } });
    expect(second.token).toBe(given);
    await second.stop();
    expect((await Server.start({ data })).token).toBe(first.token);
  });
});
