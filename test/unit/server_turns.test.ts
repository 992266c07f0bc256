/** Turns over the wire, of an agent whose tool takes no notice of anything. */
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { TidingsServer } from "../../src/server/index.js";
import { temporaryFolder } from "../support/folder.js";
import { Duplex, type StreamFrame } from "../support/stream.js";

test("an interrupt that takes too long answers cancel_requested, and holds up nobody meanwhile; it comes true", async () => {
  let entered: () => void = () => {};
  const running = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const deaf = {
    name: "deaf",
    description: "Hears nothing.",
    input: z.object({}),
    run: () => {
      entered();
      return new Promise<string>(() => {});
    },
  };
  const agent = { provider: "rehearsal", tools: [deaf] } as const;
  const server = await TidingsServer.start({ data: await temporaryFolder(), port: 0, agent });
  onTestFinished(() => server.close());
  const converse = async () => {
    const stream = new Duplex(`${server.url}/rpc/stream`, { token: server.token });
    await stream.frames.told("inbox/counts");
    return stream;
  };
  const [stream, other] = [await converse(), await converse()];
  const { thread_id } = (await stream.rpc("thread/start")).result;
  const { turn_id } = (await stream.rpc("turn/start", { thread_id, input: "call deaf {}" })).result;
  await running;
  stream.say({ id: "interrupt", method: "turn/interrupt", params: { turn_id } });

  // What is told of conversations is kept back for the answer; so is what stands after it. More comes than may wait.
  await other.rpc("thread/start");
  const content = "x".repeat(15_000);
  for (let n = 0; n < 90; n += 1)
    await other.rpc("notification/notify", { content: `${n} ${content}`, target: "user" });
  const isAnswer = ({ id }: StreamFrame) => id === "interrupt";
  const said = (frames: readonly StreamFrame[]) => frames.filter(({ method }) => method === "notification/created");
  await stream.frames.until((all) => (said(all).length === 90 ? true : undefined), "all that was said");

  const { result } = await stream.frames.frame(isAnswer);
  expect(result).toMatchObject({ turn_id, thread_id, state: "cancel_requested", successor: null });
  await stream.frames.told("turn/interrupted", (params) => params["turn_id"] === turn_id);
  const chained = stream.frames.all.filter(({ params }) => params?.prev_seq !== undefined);
  expect(chained.map(({ params }) => params.prev_seq)).toEqual([
    null,
    ...chained.slice(0, -1).map(({ params }) => params.seq),
  ]);
  expect((await stream.rpc("turn/interrupt", { turn_id })).result).toMatchObject({ state: "stopped" });
});
