import { z } from "zod";
import { hooksWithoutSecret } from "../ingest/secrets.js";
import { defineMethod } from "../method.js";
import { statusResult } from "../results/host.js";

export const runtimeStatus = defineMethod({
  name: "runtime/status",
  scope: "read",
  summary: "What runs, since when, and whose token it is; admin's token is told more.",
  params: z.strictObject({}),
  result: statusResult,
  async run(_params, { caller, runtime }) {
    const { version, started_at, tidings, rest, events } = runtime;
    const { user_id } = caller;
    const { journal_id, agent } = tidings;
    const events_processed = caller.admin ? events.all : events.of(user_id);
    const tools = agent === null ? [] : tidings.tools.list().map(({ name }) => name);
    const about = { version, started_at, journal_id, user_id, agent, tools, props: tidings.props };
    const status = { status: "running" as const, ...rest.view, events_processed, ...about };
    if (!caller.admin) return status;
    const { last_seq, floor_seq, bytes } = await tidings.facts();
    const hooks_without_secret = hooksWithoutSecret(tidings.hooks, process.env);
    const host = { pid: process.pid, connections: runtime.connections(), hooks_without_secret };
    return { ...status, ...host, last_seq, floor_seq, bytes };
  },
});
