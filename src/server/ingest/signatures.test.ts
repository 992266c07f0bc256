import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HookScheme } from "../../config/hooks.js";
import { keyOf, verify } from "./signatures.js";

/** The example of GitHub's documentation. */
const GITHUB = {
  secret: "It's a Secret to Everybody",
  body: "Hello, World!",
  headers: { "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17" },
};

/** The example of the Standard Webhooks specification. */
const STANDARD = {
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  body: '{"test": 2432232314}',
  headers: {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  },
};

interface Case {
  readonly secret: string;
  readonly body: string | Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

function check(scheme: HookScheme, { secret, body, headers }: Case, ...more: string[]) {
  const keys = [secret, ...more].flatMap((text) => keyOf(scheme, text) ?? []);
  return verify(scheme, keys, { body: Buffer.from(body as string), header: (name) => headers[name] });
}

describe("GitHub's signature", () => {
  it("is that of its documentation", () => {
    expect(check("github", GITHUB)).toEqual({ id: expect.stringMatching(/^sha256:[\w-]{43}$/), signed_at: null });
  });

  it("names what was signed, whatever else comes with it", () => {
    const first = check("github", { ...GITHUB, headers: { ...GITHUB.headers, "x-github-delivery": "1" } });
    const again = check("github", { ...GITHUB, headers: { ...GITHUB.headers, "x-github-delivery": "2" } });
    expect(again).toEqual(first);
  });

  it.each([
    ["another secret", { ...GITHUB, secret: "It's a secret to everybody" }],
    ["no signature", { ...GITHUB, headers: {} }],
    ["the old kind of signature", { ...GITHUB, headers: { "x-hub-signature": GITHUB.headers["x-hub-signature-256"] } }],
    ["no secret", { ...GITHUB, secret: "" }],
    ["an empty signature", { ...GITHUB, headers: { "x-hub-signature-256": "" } }],
  ])("does not hold with %s", (_what, one) => {
    expect(check("github", one)).toBeUndefined();
  });
});

describe("the signature of Standard Webhooks", () => {
  it("is that of the specification", () => {
    expect(check("standard", STANDARD)).toEqual({ id: "msg_p5jXN8AQM9LWM0D4loKWxJek", signed_at: 1614265330 });
  });

  it("may be one of several, of which others are of other kinds", () => {
    const mine = STANDARD.headers["webhook-signature"];
    for (const given of [`v1,${"A".repeat(43)}= ${mine}`, `v1a,abc ${mine}`, `${mine} v1,`])
      expect(
        check("standard", { ...STANDARD, headers: { ...STANDARD.headers, "webhook-signature": given } }),
        given,
      ).toBeTruthy();
  });

  it("may be made with any of the secrets that are known", () => {
    const other = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
    expect(check("standard", STANDARD, other)).toBeTruthy();
    expect(check("standard", { ...STANDARD, secret: other }, STANDARD.secret)).toBeTruthy();
    expect(check("standard", { ...STANDARD, secret: other })).toBeUndefined();
  });

  it("is by a secret with or without its prefix", () => {
    expect(check("standard", { ...STANDARD, secret: STANDARD.secret.slice("whsec_".length) })).toBeTruthy();
  });

  it.each(Object.keys(STANDARD.headers))("does not hold without %s", (missing) => {
    const headers = Object.fromEntries(Object.entries(STANDARD.headers).filter(([name]) => name !== missing));
    expect(check("standard", { ...STANDARD, headers })).toBeUndefined();
  });

  it("does not hold for a message without a name, however it is signed", () => {
    const key = keyOf("standard", STANDARD.secret) ?? Buffer.alloc(0);
    const signature = createHmac("sha256", key).update(`.1614265330.${STANDARD.body}`).digest("base64");
    const headers = { ...STANDARD.headers, "webhook-id": "", "webhook-signature": `v1,${signature}` };
    expect(check("standard", { ...STANDARD, headers })).toBeUndefined();
  });

  it.each(["", "whsec_", "whsec_not base64", "%%%"])("has no key in the secret %j", (secret) => {
    expect(keyOf("standard", secret)).toBeUndefined();
  });

  it.each(["1614265330.5", "-1", "", "1e9", "0x10", "16142653300000000"])("has no time in %j", (timestamp) => {
    const signed = `${STANDARD.headers["webhook-id"]}.${timestamp}.${STANDARD.body}`;
    const key = keyOf("standard", STANDARD.secret) ?? Buffer.alloc(0);
    const signature = `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
    const headers = { ...STANDARD.headers, "webhook-timestamp": timestamp, "webhook-signature": signature };
    expect(check("standard", { ...STANDARD, headers })).toBeUndefined();
  });
});

describe("one byte that is another", () => {
  const flipped = (text: string, at: number, by: number) => {
    const bytes = Buffer.from(text, "latin1");
    const place = at % bytes.length;
    bytes[place] = (bytes[place] ?? 0) ^ by;
    return bytes;
  };

  it.each([
    ["github", GITHUB],
    ["standard", STANDARD],
  ] as const)("in the body of %s proves nothing", (scheme, one) => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 255 }), (at, by) => {
        expect(check(scheme, { ...one, body: flipped(one.body, at, by) })).toBeUndefined();
      }),
    );
  });

  it.each([
    ["github", GITHUB],
    ["standard", STANDARD],
  ] as const)("in any header that %s signs, or its signature, proves nothing", (scheme, one) => {
    const names = Object.keys(one.headers);
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.nat(), fc.integer({ min: 1, max: 127 }), (name, at, by) => {
        const headers: Record<string, string> = { ...one.headers };
        headers[name] = flipped(headers[name] ?? "", at, by).toString("latin1");
        expect(check(scheme, { ...one, headers })).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });

  it("in the last letter of a signature is seen too, though it may stand for the same bytes", () => {
    const given = STANDARD.headers["webhook-signature"].replace(/E=$/, "F=");
    expect(Buffer.from(given.slice(3), "base64")).toEqual(
      Buffer.from(STANDARD.headers["webhook-signature"].slice(3), "base64"),
    );
    expect(
      check("standard", { ...STANDARD, headers: { ...STANDARD.headers, "webhook-signature": given } }),
    ).toBeUndefined();
  });
});
