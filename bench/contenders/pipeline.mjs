/**
 * Section k: what an event costs from the border to the batch, in parts. All of them get the same events: failures of tools
 * that all differ, of one thread, so that every tenth event fills a batch, which is closed and worded. How much may wait for
 * an agent is set out of reach: what becomes of a backlog is section l.
 */
import { parseEvent } from "../../dist/domain/event.js";
import { DEFAULT_POLICY } from "../../dist/domain/policy.js";
import { HOST } from "../../dist/domain/principal.js";
import { ALL_GRANTS } from "../../dist/domain/token.js";
import { Tidings } from "../../dist/index.js";
import { Catalogue } from "../../dist/intake/catalogue.js";
import { Intake } from "../../dist/intake/intake.js";
import { systemClock } from "../../dist/platform/clock.js";
import { openSqliteStore } from "../../dist/store/sqlite/store.js";
import { callers, failureOf, work } from "../workload.mjs";

const ROWS = 10;
export const OUT_OF_REACH = { pendingPerThread: 100_000, pendingPerSource: 100_000 };

/** Only the entry of the journal: an event that nobody takes. */
export function journalWrite(options) {
  return throughStore(options, (_intake, event) => ({ event, drafts: [] }));
}

/** The entry, and all that becomes of the event: matched, its key looked up, a row of a batch, worded with nine others. */
export function pipelineWrite(options) {
  return throughStore(options, (intake, event) => intake.forEvent(event, ALL_GRANTS));
}

async function throughStore({ folder, warmup, events }, acceptanceOf) {
  const catalogue = await openCatalogue();
  const intake = new Intake(catalogue);
  const store = await openSqliteStore({
    folder,
    editor: catalogue,
    policy: { ...DEFAULT_POLICY, ...OUT_OF_REACH },
    clock: systemClock,
    mode: "write",
    waitMs: 0,
  });
  try {
    const parsed = Array.from({ length: warmup + events }, (_, index) => parseEvent(failureOf(index)));
    const one = (index) => store.accept(HOST, acceptanceOf(intake, parsed[index]));
    await callers(warmup, one);
    return await work(events, () => callers(events, (index) => one(warmup + index)));
  } finally {
    await store.close();
    await catalogue.close();
  }
}

/** Who matches, and the key. */
export async function matchAlone({ warmup, events }) {
  const catalogue = await openCatalogue();
  const intake = new Intake(catalogue);
  const parsed = Array.from({ length: warmup + events }, (_, index) => parseEvent(failureOf(index)));
  let drafts = 0;
  const match = (from, to) => {
    for (let index = from; index < to; index += 1) drafts += intake.forEvent(parsed[index], ALL_GRANTS).drafts.length;
  };
  match(0, warmup);
  const measured = await work(events, () => match(warmup, warmup + events));
  await catalogue.close();
  if (drafts !== warmup + events) throw new Error(`${warmup + events} events made ${drafts} drafts`);
  return measured;
}

/** The words of batches of ten: a tenth of that for each event. */
export async function renderAlone({ warmup, events }) {
  const catalogue = await openCatalogue();
  const rows = Array.from({ length: warmup + events }, (_, index) => {
    const timestamp = new Date(index).toISOString();
    return { event: { id: `e${index}`, ...parseEvent(failureOf(index)), timestamp }, count: 1, since: timestamp };
  });
  let degraded = 0;
  const render = (from, to) => {
    for (let index = from; index < to; index += ROWS) {
      const words = catalogue.words("tool_failure", rows.slice(index, index + ROWS), index);
      if (words.degraded !== null) degraded += 1;
    }
  };
  render(0, warmup);
  const measured = await work(events, () => render(warmup, warmup + events));
  await catalogue.close();
  if (degraded > 0) throw new Error(`${degraded} batches were not in the words of their template`);
  return measured;
}

/** The whole: `emit`, parsed and answered, 64 callers. */
export async function pipelineEmit({ folder, warmup, events }) {
  const tidings = await Tidings.open({ data: folder, policy: OUT_OF_REACH });
  try {
    const emit = (index) => tidings.emit(failureOf(index));
    await callers(warmup, emit);
    return await work(events, () => callers(events, (index) => emit(warmup + index)));
  } finally {
    await tidings.close();
  }
}

const SLICE = 64;

/** The same by `emitMany`, 64 at a time. */
export async function pipelineEmitMany({ folder, warmup, events }) {
  const tidings = await Tidings.open({ data: folder, policy: OUT_OF_REACH });
  try {
    const emit = async (from, to) => {
      for (let start = from; start < to; start += SLICE) {
        const slice = Array.from({ length: Math.min(SLICE, to - start) }, (_, index) => failureOf(start + index));
        for (const outcome of await tidings.emitMany(slice)) if ("error" in outcome) throw outcome.error;
      }
    };
    await emit(0, warmup);
    return await work(events, () => emit(warmup, warmup + events));
  } finally {
    await tidings.close();
  }
}

function openCatalogue() {
  return Catalogue.open({ subscribers: [], folder: null, config_file: null, watch: false });
}
