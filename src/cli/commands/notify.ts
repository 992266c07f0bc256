import { ADDRESSES, HANDLERS, TARGETS } from "../../domain/axes.js";
import { INJECTION_POINTS, PRIORITIES } from "../../domain/priority.js";
import { SEVERITIES } from "../../domain/severity.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import { withPlane } from "../plane.js";
import { stateWord } from "../show.js";

export const notify = defineCommand({
  usage: "CONTENT [options]",
  about: [
    "Three axes decide the channel. --target user: to the inbox, or, with a thread, to the floor of that " +
      "conversation. --target user --handler agent: the agent must tell the user; if it does not in time, the system " +
      "does. --target agent --handler agent: the agent decides. Without any: passive context for the agent.",
  ],
  options: {
    content: { kind: "text", value: "TEXT", summary: "the words, instead of the argument" },
    severity: { kind: "choice", value: "WORD", choices: SEVERITIES, summary: "how bad", preset: "info" },
    priority: { kind: "choice", value: "WORD", choices: PRIORITIES, summary: "how urgent", preset: "by severity" },
    "inject-at": {
      kind: "choice",
      value: "POINT",
      choices: INJECTION_POINTS,
      summary: "when the agent is told",
      preset: "next",
    },
    address: {
      kind: "choice",
      value: "WHERE",
      choices: ADDRESSES,
      summary: "to whom it belongs",
      preset: "session with a thread, else user",
    },
    target: { kind: "choice", value: "WHO", choices: TARGETS, summary: "who is to know", preset: "agent" },
    handler: { kind: "choice", value: "BY", choices: HANDLERS, summary: "who tells them", preset: "system" },
    user: { kind: "text", value: "USER", summary: "whose", preset: "local" },
    thread: { kind: "text", value: "THREAD", summary: "in which conversation" },
    "dedupe-key": { kind: "text", value: "KEY", summary: "the same key within the window merges" },
    "dedupe-window-ms": { kind: "integer", value: "N", min: 0, summary: "how long that window is", preset: "5000" },
    "ttl-ms": { kind: "integer", value: "N", min: 1, summary: "how long it may wait where it is" },
    directive: { kind: "text", value: "TEXT", summary: "an instruction to the agent (with --handler agent)" },
    subject: { kind: "text", value: "SUBJECT", summary: "what it is about, for example a tool handle" },
    "data-json": { kind: "json", value: "JSON", summary: "an object that goes with it" },
    kind: { kind: "text", value: "TYPE", summary: "the type of its event", preset: "direct.notify" },
  },
  examples: [
    'tidings notify "The nightly build is green" --target user',
    'tidings notify "The deploy failed" --target user --handler agent --severity error --ttl-ms 60000',
  ],
  async run({ values, words, settings, output }) {
    const content = values.content !== undefined && words.length === 0 ? values.content : oneWord(words, "CONTENT");
    const answer = await withPlane({ settings, output }, "write", (tidings) =>
      tidings.notify({
        content,
        severity: values.severity,
        priority: values.priority,
        inject_at: values["inject-at"],
        address: values.address,
        target: values.target,
        handler: values.handler,
        user_id: values.user,
        thread_id: values.thread,
        dedupe_key: values["dedupe-key"],
        dedupe_window_ms: values["dedupe-window-ms"],
        ttl_ms: values["ttl-ms"],
        directive: values.directive,
        subject: values.subject,
        data: values["data-json"],
        kind: values.kind,
      }),
    );
    if (output.json) await output.value(answer);
    else {
      const { id, state, channel } = answer;
      await output.line(`${stateWord(state, output)} on the channel ${channel}: ${id}`);
    }
    return EXIT.ok;
  },
});
