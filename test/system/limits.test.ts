/** Limits as an operator sets them, and what is sent to go beyond every one of them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/folder.js";
import { type RpcFailure, Server } from "../support/server.js";

async function serverWith(limits: string, args: readonly string[] = []): Promise<Server> {
  const data = await temporaryFolder();
  writeFileSync(join(data, "tidings.toml"), `[server.limits]\n${limits}`);
  return Server.start({ data, args });
}

test("[server.limits] holds in a server that is started with it; a flag wins over it", async () => {
  const server = await serverWith("calls_per_batch = 2\njson_depth = 10\nheartbeat_ms = 60000\n", [
    "--heartbeat-ms",
    "50",
  ]);
  const calls = (count: number) => Array.from({ length: count }, (_, id) => ({ id, method: "inbox/counts" }));
  expect((await server.post("/rpc", calls(2))).status).toBe(200);
  expect(await server.post("/rpc", calls(3))).toMatchObject({ status: 400, json: { error: { code: -32600 } } });
  const deep = `${"[".repeat(11)}${"]".repeat(11)}`;
  expect((await server.post("/v1/events", deep)).text).toContain("nested deeper than 10 levels");
  const client = await server.connect();
  await client.frame(({ method }) => method === "stream/heartbeat");
});

test("a limit that is none is told, and nothing else of the file holds", async () => {
  const server = await serverWith("call_per_batch = 2\n");
  expect(server.stderr).toContain("server.limits.call_per_batch is not a known key; did you mean calls_per_batch?");
});

test("bombs: much in little, over each way in; the server answers, and goes on at once", async () => {
  const server = await Server.start();
  const client = await server.connect();
  const bodyBytes = 1_048_576;
  const lineBytes = 65_536;
  /** As much of it as fits. */
  const filled = (bytes: number, open: string, one: string, close: string) =>
    open + one.repeat(Math.floor((bytes - open.length - close.length) / one.length)) + close;
  const bombs = (bytes: number): readonly string[] => [
    filled(bytes, "[1", ",1", "]"),
    filled(bytes, "[{}", ",{}", "]"),
    filled(bytes, '{"a":1', ',"a":1', "}"),
    filled(bytes, "", "[", ""),
    "[".repeat(bytes / 2) + "]".repeat(bytes / 2),
    filled(bytes - 400, '{"id":1,"method":"inbox/counts","params":', '{"a":', "1") + "}".repeat(100),
    filled(bytes, '{"id":1,"method":"inbox/counts","params":{"list":[0', ",0", "]}}"),
  ];
  for (const text of bombs(bodyBytes)) {
    const { status, json } = await server.post<{ error: RpcFailure }>("/rpc", text);
    expect([200, 400], text.slice(0, 60)).toContain(status);
    expect([-32700, -32600, -32602], text.slice(0, 60)).toContain(json.error.code);
    expect((await server.post("/v1/events", text)).status, text.slice(0, 60)).toBe(400);
  }
  expect((await server.post("/rpc", `[${"1,".repeat(1_000_000)}1]`)).status).toBe(413);
  for (const text of bombs(lineBytes)) client.send(text);
  const answers = await client.until((frames) => {
    const refused = frames.filter(({ error }) => error !== undefined);
    return refused.length === bombs(lineBytes).length ? refused : undefined;
  });
  for (const { error } of answers) expect([-32700, -32600, -32602]).toContain(error?.code);
  expect((await client.rpc("inbox/counts")).error).toBeUndefined();
  expect(await server.stop()).toBe(0);
  expect(server.stderr).toBe("");
});

test("of a key that is there twice the last counts, and nobody is anybody else by it", async () => {
  const server = await Server.start();
  const { token } = await server.createToken({ user_id: "ada", scopes: ["ingest", "read"] });
  const twice = (first: string, second: string) =>
    `{"type":"cli.a.b","source":"s","user_id":"${first}","user_id":"${second}"}`;
  expect((await server.post("/v1/events", twice("bob", "ada"), token)).status).toBe(202);
  expect((await server.post("/v1/events", twice("ada", "bob"), token)).status).toBe(403);
  const call = await server.post<{ id: number; result: object }>(
    "/rpc",
    '{"id":1,"id":2,"method":"no/such","method":"inbox/counts","params":{"nobody":1},"params":{}}',
    token,
  );
  expect(call.json.id).toBe(2);
  expect(call.json.result).toHaveProperty("unread");
  const proto = '{"type":"cli.a.b","source":"s","__proto__":{"user_id":"bob"},"__proto__":{"user_id":"ada"}}';
  expect((await server.post("/v1/events", proto, token)).status).toBe(400);
});
