import { describe, expect, it } from "vitest";
import { parseConfig } from "../config/config.js";
import { subscriberId } from "../domain/ids.js";
import { muting } from "./switches.js";

const ID = subscriberId("tool_handle");

interface Switches {
  master?: boolean;
  source?: boolean;
  name?: boolean;
  tool?: boolean;
  user?: boolean;
}

function ruleOf({ master, source, name, tool, user }: Switches, asked: { core?: boolean; critical?: boolean } = {}) {
  const line = (key: string, value: boolean | undefined) => (value === undefined ? "" : `${key} = ${value}\n`);
  const config = parseConfig(
    `[conversation.notifications]\n${line("enable", master)}
     [conversation.notifications.kinds.tool]\n${line("enable", source)}${line("stopped", name)}
     [conversation.tools.cargo.notifications]\n${line("stopped", tool)}`,
    "tidings.toml",
  );
  return muting(config, {
    event: { type: "tool.stopped", payload: { tool_name: "cargo" } },
    subscriber: { id: ID, core: asked.core ?? false },
    priority: asked.critical ? "critical" : "normal",
    disabled: user === false ? [ID] : [],
  });
}

const RULES = [
  ["master", "conversation.notifications.enable = false (tidings.toml)"],
  ["source", "conversation.notifications.kinds.tool.enable = false (tidings.toml)"],
  ["name", "conversation.notifications.kinds.tool.stopped = false (tidings.toml)"],
  ["tool", "conversation.tools.cargo.notifications.stopped = false (tidings.toml)"],
  ["user", "the user has disabled the subscriber tool_handle"],
] as const;

describe("the switches", () => {
  it("every combination: the first that is off is the rule, and none is on again by a later one", () => {
    for (let bits = 0; bits < 3 ** RULES.length; bits += 1) {
      const states = RULES.map(
        ([key], index) => [key, [undefined, true, false][Math.floor(bits / 3 ** index) % 3]] as const,
      );
      const first = states.find(([, state]) => state === false)?.[0];
      const expected = RULES.find(([key]) => key === first)?.[1];
      const switches = Object.fromEntries(states.filter(([, state]) => state !== undefined)) as Switches;
      expect(ruleOf(switches), JSON.stringify(switches)).toBe(expected);
      expect(ruleOf(switches, { core: true }), "core ones stay on").toBeUndefined();
      expect(ruleOf(switches, { critical: true }), "critical ones stay on").toBeUndefined();
    }
  });

  it("of a tool concern that tool alone, and `handle` is the old name of `tool`", () => {
    const config = parseConfig(
      '[conversation.notifications.kinds]\n"handle.waiting" = false\n[conversation.tools.cargo.notifications]\nstopped = false\n',
      "tidings.toml",
    );
    const asked = (type: string, tool_name: string) =>
      muting(config, {
        event: { type, payload: { tool_name } },
        subscriber: { id: ID, core: false },
        priority: "normal",
        disabled: [],
      });
    expect(asked("tool.stopped", "git")).toBeUndefined();
    expect(asked("tool.stopped", "cargo")).toContain("conversation.tools.cargo");
    // The rule is named as it stands in the file.
    expect(asked("tool.waiting", "git")).toContain("kinds.handle.waiting");
    expect(asked("handle.waiting", "git")).toContain("kinds.handle.waiting");
    expect(asked("mcp.stopped", "cargo")).toBeUndefined();
  });
});
