import type { SubscriberInput } from "./subscriber.js";

/**
 * The subscribers that come with Tidings, by the events that agents and their surroundings report. Without routing
 * an event is passive context for the thread's agent.
 */
export const BUILT_IN: readonly SubscriberInput[] = [
  {
    id: "tool_failure",
    types: ["tool.call.failure", "tool.call.timeout"],
    priority: "high",
    severity_filter: "warning",
  },
  { id: "tool_handle", types: ["tool.stopped", "tool.waiting", "tool.failed"] },
  {
    id: "budget_warning",
    types: ["budget.token.warning", "budget.iteration.warning", "budget.timeout.warning"],
    priority: "high",
  },
  {
    id: "budget_exceeded",
    types: ["budget.token.exceeded", "budget.iteration.exceeded", "budget.timeout.exceeded"],
    priority: "high",
    routing: { address: "session", target: "user", handler: "system" },
  },
  { id: "loop_detected", types: ["agent.loop.detected"], priority: "high" },
  { id: "mcp_connection", types: ["mcp.*"] },
  { id: "workspace_change", types: ["workspace.*"] },
  { id: "config_change", types: ["config.*"] },
  { id: "rate_limit", types: ["rate_limit.*"] },
  { id: "subagent", types: ["subagent.*"], routing: { address: "session", target: "agent", handler: "agent" } },
  { id: "cli_event", types: ["cli.*"], routing: { address: "user", target: "user", handler: "system" } },
];
