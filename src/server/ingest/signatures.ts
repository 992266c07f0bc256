/** Who has sent a hook's request: a signature over its bytes, made with a secret that only the sender has. */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { HookScheme } from "../../config/hooks.js";
import { sha256 } from "../../platform/secret.js";

export interface SignedRequest {
  readonly body: Uint8Array;
  /** The only one of that name; undefined if there is none, or more. */
  header(name: string): string | undefined;
}

export interface Verified {
  /** Names what was signed: the same is the same message. */
  readonly id: string;
  /** When it was signed, in seconds since 1970; null where the scheme does not say. */
  readonly signed_at: number | null;
}

const PREFIX = "whsec_";
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The key in the text of a secret; undefined for a text that is none. */
export function keyOf(scheme: HookScheme, secret: string): Buffer | undefined {
  if (scheme === "github") return secret === "" ? undefined : Buffer.from(secret);
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  return text === "" || !BASE64.test(text) ? undefined : Buffer.from(text, "base64");
}

/**
 * What the signature proves; undefined if it proves nothing. How long that takes tells nothing about the secret, nor what of
 * the request was missing.
 */
export function verify(scheme: HookScheme, keys: readonly Buffer[], request: SignedRequest): Verified | undefined {
  return scheme === "github" ? verifyGithub(keys, request) : verifyStandard(keys, request);
}

/**
 * What GitHub signs is the body alone. The id of the delivery is not signed, so whoever has seen a delivery could send it
 * again under another: the body itself is what makes two of them the same.
 */
function verifyGithub(keys: readonly Buffer[], { body, header }: SignedRequest): Verified | undefined {
  const given = header("x-hub-signature-256") ?? "";
  const expected = keys.map((key) => `sha256=${createHmac("sha256", key).update(body).digest("hex")}`);
  return isAnyOf([given], expected) ? { id: `sha256:${sha256(body)}`, signed_at: null } : undefined;
}

const TIMESTAMP = /^[0-9]{1,12}$/;

/** How many signatures a request comes with, of the scheme that may have several. */
export function signaturesIn(header: SignedRequest["header"]): number {
  return givenIn(header).length;
}

function givenIn(header: SignedRequest["header"]): string[] {
  return (header("webhook-signature") ?? "").split(" ");
}

function verifyStandard(keys: readonly Buffer[], { body, header }: SignedRequest): Verified | undefined {
  const [id = "", timestamp = ""] = ["webhook-id", "webhook-timestamp"].map((name) => header(name));
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`, "latin1"), body]);
  const expected = keys.map((key) => `v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
  const holds = isAnyOf(givenIn(header), expected);
  return holds && id !== "" && TIMESTAMP.test(timestamp) ? { id, signed_at: Number(timestamp) } : undefined;
}

/** Texts are compared, and not what they stand for: the same bytes have one text. Every pair is looked at. */
function isAnyOf(given: readonly string[], expected: readonly string[]): boolean {
  let found = false;
  for (const one of given)
    for (const other of expected) {
      const [left, right] = [Buffer.from(one), Buffer.from(other)];
      const same = left.length === right.length && timingSafeEqual(left, right);
      found = found || same;
    }
  return found;
}
