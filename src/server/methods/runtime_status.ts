import { z } from "zod";
import { defineMethod } from "../method.js";

export const runtimeStatus = defineMethod({
  name: "runtime/status",
  scope: "read",
  summary: "What runs, since when, and whose token it is; admin's token is told more.",
  params: z.strictObject({}),
  async run(_params, { caller, runtime }) {
    const { version, started_at, tidings } = runtime;
    const { user_id } = caller;
    const { journal_id, agent } = tidings;
    const status = { status: "running", version, started_at, journal_id, user_id, agent };
    if (!caller.admin) return status;
    const { last_seq, floor_seq, bytes } = await tidings.facts();
    return { ...status, pid: process.pid, connections: runtime.connections(), last_seq, floor_seq, bytes };
  },
});
