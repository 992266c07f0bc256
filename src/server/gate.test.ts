import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Gate, type GateOptions, pathOf } from "./gate.js";

const OWN: GateOptions = { host: "127.0.0.1", port: 4747, allowHosts: [], allowOrigins: [] };

function isLetIn(options: Partial<GateOptions>, host: string, origin?: string): boolean {
  const headers = { host, ...(origin === undefined ? {} : { origin }) };
  try {
    new Gate({ ...OWN, ...options }).check({ headers, rawHeaders: ["Host", host], url: "/" });
  } catch {
    return false;
  }
  return true;
}

describe("Host", () => {
  it("bound to one address, that one and the loopback's are its own", () => {
    for (const host of ["127.0.0.1:4747", "localhost:4747", "[::1]:4747"]) expect(isLetIn({}, host)).toBe(true);
    expect(isLetIn({}, "192.0.2.7:4747")).toBe(false);
    expect(isLetIn({ host: "192.0.2.7" }, "192.0.2.7:4747")).toBe(true);
    expect(isLetIn({ host: "192.0.2.7" }, "192.0.2.8:4747")).toBe(false);
    expect(isLetIn({ host: "2001:db8::7" }, "[2001:db8::7]:4747")).toBe(true);
    expect(isLetIn({ host: "Box.Local" }, "box.local:4747")).toBe(true);
    expect(isLetIn({ host: "Box.Local" }, "BOX.LOCAL:4747")).toBe(true);
  });

  it.each(["0.0.0.0", "::"])("bound to %s, every number is its own and no name but the loopback's", (host) => {
    for (const number of ["192.0.2.7:4747", "10.0.0.1:4747", "[2001:db8::7]:4747", "localhost:4747"])
      expect(isLetIn({ host }, number), number).toBe(true);
    for (const name of ["192.0.2.7", "192.0.2.7:1", "evil.example:4747", "1.2.3.4.evil.example:4747", "1.2.3:4747"])
      expect(isLetIn({ host }, name), name).toBe(false);
    expect(isLetIn({ host, port: 80 }, "192.0.2.7")).toBe(true);
    expect(isLetIn({ host, port: 80 }, "[2001:db8::7]")).toBe(true);
    expect(isLetIn({ host, port: 80 }, "evil.example")).toBe(false);
  });

  it("at port 80 the port may be left out, and only there", () => {
    expect(isLetIn({ port: 80 }, "localhost")).toBe(true);
    expect(isLetIn({ port: 80 }, "localhost:80")).toBe(true);
    expect(isLetIn({}, "localhost")).toBe(false);
  });

  it("nothing but the names themselves is let in", () => {
    const own = ["127.0.0.1:4747", "localhost:4747", "[::1]:4747"];
    const near = fc
      .tuple(fc.constantFrom(...own), fc.nat(15), fc.nat(2), fc.string({ maxLength: 4 }))
      .map(([name, at, cut, text]) => name.slice(0, at) + text + name.slice(at + cut));
    fc.assert(
      fc.property(near, (host) => {
        expect(isLetIn({}, host)).toBe(own.includes(host.toLowerCase()));
      }),
      { numRuns: 2_000, seed: 20_260_103 },
    );
  });

  it("is named once, and not differently by the target", () => {
    const gate = new Gate(OWN);
    const host = "127.0.0.1:4747";
    const check = (rawHeaders: string[], url = "/") => gate.check({ headers: { host }, rawHeaders, url });
    expect(() => check(["Host", host])).not.toThrow();
    expect(() => check(["Host", host], `http://${host}/x`)).not.toThrow();
    expect(() => check(["Host", host, "hOST", "evil.example"])).toThrow("names another place");
    expect(() => check(["Host", host], "http://evil.example/x")).toThrow("names another place");
    expect(() => check(["Host", host], `http://${host}@evil.example/`)).toThrow("names another place");
    expect(() => gate.check({ headers: {}, rawHeaders: [], url: "/" })).toThrow("names another place");
  });
});

describe("Origin", () => {
  it("bound to every address, a page of a number is let in only where it came from", () => {
    const host = "0.0.0.0";
    expect(isLetIn({ host }, "192.0.2.7:4747", "http://192.0.2.7:4747")).toBe(true);
    expect(isLetIn({ host }, "192.0.2.7:4747", "http://192.0.2.8:4747")).toBe(false);
    expect(isLetIn({ host }, "192.0.2.7:4747", "https://192.0.2.7:4747")).toBe(false);
  });

  it("of another place is let in as it was allowed, however that was written", () => {
    const allowOrigins = ["https://Page.Example/"];
    expect(isLetIn({ allowOrigins }, "localhost:4747", "https://page.example")).toBe(true);
    expect(isLetIn({ allowOrigins }, "localhost:4747", "http://page.example")).toBe(false);
    expect(isLetIn({ allowOrigins }, "page.example")).toBe(false);
  });
});

it("the path is without the address and the question", () => {
  for (const [url, path] of [
    ["/rpc", "/rpc"],
    ["/rpc?token=x", "/rpc"],
    ["http://127.0.0.1:4747/rpc?x", "/rpc"],
    ["http://127.0.0.1:4747", "/"],
    ["*", "*"],
    ["//rpc", "//rpc"],
  ] as const)
    expect(pathOf({ url })).toBe(path);
});
