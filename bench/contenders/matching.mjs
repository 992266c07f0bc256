/** Section j: what it costs to find out who takes an event, among few and among many subscribers. */
import { parseEvent } from "../../dist/domain/event.js";
import { ALL_GRANTS } from "../../dist/domain/token.js";
import { Catalogue } from "../../dist/intake/catalogue.js";
import { Intake } from "../../dist/intake/intake.js";
import { failureOf } from "../workload.mjs";

/** By the exact type, by a prefix, and by a prefix with its source; with the built-in `tool_failure` four. */
const MATCHING = [
  { id: "exact", types: ["tool.call.failure"], dedupe_window_ms: 0 },
  { id: "prefix", types: ["tool.*"], dedupe_window_ms: 0 },
  { id: "sourced", types: ["tool.call.*"], sources: ["executor"], dedupe_window_ms: 0 },
];
const DRAFTS = MATCHING.length + 1;
/** Distinct events in turn, so that no engine learns the answer. */
const EVENTS = 1_000;

/** None of them takes the event: of other types, of a longer one, under another prefix, or from another source. */
function otherOf(index) {
  const id = `other-${index}`;
  const kinds = [
    { id, types: [`tool.call.other_${index}`] },
    { id, types: [`tool.call.failure.deep_${index}`] },
    { id, types: [`area_${index}.*`, `tool.area_${index}.*`] },
    { id, types: ["tool.call.failure", "tool.*"], sources: [`executor-${index}`] },
  ];
  return kinds[index % kinds.length];
}

/** Milliseconds of CPU for each event, with `few` and with `many` subscribers beside the built-in ones, in turn. */
export async function matching({ few, many, rounds, calls }) {
  const sizes = { few, many };
  const events = Array.from({ length: EVENTS }, (_, index) => parseEvent(failureOf(index)));
  const intakes = {};
  const catalogues = [];
  for (const [name, size] of Object.entries(sizes)) {
    const others = Array.from({ length: size - MATCHING.length }, (_, index) => otherOf(index));
    const subscribers = [...others.slice(0, others.length / 2), ...MATCHING, ...others.slice(others.length / 2)];
    const catalogue = await Catalogue.open({ subscribers, folder: null, config_file: null, watch: false });
    catalogues.push(catalogue);
    intakes[name] = new Intake(catalogue);
  }
  const sums = { few: 0, many: 0 };
  for (let round = 0; round <= rounds; round += 1)
    for (const name of round % 2 === 0 ? ["few", "many"] : ["many", "few"]) {
      const ms = cpuMsOf(intakes[name], events, calls);
      // The first round is a warm-up.
      if (round > 0) sums[name] += ms;
    }
  await Promise.all(catalogues.map((catalogue) => catalogue.close()));
  return { few: sums.few / (rounds * calls), many: sums.many / (rounds * calls) };
}

function cpuMsOf(intake, events, calls) {
  globalThis.gc();
  let drafts = 0;
  const before = process.cpuUsage();
  for (let index = 0; index < calls; index += 1)
    drafts += intake.forEvent(events[index % EVENTS], ALL_GRANTS).drafts.length;
  const { user, system } = process.cpuUsage(before);
  if (drafts !== calls * DRAFTS) throw new Error(`${calls} events matched ${drafts} times, not ${calls * DRAFTS}`);
  return (user + system) / 1_000;
}
