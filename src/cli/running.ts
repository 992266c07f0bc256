/** The server that runs on a data folder, if one does. */
import { type Endpoint, RpcClient } from "../client/rpc.js";
import { AccessError, UnreachableError } from "../domain/errors.js";
import { pause } from "../platform/timers.js";
import { readServerFile } from "../server/server_file.js";

const ANSWER_MS = 5_000;

/** Undefined if none runs; the file of one that was killed is no obstacle. */
export async function runningServer(data: string): Promise<Endpoint | undefined> {
  const file = readServerFile(data);
  if (file === undefined) return undefined;
  const answered = new AbortController();
  const late = pause(ANSWER_MS, answered.signal).then(() => {
    if (!answered.signal.aborted)
      throw new UnreachableError(`the server at ${file.url} (process ${file.pid}) does not answer; is it stopped?`);
  });
  try {
    await Promise.race([new RpcClient(file).call("runtime/status", {}), late]);
    return file;
  } catch (error) {
    // Nobody listens there, or somebody else does, who does not know its token.
    const connected = error instanceof UnreachableError && error.cause === undefined;
    if (connected || !(error instanceof UnreachableError || error instanceof AccessError)) throw error;
    return undefined;
  } finally {
    answered.abort();
  }
}
