import { hash, randomBytes } from "node:crypto";

const SECRET_BYTES = 32;
const NONCE_BYTES = 12;

/** 256 random bits, in letters that fit a header, a subprotocol and a fragment. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

/** 96 random bits: nobody who writes a text beforehand can know it. */
export function newNonce(): string {
  return randomBytes(NONCE_BYTES).toString("base64url");
}

export function sha256(text: string | Uint8Array): string {
  return hash("sha256", text, "base64url");
}
