import { decode } from "@toon-format/toon";
import { describe, expect, it } from "vitest";
import { parseEvent } from "../domain/event.js";
import { eventId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import { LIMITS } from "../domain/limits.js";
import type { Row } from "../store/contract.js";
import { parseSubscriber } from "./subscriber.js";
import { BUILT_IN_FOLDER, type LoadedSubscriber, loadFolder } from "./subscribers/load.js";
import { compileTemplate } from "./template/template.js";
import { wordsOf } from "./words.js";

const NOW = Date.parse("2026-01-03T15:31:00.000Z");

function row(payload: JsonObject, more: Partial<Row> = {}): Row {
  const timestamp = "2026-01-03T15:30:05.000Z";
  const event = { ...parseEvent({ type: "my.event", source: "here", payload }), id: eventId("e"), timestamp };
  return { event, count: 1, since: timestamp, ...more };
}

/** A subscriber of a file, with this template. */
async function withTemplate(template: string, batch = template): Promise<LoadedSubscriber> {
  const [any] = (await loadFolder(BUILT_IN_FOLDER)).loaded;
  if (any === undefined) throw new Error("there are no built-in subscribers");
  const named = { ...any, name: "Mine", description: "d" };
  return { ...named, template: compileTemplate(template, "one"), batch_template: compileTemplate(batch, "many") };
}

describe("the words of a file's subscriber", () => {
  it("see each row's event, how often it came and since when, and all of them together", async () => {
    const template = `all: {{ count }} by {{ subscriber.name }} at {{ now }}
{% for one in events %}
{{ one.payload.name }}: {{ one.count }} since {{ one.since }}, last {{ one.timestamp }}
{% endfor %}`;
    const subscriber = await withTemplate(template);
    const rows = [row({ name: "a" }, { count: 3, since: "2026-01-03T15:30:01.000Z" }), row({ name: "b" })];
    expect(wordsOf(subscriber, rows, NOW)).toEqual({
      content: `all: "4 by Mine at 2026-01-03T15:31:00.000Z"
"a: 3 since 2026-01-03T15:30:01.000Z, last 2026-01-03T15:30:05.000Z"
"b: 1 since 2026-01-03T15:30:05.000Z, last 2026-01-03T15:30:05.000Z"`,
      degraded: null,
    });
  });

  it("are by the batch template for more than one row, and only then", async () => {
    const subscriber = await withTemplate("one: {{ event.payload.name }}", "many: {{ events | length }}");
    expect(wordsOf(subscriber, [row({ name: "a" }, { count: 9 })], NOW).content).toBe("one: a");
    expect(wordsOf(subscriber, [row({ name: "a" }), row({ name: "b" })], NOW).content).toBe("many: 2");
  });

  it.each([
    ["fails", "{{ 1 + event.payload.name }}", /^the template of \w+ failed: .*many/],
    ["never ends", "{% for a in events %}{{ 'x' * 9 }}{% endfor %}", /failed/],
    ["says nothing", "{% if false %}x{% endif %}  ", /^the template of \w+ gave no words$/],
  ])("are general ones, with the reason, where a template %s", async (_what, template, reason) => {
    const rows = [row({ name: "a", message: "it rains" }, { count: 2 }), row({ message: "it pours" })];
    const { content, degraded } = wordsOf(await withTemplate(template, template), rows, NOW);
    expect(degraded).toMatch(reason);
    expect(decode(content)).toEqual({
      notices: ["my.event (from here): it rains (2 times)", "my.event (from here): it pours"],
    });
  });
});

describe("the words of a program's subscriber", () => {
  const saying = (content?: (event: { payload: JsonObject }) => string) =>
    parseSubscriber({ id: "mine", types: ["my.event"], ...(content === undefined ? {} : { content }) });

  it("are its own, a line for each row of a batch", () => {
    const subscriber = saying(({ payload }) => `said ${payload["name"]}`);
    expect(subscriber.words([row({ name: "a" }, { count: 2 })], NOW)).toEqual({ content: "said a", degraded: null });
    const { content } = subscriber.words([row({ name: "a" }, { count: 2 }), row({ name: "b" })], NOW);
    expect(content).toBe("said a (2 times)\nsaid b");
  });

  it("are general ones, and not degraded, if it has none", () => {
    const words = saying().words([row({ message: "it rains,\nnext: obey" })], NOW);
    expect(words.degraded).toBeNull();
    expect(decode(words.content)).toEqual({ notice: "my.event (from here): it rains,\nnext: obey" });
    const batch = saying().words([row({ message: "it rains" }, { count: 2 }), row({ message: "it pours" })], NOW);
    expect(batch.degraded).toBeNull();
    expect(decode(batch.content)).toEqual({
      notices: ["my.event (from here): it rains (2 times)", "my.event (from here): it pours"],
    });
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no idea");
      },
      "the words of mine failed: no idea",
    ],
    [
      "throws nonsense",
      () => {
        throw undefined;
      },
      "the words of mine failed: undefined",
    ],
    ["says nothing", () => "", "the words of mine are no text"],
    ["says no text", () => 7 as unknown as string, "the words of mine are no text"],
  ])("are general ones, with the reason, if it %s", (_what, content, degraded) => {
    const words = saying(content).words([row({ message: "it rains" })], NOW);
    expect(words).toEqual({ content: 'notice: "my.event (from here): it rains"', degraded });
  });

  it("are never longer than a notification may be, and well-formed", () => {
    const { content } = saying(() => `${"x".repeat(LIMITS.contentChars - 1)}🙂`).words([row({})], NOW);
    expect(content.length).toBe(LIMITS.contentChars);
    expect(content.isWellFormed()).toBe(true);
  });
});
