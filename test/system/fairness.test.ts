/** Nobody is held up by what another asks for, or sends. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/folder.js";
import { endKeptServer, startKeptServer } from "../support/kept_server.js";
import type { Server } from "../support/server.js";
import { Duplex } from "../support/stream.js";

const ENTRIES = 20_000;
const AT_ONCE = 1_000;

let server: Server;
let journal_id: string;
beforeAll(async () => {
  server = await startKeptServer(["--events-per-second", "100000"]);
  journal_id = (await server.call<{ journal_id: string }>("initialize")).journal_id;
  for (let from = 0; from < ENTRIES; from += AT_ONCE) {
    const events = Array.from({ length: AT_ONCE }, (_, n) => ({
      ...{ type: "cli.build.finished", source: "ci", dedupe_key: `${from + n}` },
      payload: { message: `build ${from + n}` },
    }));
    expect((await server.post("/v1/events", events)).status).toBe(202);
  }
});
afterAll(async () => {
  await endKeptServer(server);
});

async function figure(name: string): Promise<number> {
  const { text } = await server.get("/metrics");
  return Number(new RegExp(`^${name} ([0-9]+)$`, "m").exec(text)?.[1]);
}

/** From the first entry on. Nothing of that is wanted, so nothing fills the connection. */
function resume(): Duplex {
  const query = `journal_id=${journal_id}&after_seq=0&opt_out=notification/created,notification/updated`;
  return new Duplex(`${server.url}/rpc/stream?${query}`, { token: server.token, method: "GET" });
}

const opened = (stream: Duplex) =>
  new Promise<void>((resolve) => {
    stream.request.on("response", () => resolve());
  });

describe("a client that comes back after a long while", () => {
  test("does not hold up the calls of others, nor do many of them at once", async () => {
    const streams = Array.from({ length: 8 }, resume);
    await Promise.all(streams.map(opened));
    for (let calls = 1; calls <= 20; calls += 1) {
      await server.call("inbox/counts");
      expect(streams.filter(({ frames }) => frames.all.length > 0).length, `after ${calls} calls`).toBe(0);
    }
    for (const { request } of streams) request.destroy();
    await eventually(
      () => figure("tidings_clients_resuming"),
      (resuming) => resuming === 0,
    );
  });

  test("is not read for any longer when it has gone", async () => {
    const before = await figure("tidings_replayed_entries_total");
    const stream = resume();
    await opened(stream);
    await eventually(
      () => figure("tidings_clients_resuming"),
      (resuming) => resuming === 1,
    );
    stream.request.destroy();
    await eventually(
      () => figure("tidings_clients_resuming"),
      (resuming) => resuming === 0,
    );
    expect((await figure("tidings_replayed_entries_total")) - before).toBeLessThan(ENTRIES);
  });
});
