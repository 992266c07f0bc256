/** What servers report of tokens: some leave it out, some send nonsense, and no conversation ends by it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Talk } from "../../support/background.js";
import { openTidings } from "../../support/folder.js";
import { aborted, answers, ScriptedModel, STARTED, words } from "../../support/scripted.js";

/** A server of Chat Completions that reports this. */
async function serverThatReports(usage: unknown): Promise<string> {
  const server = createServer((request, response) => {
    const chunk = (part: object) => {
      response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", ...part })}\n\n`);
    };
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "hi" }, finish_reason: null }] });
      chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
      chunk({ choices: [], usage });
      response.end("data: [DONE]\n\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

test.each([
  [{ prompt_tokens: 60 }, { input: 60, output: 0 }],
  [{}, { input: 0, output: 0 }],
  [
    { prompt_tokens: 1.5, completion_tokens: 2 },
    { input: 2, output: 2 },
  ],
  [
    { prompt_tokens: "12", completion_tokens: -4 },
    { input: 0, output: 0 },
  ],
  [
    { prompt_tokens: 1e300, completion_tokens: 7 },
    { input: 0, output: 7 },
  ],
])("%j is counted as %j", async (reported, counted) => {
  const base_url = await serverThatReports(reported);
  const budgets = { thread: { tokens: 1_000 } };
  const talk = await Talk.open({ provider: "openai-compatible", model: "m", base_url, budgets });
  for (const message of ["one", "two"]) expect((await talk.say(message)).state).toBe("completed");
  const { thread } = await talk.tidings.usage({ thread_id: talk.thread_id });
  const twice = { input: 2 * counted.input, output: 2 * counted.output };
  expect(thread).toMatchObject({ input_tokens: twice.input, output_tokens: twice.output, iterations: 2 });
});

test("a model of one's own may report what it likes", async () => {
  const model = new ScriptedModel(async function* (_number, request) {
    request.report?.({ type: "usage", usage: { input: Number.NaN, output: -1 } });
    yield* answers(words("yes"), { type: "end", reason: "end", usage: { input: 0.5, output: Number.NaN } });
  });
  const talk = await Talk.open({ model });
  expect((await talk.say("one")).state).toBe("completed");
  const { thread } = await talk.tidings.usage({ thread_id: talk.thread_id });
  expect(thread).toMatchObject({ input_tokens: 1, output_tokens: 0 });
});

test("whoever waits for the end of a turn is told when the storage has failed", async () => {
  const model = new ScriptedModel(async function* (_number, request) {
    yield STARTED;
    await aborted(request);
  });
  const failures: Error[] = [];
  const tidings = await openTidings({
    agent: { model },
    bytes_max: 600_000,
    onFailure: (error) => failures.push(error),
  });
  const { thread_id } = await tidings.startThread({});
  const { turn_id } = await tidings.thread(thread_id).say("wait for me");
  const waiting = expect(tidings.turns.ended(turn_id)).rejects.toMatchObject({ code: "store_full" });
  const payload = { text: "x".repeat(20_000) };
  for (let number = 0; failures.length === 0 && number < 1_000; number += 1)
    await tidings.emit({ type: "cli.event", source: "test", dedupe_key: `k${number}`, payload }).catch(() => undefined);
  await waiting;
});
