import { sha256 } from "../platform/secret.js";

const NAME_CHARS_MAX = 64;
const PLAIN = /^[A-Za-z0-9_-]{1,64}$/;
const DIGEST_CHARS = 8;

/**
 * What the agent calls a tool: `server_tool`. A name that no provider takes, or that somebody else has, is made one by a digest of
 * it: the same each time.
 */
export function offeredName(server: string, tool: string, isTaken: (name: string) => boolean): string {
  const name = `${server}_${tool}`;
  if (PLAIN.test(name) && !isTaken(name)) return name;
  const digest = sha256(JSON.stringify([server, tool])).slice(0, DIGEST_CHARS);
  const words = name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, NAME_CHARS_MAX - DIGEST_CHARS - 1);
  return `${words}_${digest}`;
}
