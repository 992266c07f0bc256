import { defineMethod } from "../method.js";
import { initializeResult } from "../results/host.js";
import { viewOf, viewSchema } from "../view.js";

export const initialize = defineMethod({
  name: "initialize",
  scope: "read",
  summary: "What runs here; over a stream, also what the client is told from now on.",
  params: viewSchema,
  result: initializeResult,
  async run(view, { caller, runtime, session }) {
    const { tidings, version } = runtime;
    await session?.initialize(viewOf(view));
    // Looked up after that: what comes later than this is told.
    const seq = await tidings.lastSeq();
    const { journal_id, agent } = tidings;
    return { version, journal_id, seq, user_id: caller.user_id, agent };
  },
});
