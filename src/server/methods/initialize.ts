import { z } from "zod";
import { defineMethod } from "../method.js";

export const initialize = defineMethod({
  name: "initialize",
  scope: "read",
  summary: "What runs here; over a WebSocket, also what the client is told of conversations from now on.",
  params: z.strictObject({ observe: z.boolean().default(false), conversation: z.boolean().default(true) }),
  async run({ observe, conversation }, { caller, runtime, session }) {
    const { tidings, version } = runtime;
    await session?.initialize({ observe, conversation });
    // Looked up after that: what comes later than this is told.
    const seq = await tidings.lastSeq();
    const { journal_id, agent } = tidings;
    return { version, journal_id, seq, user_id: caller.user_id, agent };
  },
});
