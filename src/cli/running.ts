/** The server that runs on a data folder, if one does. */
import { type Endpoint, RpcClient } from "../client/rpc.js";
import { TidingsError, UnreachableError } from "../domain/errors.js";
import { readServerFile, type ServerFile } from "../server/server_file.js";

const ANSWER_MS = 5_000;

/** Undefined if none runs; the file of one that was killed is no obstacle, whoever is at its address now. */
export async function runningServer(data: string): Promise<Endpoint | undefined> {
  const file = readServerFile(data);
  if (file === undefined) return undefined;
  try {
    const status = await new RpcClient(file).call("runtime/status", {}, { answerMs: ANSWER_MS, hangUp: true });
    return (status as { pid?: unknown } | null)?.pid === file.pid ? file : undefined;
  } catch (error) {
    if (!(error instanceof TidingsError)) throw error;
    // It is there, and has no time for us now.
    if (error.code === "overloaded" && isAlive(file)) throw error;
    if (error instanceof UnreachableError && error.why === "late" && isAlive(file))
      throw new UnreachableError(`the server at ${file.url} (process ${file.pid}) does not answer; is it stopped?`, {
        why: "late",
      });
    // Nobody listens there, or somebody else does, who does not know its token.
    return undefined;
  }
}

function isAlive({ pid }: ServerFile): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
