/** What a program says of its agent is checked when it is opened: what is wrong is named, and nothing of it is taken. */
import { describe, expect, test } from "vitest";
import { type AgentInput, InvalidInputError, Tidings } from "../../../src/index.js";
import { openAgent, scripted, tool } from "../../support/agent.js";
import { temporaryFolder } from "../../support/folder.js";

const WRONG: readonly [unknown, field: string, reason: RegExp][] = [
  [{ limits: { iterations: Number.NaN } }, "agent.limits.iterations", /number/],
  [{ limits: { iterations: 0 } }, "agent.limits.iterations", /^must be at least 1$/],
  [{ limits: { tokens: Number.POSITIVE_INFINITY } }, "agent.limits.tokens", /number/],
  [{ limits: { time_ms: 3_000_000_000 } }, "agent.limits.time_ms", /^must be at most 2147483647$/],
  [{ limits: { retries: -1 } }, "agent.limits.retries", /^must be at least 0$/],
  [{ limits: { iteration: 5 } }, "agent.limits.iteration", /^is not a known field; did you mean iterations\?$/],
  [{ limits: 5 }, "agent.limits", /object/],
  [{ handles: { live: "x" } }, "agent.handles.live", /number/],
  [{ handles: { kept_char: 1 } }, "agent.handles.kept_char", /did you mean kept_chars\?$/],
  [{ handles: { abort_ms: -1 } }, "agent.handles.abort_ms", /^must be at least 0$/],
  [{ shell: { timelimit: 1 } }, "agent.shell.timelimit", /^is not a known field; known here: .*time_limit_secs/],
  [{ shell: { time_limit_sec: 1 } }, "agent.shell.time_limit_sec", /did you mean time_limit_secs\?$/],
  [{ shell: { processes_max: 0 } }, "agent.shell.processes_max", /^must be at least 1$/],
  [{ shell: { environment: ["A=B"] } }, "agent.shell.environment.0", /names of environment variables/],
  [{ shell: "yes" }, "agent.shell", /object/],
  [{ workspace: { files_max: -5 } }, "agent.workspace.files_max", /^must be at least 1$/],
  [{ workspace: { readonly: true } }, "agent.workspace.readonly", /did you mean read_only\?$/],
  [{ budgets: { thread: { token: 5 } } }, "agent.budgets.thread.token", /did you mean tokens\?$/],
  [{ loops: { window: 5 } }, "agent.loops.window", /did you mean window_ms\?$/],
];

describe("the options of an agent", () => {
  test.each(WRONG)("%j is refused by its name", async (agent, field, reason) => {
    const data = await temporaryFolder();
    const opened = Tidings.open({ data, agent: { provider: "rehearsal", ...(agent as AgentInput) } });
    const error = await opened.then(
      (tidings) => tidings.close(),
      (refused: unknown) => refused,
    );
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error).toMatchObject({ code: "invalid_input", field, reason: expect.stringMatching(reason) });
    // Nothing is held of what was refused.
    await (await Tidings.open({ data, wait_ms: 0 })).close();
  });

  test("what is undefined is as if it was not said", async () => {
    const again = { calls: [{ name: "look", input: {} }] };
    const model = scripted(Array.from({ length: 30 }, () => again));
    const undefinedLimits = { iterations: undefined, tokens: undefined, time_ms: undefined };
    const agent = await openAgent({
      agent: {
        model,
        tools: [tool("look", () => "nothing")],
        limits: undefinedLimits as never,
        handles: { live: undefined, abort_ms: undefined } as never,
        shell: { processes_max: undefined, folder: undefined } as never,
      },
    });
    expect(await agent.converse("go")).toMatchObject({ state: "failed", note: "the turn had its 25 model calls" });
  });
});
