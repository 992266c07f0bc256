/** The rows of section n. */
import { fine, pairedRatio, range } from "./rows.mjs";
import { median } from "./statistics.mjs";

const COLLECT_MS_MAX = 1;
const COMMITS_MAX = 3;

export function agentRows({ agent, sizes }) {
  if (agent === undefined) return [];
  const { small, large } = sizes.agent;
  const number = (value) => value.toLocaleString("en-US");
  const collect = (name, { entries, said }) => {
    const values = agent[name].map((run) => median(run.ms));
    const text = `(n) a \`collect\` without its flush: a conversation of ${number(said)} entries in a journal of ${number(entries)}`;
    const slow = median(agent[name].map((run) => run.ms[Math.floor(run.ms.length * 0.95)]));
    return [text, fine(median(values)), `${range(values, fine)}; 95% within ${fine(slow)}`];
  };
  const calls = (name, format) => agent.calls.map((run) => run[name]).map(format);
  return [
    collect("few", small),
    collect("many", large),
    [
      "(n) commits of a model call",
      median(agent.calls.map((run) => run.commits)).toFixed(2),
      `of ${agent.calls[0].calls} calls, two a turn`,
    ],
    [
      "(n) CPU of a model call beside the model",
      fine(median(agent.calls.map((run) => run.ms))),
      calls("ms", fine).join(", "),
    ],
  ];
}

/** Calls `add(what, ratio, bar?)` for each ratio. */
export function agentRatios({ agent }, add) {
  if (agent === undefined) return;
  const of = (name) => agent[name].map((run) => median(run.ms));
  add("(n) milliseconds of a `collect` in the large journal", median(of("many")), { most: COLLECT_MS_MAX });
  add("(n) the same, to that in the small one", pairedRatio(of("many"), of("few")));
  add("(n) commits of a model call", median(agent.calls.map((run) => run.commits)), { most: COMMITS_MAX });
}
