/** Tools that a program gives its agent, and takes away, while the agent is there. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/index.js";
import type { ModelRequest } from "../../../src/providers/model.js";
import { act, call, spawn, Talk } from "../../support/background.js";
import { openTidings } from "../../support/folder.js";
import { answers, ScriptedModel, words } from "../../support/scripted.js";

const named = (name: string) =>
  defineTool({ name, description: `This is ${name}.`, input: z.object({}), run: () => `${name} ran` });

const endless = defineTool({
  name: "endless",
  description: "Goes on until it is ended.",
  input: z.object({}),
  impact: "internal",
  spawn: (_input, handle) =>
    new Promise<string>((_resolve, reject) => handle.signal.addEventListener("abort", () => reject(new Error("over")))),
});

describe("tidings.tools", () => {
  test("a tool is there from the next call of the model on, and gone when it is taken away", async () => {
    const talk = await Talk.open({});
    await talk.say(call("late", {}));
    expect((await talk.calls()).at(-1)?.content.output).toContain('there is no tool "late"');
    const remove = talk.tidings.tools.register(named("late"));
    await talk.say(call("late", {}));
    expect((await talk.calls()).at(-1)?.content.output).toBe("late ran");
    await remove();
    await remove();
    await talk.say(call("late", {}));
    expect((await talk.calls()).at(-1)?.content.output).toContain('there is no tool "late"');
  });

  test("what comes later stands behind, and what was declared stays as it was", async () => {
    const declared: string[] = [];
    const note = ({ tools }: ModelRequest) => declared.push(JSON.stringify(tools));
    const model = new ScriptedModel((_number, request) => {
      note(request);
      return answers(words("yes"));
    });
    const talk = await Talk.open({ model, tools: [named("first")] });
    await talk.say("one");
    const removeSecond = talk.tidings.tools.register(named("second"));
    await talk.say("two");
    talk.tidings.tools.register(endless);
    await talk.say("three");
    await removeSecond();
    await talk.say("four");
    const [one = "", two = "", three = "", four = ""] = declared;
    expect(two.startsWith(one.slice(0, -1))).toBe(true);
    expect(three.startsWith(two.slice(0, -1))).toBe(true);
    const names = (tools: string) => JSON.parse(tools).map((tool: { name: string }) => tool.name);
    expect(names(three).slice(-4)).toEqual(["first", "second", "await", "endless"]);
    expect(names(four).slice(-3)).toEqual(["first", "await", "endless"]);
  });

  test("a name that is taken or unusable is refused, and nothing of the rest is there", async () => {
    const { tools } = (await Talk.open({ tools: [named("first")] })).tidings;
    expect(() => tools.register(named("second"), named("first"))).toThrow("there are two of the name first");
    expect(() => tools.register(named("await"))).toThrow("the built-in names are taken");
    expect(() => tools.register(named("two words"))).toThrow("must be 1 to 64 letters, digits, _ and -");
    expect(tools.list()).toEqual([
      { name: "first", description: "This is first.", stateful: false, impact: "external" },
    ]);
  });

  test("what a tool does in the background ends with it, and the agent is told", async () => {
    const talk = await Talk.open({});
    const remove = talk.tidings.tools.register(endless);
    await talk.say(spawn("e", {}, "endless"));
    await remove();
    expect((await talk.handled())[0]).toMatch(/^tool\.failed/);
    await talk.say(act("fetch", "e", { tool: "endless" }));
    expect((await talk.calls()).at(-1)?.content.output).toContain('there is no tool "endless"');
    expect((await talk.told()).join("\n")).toContain("its tool was removed");
  });

  test("without an agent there is nobody to give a tool to", async () => {
    const tidings = await openTidings();
    expect(() => tidings.tools.register(named("first"))).toThrow("no agent is hosted");
  });
});

describe("what a one-shot tool answers", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const cases = {
    "an object": [{ passed: 3, failed: ["a"] }, '{"passed":3,"failed":["a"]}', "completed"],
    null: [null, "null", "completed"],
    "a number": [3, "3", "completed"],
    "nothing at all": [undefined, "", "completed"],
    "no JSON": [circular, "it answered something that is neither text nor JSON", "failed"],
  } as const;

  test.each(Object.entries(cases))("is text, or shown as JSON: %s", async (_, [given, output, status]) => {
    const odd = defineTool({ name: "odd", description: "", input: z.object({}), run: () => given as never });
    const talk = await Talk.open({ tools: [odd] });
    await talk.say(call("odd", {}));
    expect((await talk.calls()).at(-1)).toMatchObject({ status, content: { output } });
  });
});
