import { createHash, randomBytes } from "node:crypto";

const SECRET_BYTES = 32;

/** 256 random bits, in letters that fit a header, a subprotocol and a fragment. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
