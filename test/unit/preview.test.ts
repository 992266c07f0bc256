/** What a subscriber would make of an event is what it then makes of it. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { payloadProblem } from "../../src/domain/payloads.js";
import { type EventInput, isMiss, type Tidings } from "../../src/index.js";
import { BUILT_IN_FOLDER } from "../../src/intake/subscribers/load.js";
import { openTidings, temporaryFolder } from "../support/folder.js";

const TIMESTAMP = "2026-01-03T15:30:01.000Z";

/** All built-in ones, also those that are off as they come. */
async function withAll(more: Readonly<Record<string, string>> = {}): Promise<Tidings> {
  const data = await temporaryFolder();
  const folder = join(data, "subscribers");
  mkdirSync(join(folder, "templates"), { recursive: true });
  for (const id of ["tool_call", "turn_digest"]) {
    const text = readFileSync(join(BUILT_IN_FOLDER, `${id}.toml`), "utf8").replace("enabled = false\n", "");
    writeFileSync(join(folder, `${id}.toml`), text);
  }
  for (const [file, text] of Object.entries(more)) writeFileSync(join(folder, file), text);
  return openTidings({ data });
}

function subscriberFile(id: string, lines: string): string {
  return `[subscriber]\nid = "${id}"\nname = "${id}"\ndescription = "A test's"\nversion = "1"\n\n[events]\ntypes = ["own.${id}.*"]\n${lines}`;
}

describe("of every built-in subscriber", () => {
  test("the sample is one that it takes, as the payload of its type should be, in words of its own", async () => {
    const tidings = await withAll();
    const { subscribers } = await tidings.subscribers();
    expect(subscribers.length).toBe(14);
    for (const { id } of subscribers) {
      const preview = await tidings.previewSubscriber({ subscriber_id: id });
      expect(preview, id).toMatchObject({
        outcome: "matched",
        reason: null,
        note: null,
        sample: true,
        state: "active",
      });
      expect(preview.single, id).toMatchObject({ rows: 1, degraded: null, error: null });
      expect(payloadProblem(preview.event.type, preview.event.payload), id).toBeNull();
    }
  });

  test("what is told of its sample, alone and in a batch, is what was shown before; nothing was stored", async () => {
    const tidings = await withAll();
    const { subscribers } = await tidings.subscribers();
    for (const { id, max_batch_size, batch_window_ms } of subscribers) {
      const { event } = await tidings.previewSubscriber({ subscriber_id: id, sample: true });
      const { type, source, severity, payload } = event;
      const asEmitted = (thread: string): EventInput => ({
        ...{ type, source, severity, payload, timestamp: TIMESTAMP, thread_id: `${id} ${thread}` },
        ...(event.subject === null ? {} : { subject: event.subject }),
      });
      const count = Math.min(4, max_batch_size ?? 0);
      const before = await tidings.lastSeq();
      const shown = await tidings.previewSubscriber({ subscriber_id: id, event: asEmitted("one"), count });
      expect(await tidings.lastSeq(), "nothing is stored").toBe(before);

      const told = async (thread: string, keys: readonly (string | null)[]) => {
        // In one commit: no batch is closed in between.
        const made = await tidings.emitMany(
          keys.map((dedupe_key) => ({ ...asEmitted(thread), ...(dedupe_key === null ? {} : { dedupe_key }) })),
        );
        const last = made.at(-1);
        if (last === undefined || "error" in last) throw new Error(`${id}: it was refused`);
        const match = last.matches.find(({ subscriber_id }) => subscriber_id === id);
        if (match === undefined) throw new Error(`${id} did not take it`);
        await tidings.thread(`${id} ${thread}`).collect("turn_end");
        const read = await tidings.read(match.notification.id);
        if (isMiss(read)) throw new Error(read.message);
        return read;
      };
      const one = await told("one", [null]);
      expect(shown, id).toMatchObject({
        axes: one.effective,
        channel: one.channel,
        priority: one.priority,
        inject_at: one.inject_at,
        directive: one.directive,
        dedupe_key: one.dedupe_key,
        single: { content: one.content, degraded: one.degraded },
      });
      if (batch_window_ms === 0) expect(shown.batch, id).toBeNull();
      else {
        const several = await told(
          "several",
          Array.from({ length: count }, (_, index) => `key ${index}`),
        );
        expect(several.rows, id).toBe(count);
        expect(shown.batch, id).toMatchObject({ rows: count, content: several.content });
      }
      expect(shown.single?.block === null, id).toBe(one.channel === "inbox" || one.channel === "floor");
      if (shown.single?.block != null) expect(shown.single.block).toContain(one.content);
    }
  });
});

describe("of a subscriber of one's own", () => {
  const BAD = "ok: {{ event.type }}\n{% if event.payload.go %}\nwrong: {{ event.payload.go | round }}\n{% endif %}";
  const files = {
    "templates/bad.j2": BAD,
    "bad.toml": subscriberFile(
      "bad",
      '\n[output]\npriority = "normal"\ninject_at = "next"\ntemplate = "templates/bad.j2"\n',
    ),
    "loud.toml": subscriberFile(
      "loud",
      'sources = ["siren"]\nseverity_filter = "error"\n\n[output]\npriority = "normal"\ninject_at = "next"\ntemplate = "templates/cli_event.toon.j2"\n',
    ),
    "broken.toml": subscriberFile(
      "broken",
      '\n[output]\npriority = "loud"\ninject_at = "next"\ntemplate = "templates/cli_event.toon.j2"\n',
    ),
  };

  test("a template that fails says where, and its general words are those that would be told", async () => {
    const tidings = await withAll(files);
    const event = { type: "own.bad.thing", source: "test", payload: { go: "no number" }, timestamp: TIMESTAMP };
    const { single, outcome } = await tidings.previewSubscriber({ subscriber_id: "bad", event });
    expect(outcome).toBe("matched");
    expect(single?.error).toMatchObject({ template: "templates/bad.j2", line: 3 });
    expect(single?.degraded).toContain(`templates/bad.j2:3: ${single?.error?.reason}`);
    const { matches } = await tidings.emit(event);
    expect(matches[0]?.notification).toMatchObject({ content: single?.content, degraded: single?.degraded });
    const fine = await tidings.previewSubscriber({ subscriber_id: "bad", event: { ...event, payload: {} } });
    expect(fine.single).toMatchObject({ degraded: null, error: null });
  });

  test("what it does not take, or would not tell, says why", async () => {
    const tidings = await withAll(files);
    const look = async (event: EventInput, subscriber_id = "loud") => {
      const { outcome, reason, single } = await tidings.previewSubscriber({ subscriber_id, event });
      return [outcome, reason, single === null ? "silent" : "worded"];
    };
    const good: EventInput = { type: "own.loud.thing", source: "siren", severity: "error" };
    expect(await look(good)).toEqual(["matched", null, "worded"]);
    expect(await look({ ...good, type: "own.other.thing" })).toEqual([
      "not_matched",
      "its type is own.other.thing",
      "silent",
    ]);
    expect(await look({ ...good, source: "bell" })).toEqual(["not_matched", "its source is bell", "silent"]);
    expect(await look({ ...good, severity: "info" })).toEqual([
      "filtered",
      "its severity info is below error",
      "worded",
    ]);
    await tidings.updateSettings({ disabled_subscribers: ["loud"] });
    expect(await look(good)).toEqual(["muted", expect.stringContaining("loud"), "worded"]);
    const sample = await tidings.previewSubscriber({ subscriber_id: "loud" });
    expect(sample).toMatchObject({ state: "disabled", event: { source: "siren", severity: "error" } });
    const note = await tidings.previewSubscriber({
      subscriber_id: "tool_failure",
      event: { type: "tool.call.failure", source: "test", severity: "error", payload: {} },
    });
    expect(note.note).toContain("payload.tool_name: is required");
  });

  test("without a conversation, what is addressed to one is the user's", async () => {
    const tidings = await withAll();
    const { event } = await tidings.previewSubscriber({ subscriber_id: "budget_exceeded" });
    const { type, source, payload } = event;
    const look = (more: Partial<EventInput>) =>
      tidings.previewSubscriber({ subscriber_id: "budget_exceeded", event: { type, source, payload, ...more } });
    expect(await look({ thread_id: "chat" })).toMatchObject({ channel: "floor", axes: { address: "session" } });
    expect(await look({})).toMatchObject({ channel: "inbox", axes: { address: "user" } });
  });

  test("one that is not there, or whose file is broken, is refused with what is near or wrong", async () => {
    const tidings = await withAll(files);
    const refused = (subscriber_id: string) =>
      expect(tidings.previewSubscriber({ subscriber_id, sample: true })).rejects;
    await refused("tool_failur").toThrow("tool_failure");
    await refused("broken").toThrow(/broken\.toml:11.*output\.priority/);
    await expect(tidings.previewSubscriber({ subscriber_id: "loud", sample: true, event_id: "x" })).rejects.toThrow(
      "one of",
    );
    const { problems, subscribers } = await tidings.subscribers();
    const broken = subscribers.find(({ id }) => id === "broken");
    expect(broken).toMatchObject({ state: "broken", core_reason: null });
    expect(problems).toMatchObject([{ subscriber_id: "broken", subscriber_file: broken?.file, line: 11 }]);
  });

  test("a real event is looked at by its id, by whom it belongs to", async () => {
    const tidings = await withAll(files);
    const { id } = await tidings.emit({ type: "own.loud.thing", source: "siren", severity: "error", user_id: "ada" });
    const ask = (user: string) => tidings.as(user).previewSubscriber({ subscriber_id: "loud", event_id: id });
    expect(await ask("ada")).toMatchObject({ outcome: "matched", sample: false, event: { type: "own.loud.thing" } });
    await expect(ask("bob")).rejects.toThrow("no event");
  });
});

test("the list says what each subscriber took last, of its user, and which cannot be switched off", async () => {
  const tidings = await withAll();
  const emit = (n: number, user_id: string) =>
    tidings.emit({ type: "cli.event", source: "test", user_id, dedupe_key: `key ${n}`, payload: { message: `${n}` } });
  const answers = [];
  for (let n = 0; n < 12; n += 1) answers.push(await emit(n, "ada"));
  await emit(0, "bob");
  const again = await emit(11, "ada");
  const lastOf = async (user: string, matches?: number) => {
    const { subscribers } = await tidings.as(user).subscribers(user, matches === undefined ? {} : { matches });
    return subscribers.find(({ id }) => id === "cli_event")?.last_matches;
  };
  expect(await lastOf("ada")).toEqual([]);
  const [newest, before] = (await lastOf("ada", 2)) ?? [];
  const notification_id = answers[11]?.matches[0]?.notification.id;
  expect(newest).toMatchObject({ event_id: again.id, event_type: "cli.event", outcome: "merged", notification_id });
  expect(before).toMatchObject({ event_id: answers[11]?.id, outcome: "queued", notification_id });
  expect(await lastOf("ada", 10)).toHaveLength(10);
  expect(await lastOf("bob", 10)).toHaveLength(1);
  await expect(lastOf("ada", 11)).rejects.toThrow();
  const { subscribers } = await tidings.subscribers();
  const fixed = subscribers.filter(({ core_reason }) => core_reason !== null);
  expect(fixed.map(({ id }) => id)).toEqual(["budget_exceeded", "tool_failure"]);
});
