/** The server that must run: what some commands do, only a server can. */
import type { Endpoint } from "../client/rpc.js";
import { UnreachableError } from "../domain/errors.js";
import type { Output } from "./output.js";
import { withoutEffect } from "./plane.js";
import { PROGRAM } from "./program.js";
import { runningServer } from "./running.js";
import type { Settings } from "./settings.js";

/** `why`: what only a server does, as in "only a server tells". */
export async function serverFor(
  { server, data, folderFlags, dataFlag }: Settings,
  output: Output,
  why: string,
): Promise<Endpoint> {
  const running = server ?? (await runningServer(data));
  if (running === undefined)
    throw new UnreachableError(
      `no server runs on ${data}, and ${why}: start one with \`${PROGRAM} serve${dataFlag}\`, or name one with --server`,
    );
  if (folderFlags.length > 0) output.remark(withoutEffect(folderFlags, running));
  return running;
}
