/** Calls that come as lines: read at the pace at which they are answered, and answered to the last one. */
import { LineSplitter, type SplitLine } from "../platform/lines.js";
import type { Connection } from "./connection.js";
import { CLOSE } from "./transport.js";

/** Resolves when the lines are at their end and all calls are answered. */
export async function readCalls(
  chunks: AsyncIterable<Uint8Array>,
  connection: Connection,
  lineBytes: number,
): Promise<void> {
  const splitter = new LineSplitter(lineBytes);
  const take = async (line: SplitLine): Promise<void> => {
    if (!("bytes" in line)) return;
    await connection.turn();
    if (isBlank(line.bytes)) {
      connection.charge();
      return;
    }
    await connection.room();
    void connection.take(line.bytes);
  };
  for await (const chunk of chunks) {
    for (const line of splitter.lines(chunk)) {
      if ("tooLong" in line) return tooLong(connection, lineBytes);
      await take(line);
    }
    if (splitter.isTooLong) return tooLong(connection, lineBytes);
    if (connection.outlet.isClosing) return;
  }
  const rest = splitter.end();
  if (rest !== undefined) await take(rest);
  await connection.allAnswered();
  connection.close(CLOSE.done, "");
}

/** Where the next line begins cannot be waited for: there may be none. */
async function tooLong(connection: Connection, lineBytes: number): Promise<void> {
  await connection.allAnswered();
  connection.close(CLOSE.tooLarge, `the line is longer than ${lineBytes} bytes`);
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}
