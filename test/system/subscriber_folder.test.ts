/** The operator's files at the running server: edits without a restart, broken ones, and who is told of them. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { NotificationView } from "../../src/domain/notification.js";
import type { SubscriberList } from "../../src/index.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import {
  emit,
  type FileInput,
  newThread,
  onlyMatch,
  read,
  storyOf,
  told,
  whenClosed,
  writeSubscriber,
} from "../support/pipeline.js";
import { Server } from "../support/server.js";
import { run } from "./cli.js";

/** Shown at once, so that what becomes of an event is in its answer. */
const NOTES: FileInput = {
  id: "notes",
  types: ["note.*"],
  template: "note: {{ event.payload.name }}\n",
  routing: { address: "user", target: "user", handler: "system" },
};

/** As editors do: whole, under another name, then renamed. */
function replace(folder: string, name: string, text: string): void {
  writeFileSync(join(folder, `.${name}.new`), text);
  renameSync(join(folder, `.${name}.new`), join(folder, name));
}

async function started(args: readonly string[] = []) {
  const data = await temporaryFolder();
  const folder = join(data, "subscribers");
  writeSubscriber(folder, NOTES);
  const server = await Server.start({ data, args });
  let sent = 0;
  /** What is shown of a further event. */
  const shown = async () => {
    sent += 1;
    const emitted = await emit(server, { type: "note.one", source: "test", payload: { name: `n${sent}` } });
    return emitted.matches.map(({ notification }) => notification.content.replace(/n\d+/, "n"));
  };
  const becomes = (...wanted: string[]) => eventually(shown, (now) => now.join() === wanted.join());
  return { server, data, folder, shown, becomes };
}

const stateOf = async (server: Server, id: string) =>
  (await server.call<SubscriberList>("subscriber/list")).subscribers.find((one) => one.id === id);

const notices = async (server: Server, kind: string) =>
  (
    await server.call<{ notifications: NotificationView[] }>("notification/list", {
      user_id: "local",
      channel: "inbox",
    })
  ).notifications.filter((one) => one.kind === kind);

describe("an edit", () => {
  test("takes effect in the running server: words, types, removal, and a new file", async () => {
    const { server, folder, shown, becomes } = await started();
    expect(await shown()).toEqual(["note: n"]);
    writeFileSync(join(folder, "templates/notes.j2"), "changed: {{ event.payload.name }}\n");
    await becomes("changed: n");
    writeSubscriber(folder, { ...NOTES, types: ["other.*"], template: "note: {{ event.payload.name }}\n" });
    await becomes();
    writeSubscriber(folder, { ...NOTES, id: "more" });
    await becomes("note: n");
    rmSync(join(folder, "more.toml"));
    await becomes();
    expect(await stateOf(server, "more")).toBeUndefined();
    expect(await server.stop()).toBe(0);
    expect(server.stderr).toBe("");
  });

  test("that switches a subscriber off in its file shows as its state", async () => {
    const { server, folder, becomes } = await started();
    expect(await stateOf(server, "notes")).toMatchObject({ state: "active", enabled: true });
    writeSubscriber(folder, { ...NOTES, enabled: false });
    await becomes();
    expect(await stateOf(server, "notes")).toMatchObject({ state: "loaded", enabled: false });
  });

  test("that takes a built-in one's place, and gives it back", async () => {
    const { server, folder } = await started();
    const words = async () =>
      onlyMatch(await emit(server, { type: "cli.a.b", source: crypto.randomUUID() })).notification.content;
    expect(await words()).toMatch(/^cli_event: /);
    writeSubscriber(folder, { ...NOTES, id: "cli_event", types: ["cli.*"], template: "mine: {{ count }}\n" });
    await eventually(words, (content) => content === "mine: 1");
    expect(await stateOf(server, "cli_event")).toMatchObject({ built_in: false, state: "active" });
    rmSync(join(folder, "cli_event.toml"));
    await eventually(words, (content) => content.startsWith("cli_event: "));
  });

  test("while a batch is open: it is told in the words of then; without its subscriber in general ones", async () => {
    const { server, folder } = await started();
    const batched = { ...NOTES, id: "batched", types: ["batch.*"], window_ms: 3_000 };
    writeSubscriber(folder, batched);
    const send = () => emit(server, { type: "batch.one", source: crypto.randomUUID(), payload: { name: "x" } });
    const first = await eventually(send, ({ matches }) => matches.length === 1);
    writeFileSync(join(folder, "templates/batched.j2"), "later: {{ events | length }} and {{ count }}\n");
    expect((await whenClosed(server, onlyMatch(first).notification.id)).content).toMatch(/^later: 1 and 1$/);

    const second = onlyMatch(await send()).notification;
    expect(second.open_until).not.toBe(null);
    rmSync(join(folder, "batched.toml"));
    const told = await whenClosed(server, second.id);
    expect(told).toMatchObject({
      state: "DISPATCHED",
      degraded: "the subscriber batched is no longer there",
      content: expect.stringMatching(/^notice: "batch\.one \(from .*name.*x/),
    });
    expect(await storyOf(server, second.id)).toContain("the subscriber batched is no longer there");
  });
});

describe("a broken edit", () => {
  test("keeps the last good version, and says so in the log, to doctor, in the list and in the inbox", async () => {
    const { server, data, folder, shown, becomes } = await started();
    const file = join(folder, "notes.toml");
    const where = `${file}:3:1: subscriber.nam is not a known key; did you mean name?`;
    const kept = " (the last good version stays in effect)";
    replace(folder, "notes.toml", '[subscriber]\nid = "notes"\nnam = "x"\n');
    const state = await eventually(
      () => stateOf(server, "notes"),
      (one) => one?.state === "broken",
    );
    expect(state).toMatchObject({ types: ["note.*"], file, enabled: true });
    expect(state?.reason).toContain(`${where}${kept}`);
    expect(await shown()).toEqual(["note: n"]);

    const { problems } = await server.call<SubscriberList>("subscriber/list");
    expect(problems.find(({ key }) => key === "subscriber.nam")).toMatchObject({
      file,
      line: 3,
      column: 1,
      reason: "is not a known key; did you mean name?",
      subscriber_id: "notes",
      instead: "last_good",
      text: `${where}${kept}`,
    });
    const told = await eventually(
      () => notices(server, "config.subscriber_broken"),
      (found) => found.length > 0,
    );
    // One file, one notice, with all that is wrong with it.
    expect(problems.length).toBeGreaterThan(1);
    expect(told.map(({ content }) => content)).toEqual([problems.map(({ text }) => text).join("\n")]);
    expect(told[0]).toMatchObject({ state: "DISPATCHED", severity: "warning", user_id: "local", address: "user" });
    expect(server.stderr).toContain(`tidings: ${where}${kept}\n`);

    const doctor = await run(["doctor", "--data", data]);
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toContain(`✖ subscribers  ${where}${kept}`);
    const listed = await run(["subscribers", "list", "--data", data]);
    expect(listed.code).toBe(0);
    expect(listed.stdout).toMatch(/^broken {4}notes /m);
    expect(listed.stdout).toContain(`✖ ${where}${kept}`);

    writeSubscriber(folder, { ...NOTES, template: "mended: {{ event.payload.name }}\n" });
    await becomes("mended: n");
    expect(await stateOf(server, "notes")).toMatchObject({ state: "active", reason: null });
    expect((await run(["doctor", "--data", data])).stdout).toMatch(
      /✔ subscribers {2}\d+ of \d+ subscribers are active/,
    );
  });

  test("is told once: not again at a start while it waits in the inbox, and again when it was acknowledged", async () => {
    const { server, data, folder } = await started();
    replace(folder, "bad.toml", "nonsense");
    const [first] = await eventually(
      () => notices(server, "config.subscriber_broken"),
      (found) => found.length === 1,
    );
    expect(await server.stop()).toBe(0);
    const second = await Server.start({ data });
    expect(second.stderr).toContain(`${join(folder, "bad.toml")}:1:1: is not valid TOML`);
    expect((await notices(second, "config.subscriber_broken")).map(({ id, count }) => [id, count])).toEqual([
      [first?.id, 1],
    ]);
    await second.call("notification/ack", { id: first?.id, revision: 1, action: "dismissed" });
    expect(await second.stop()).toBe(0);
    // Within its first seconds the same is only counted; after them it is told anew.
    const told = await eventually(
      async () => {
        const next = await Server.start({ data });
        const found = await notices(next, "config.subscriber_broken");
        expect(await next.stop()).toBe(0);
        return found;
      },
      (found) => found.length > 1,
    );
    expect(told.map(({ state }) => state)).toEqual(["DISPATCHED", "DELIVERED"]);
  });

  test("at the start leaves out that file alone, and a burst of them does not fill the inbox", async () => {
    const data = await temporaryFolder();
    const folder = join(data, "subscribers");
    writeSubscriber(folder, NOTES);
    for (let n = 0; n < 30; n += 1) writeFileSync(join(folder, `bad${n}.toml`), "nonsense");
    const server = await Server.start({ data });
    expect(await stateOf(server, "notes")).toMatchObject({ state: "active" });
    expect(await stateOf(server, "bad7")).toMatchObject({ state: "broken", types: null });
    const told = await notices(server, "config.subscriber_broken");
    expect(told.length).toBe(11);
    expect(told[0]?.content).toBe("and 20 more broken files; see `tidings doctor`");
    expect(server.stderr.match(/is not valid TOML/g)?.length).toBe(30);
  });

  test("is told although nobody reads what the server says of it", async () => {
    const { server, folder, becomes } = await started();
    server.process.stderr?.destroy();
    for (const name of ["first", "second"]) {
      replace(folder, `${name}.toml`, "nonsense");
      await eventually(
        () => stateOf(server, name),
        (one) => one?.state === "broken",
      );
    }
    await becomes("note: n");
    expect(await server.stop()).toBe(0);
  });

  test("is remarked by a command that works on the folder itself, which tells nobody's inbox", async () => {
    const data = await temporaryFolder();
    mkdirSync(join(data, "subscribers"), { recursive: true });
    const file = join(data, "subscribers/bad.toml");
    writeFileSync(file, "nonsense");
    const emitted = await run(["emit", "cli.a.b", "--data", data]);
    expect(emitted).toMatchObject({ code: 0, stderr: expect.stringMatching(/bad\.toml:1:1: is not valid TOML/) });
    expect(await run(["inbox", "--data", data])).toMatchObject({ code: 0, stderr: "" });
    const { stdout } = await run(["inbox", "--data", data, "--json"]);
    expect((JSON.parse(stdout) as { notifications: unknown[] }).notifications).toHaveLength(1);
    const doctor = await run(["doctor", "--data", data]);
    expect(doctor).toMatchObject({ code: 1, stdout: expect.stringContaining(`✖ subscribers  ${file}:1:1: `) });
    rmSync(file);
    expect(await run(["doctor", "--data", data])).toMatchObject({ code: 0 });
  });
});

describe("tidings.toml at the running server", () => {
  const MUTE = '[conversation.notifications.kinds]\n"note.one" = false\n';
  const outcome = async (server: Server) =>
    onlyMatch(await emit(server, { type: "note.one", source: crypto.randomUUID() })).outcome;

  test("takes effect without a restart, is announced, and a broken edit keeps the last good version", async () => {
    const { server, data } = await started();
    const file = join(data, "tidings.toml");
    expect(await outcome(server)).toBe("queued");
    writeFileSync(file, MUTE);
    await eventually(
      () => outcome(server),
      (now) => now === "muted",
    );
    const reloads = async () =>
      (
        await server.call<{ notifications: NotificationView[] }>("notification/list", { channel: "context" })
      ).notifications.filter((one) => one.kind === "config.reloaded");
    const [reload] = await eventually(reloads, (found) => found.length === 1);
    const { events } = await read(server, reload?.id ?? "");
    expect(events).toMatchObject([
      {
        type: "config.reloaded",
        source: "tidings",
        user_id: "local",
        payload: { file, changed: ["conversation.notifications.kinds.note.one"] },
      },
    ]);

    writeFileSync(file, MUTE.replace("kinds", "kind"));
    const text = `${file}:1:2: conversation.notifications.kind is not a known key; did you mean kinds? (the last good version stays in effect)`;
    const [told] = await eventually(
      () => notices(server, "config.file_broken"),
      (found) => found.length === 1,
    );
    expect(told?.content).toBe(text);
    expect(await outcome(server)).toBe("muted");
    expect(server.stderr).toContain(`tidings: ${text}\n`);
    expect((await run(["doctor", "--data", data])).stdout).toContain(`✖ subscribers  ${text}`);
    expect((await server.call<SubscriberList>("subscriber/list")).problems).toMatchObject([{ file, line: 1, text }]);

    rmSync(file);
    await eventually(
      () => outcome(server),
      (now) => now === "queued",
    );
    expect((await server.call<SubscriberList>("subscriber/list")).problems).toEqual([]);
  });

  test("that switches off what is core has no effect on it, and doctor mentions it", async () => {
    const { server, data } = await started();
    const file = join(data, "tidings.toml");
    writeFileSync(file, "[conversation.notifications.kinds.tool]\nenable = false\n");
    const rule = `conversation.notifications.kinds.tool.enable = false (${file})`;
    const doctor = await eventually(
      () => run(["doctor", "--data", data]),
      ({ stdout }) => stdout.includes("switches"),
    );
    expect(doctor.code).toBe(0);
    expect(doctor.stdout).toContain(`▲ switches     ${rule} does not concern tool_failure: core subscribers stay on`);
    // The same without a server.
    expect(await server.stop()).toBe(0);
    expect((await run(["doctor", "--data", data])).stdout).toContain(`${rule} does not concern tool_failure`);
  });
});

describe("switches that cannot be meant as they are", () => {
  const KINDS = "conversation.notifications.kinds";

  test("of a kind that is on and off: the edit is refused, and what was off before stays off", async () => {
    const { server, data } = await started();
    const file = join(data, "tidings.toml");
    const off = `[${KINDS}]\n"handle.waiting" = false\n`;
    const rule = `${KINDS}.handle.waiting = false (${file})`;
    writeFileSync(file, off);
    const kept = async () => {
      const thread_id = newThread();
      const payload = { tool_name: "git", handle: "h" };
      const { id } = onlyMatch(
        await emit(server, { type: "tool.waiting", source: "test", thread_id, payload }),
      ).notification;
      await told(server, thread_id, "turn_start");
      return storyOf(server, id);
    };
    await eventually(kept, (story) => story.includes(rule));

    writeFileSync(file, `${off}\n[${KINDS}.tool]\nwaiting = true\n`);
    const text =
      `${file}:5:1: ${KINDS}.tool.waiting says true, and ${KINDS}.handle.waiting on line 2 says false; ` +
      "say it once (the last good version stays in effect)";
    const [notice] = await eventually(
      () => notices(server, "config.file_broken"),
      (found) => found.length === 1,
    );
    expect(notice?.content).toBe(text);
    expect(await kept()).toContain(rule);
    const doctor = await run(["doctor", "--data", data]);
    expect(doctor).toMatchObject({ code: 1, stdout: expect.stringContaining(`✖ subscribers  ${text}`) });
  });

  test("of a kind that no subscriber takes: doctor and the list mention it, with and without a server", async () => {
    const { server, data } = await started();
    const file = join(data, "tidings.toml");
    writeFileSync(
      file,
      `[${KINDS}]\n"mcp.reconnectd" = false\n"note.muted" = false\n[${KINDS}.mpc]\nenable = false\n` +
        "[conversation.tools.x.notifications]\nstoped = false\n",
    );
    const idle = (key: string, line: number) =>
      `${key} = false (${file}:${line}) concerns only what notify() tells: no subscriber takes`;
    const lines = [
      `${KINDS}.mcp.reconnectd = false (${file}:2) is about mcp.reconnectd, which is no known event type; did you mean mcp.reconnected?`,
      `${idle(`${KINDS}.mpc.enable`, 5)} anything of mpc; did you mean mcp?`,
      `${idle("conversation.tools.x.notifications.stoped", 7)} tool.stoped; did you mean stopped?`,
    ];
    const list = await eventually(
      () => server.call<SubscriberList>("subscriber/list"),
      ({ without_effect }) => without_effect.length > 0,
    );
    expect(list).toMatchObject({ without_effect: lines, problems: [] });
    const warned = async () => {
      const { code, stdout } = await run(["doctor", "--data", data]);
      return { code, lines: stdout.split("\n").flatMap((line) => line.split("▲ switches     ").slice(1)) };
    };
    expect(await warned()).toEqual({ code: 0, lines });
    expect(await server.stop()).toBe(0);
    expect(await warned()).toEqual({ code: 0, lines });
    const { stdout } = await run(["subscribers", "list", "--data", data, "--json"]);
    expect((JSON.parse(stdout) as SubscriberList).without_effect).toEqual(lines);
  });
});

describe("--subscribers and --config", () => {
  test("name other files, for the server and for commands without one; the environment does too", async () => {
    const elsewhere = await temporaryFolder();
    const folder = join(elsewhere, "mine");
    const config = join(elsewhere, "mine.toml");
    writeSubscriber(folder, NOTES);
    writeFileSync(config, '[conversation.notifications.kinds]\n"note.muted" = false\n');
    const flags = ["--subscribers", folder, "--config", config];
    const env = { TIDINGS_SUBSCRIBERS: folder, TIDINGS_CONFIG: config };
    for (const [type, words] of [
      ["note.one", /notes queued: DISPATCHED/],
      ["note.muted", /notes muted: SUPPRESSED/],
    ] as const) {
      const data = await temporaryFolder();
      expect((await run(["emit", type, "--data", data, ...flags])).stdout).toMatch(words);
      const other = await temporaryFolder();
      expect((await run(["emit", type, "--data", other], { env })).stdout).toMatch(words);
    }
    const server = await Server.start({ args: flags });
    expect(onlyMatch(await emit(server, { type: "note.one", source: "x" })).outcome).toBe("queued");
    expect(onlyMatch(await emit(server, { type: "note.muted", source: "x" })).outcome).toBe("muted");
    // A flag of a command that goes through the server is not the server's.
    const through = await run(["emit", "note.one", "--data", server.data, "--config", config]);
    expect(through.stderr).toContain("--config has no effect");
    expect(await server.stop()).toBe(0);
  });

  test("that are no file: refused", async () => {
    const data = await temporaryFolder();
    expect(await run(["serve", "--port", "0", "--data", data, "--config", data])).toMatchObject({
      code: 2,
      stderr: `tidings: --config: ${JSON.stringify(data)} is not a file\n`,
    });
  });

  test("that lead nowhere: a file is refused, a folder is waited for", async () => {
    const data = await temporaryFolder();
    const missing = join(data, "missing");
    expect(await run(["serve", "--port", "0", "--data", data, "--config", missing])).toMatchObject({
      code: 2,
      stderr: `tidings: --config: there is no file ${JSON.stringify(missing)}\n`,
    });
    const server = await Server.start({ data, args: ["--subscribers", missing] });
    expect(server.stderr).toContain(`there is no folder ${missing} yet`);
    writeSubscriber(missing, NOTES);
    await eventually(
      () => emit(server, { type: "note.one", source: "x" }),
      ({ matches }) => matches.length === 1,
    );
    expect(await server.stop()).toBe(0);
  });
});
