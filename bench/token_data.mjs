/** Ten events for each of the built-in subscribers that batch, as their producers would send them. */

function of(type, source, severity) {
  return (payload) => ({ type, source, severity, payload });
}

const failure = of("tool.call.failure", "executor", "error");
const timeout = of("tool.call.timeout", "executor", "error");
const warning = (kind) => of(`budget.${kind}.warning`, `${kind}_monitor`, "warning");
const loop = of("agent.loop.detected", "pattern_analyzer", "warning");
const workspace = (change) => of(`workspace.file.${change}`, "watcher", "info");
const mcp = (change) => of(`mcp.${change}`, "mcp", "warning");
const subagent = (end) => of(`subagent.${end}`, "scheduler", "info");
const background = (state) => of(`tool.${state}`, "executor", "info");
const config = (what) => of(`config.${what}`, "tidings", "info");
const limited = (what) => of(`rate_limit.${what}`, "http", "warning");

const FAILURES = [
  failure({
    tool_name: "vault_search",
    error_type: "timeout",
    error_message: "Operation timed out after 5000ms",
    retry_count: 2,
    call_id: "tc_abc123",
  }),
  failure({ tool_name: "coderag_search", error_type: "index_missing", error_message: "index not found" }),
  failure({ tool_name: "vault_write", error_type: "permission_denied", error_message: "vault is read only" }),
  failure({ tool_name: "web_fetch", error_type: "http_503", error_message: "503 Service Unavailable" }),
  timeout({ tool_name: "run_tests", error_type: "timeout", error_message: "Operation timed out after 60000ms" }),
  failure({ tool_name: "git_push", error_type: "rejected", error_message: "non-fast-forward, fetch first" }),
  failure({ tool_name: "read_file", error_type: "not_found", error_message: "ENOENT: src/domain/lease.ts" }),
  failure({ tool_name: "sql_query", error_message: 'relation "orders" does not exist' }),
  failure({ tool_name: "browser_click", error_type: "no_such_element", error_message: "#submit is not visible" }),
  failure({ tool_name: "send_mail", error_type: "quota_exceeded", error_message: "daily limit of 500 reached" }),
];

const WARNINGS = [
  warning("token")({ budget_type: "token", current: 42_500, limit: 50_000, percentage: 85, remaining: 7_500 }),
  warning("iteration")({ budget_type: "iteration", current: 20, limit: 25, percentage: 80, remaining: 5 }),
  warning("timeout")({ budget_type: "timeout", current: 540, limit: 600, percentage: 90, remaining: 60 }),
  warning("token")({ budget_type: "token", current: 44_100, limit: 50_000, percentage: 88, remaining: 5_900 }),
  warning("iteration")({ budget_type: "iteration", current: 21, limit: 25, percentage: 84, remaining: 4 }),
  warning("token")({ budget_type: "token", current: 45_800, limit: 50_000, percentage: 92, remaining: 4_200 }),
  warning("timeout")({ budget_type: "timeout", current: 560, limit: 600, percentage: 93, remaining: 40 }),
  warning("iteration")({ budget_type: "iteration", current: 23, limit: 25, percentage: 92, remaining: 2 }),
  warning("token")({ budget_type: "token", current: 48_900, limit: 50_000, percentage: 98, remaining: 1_100 }),
  warning("timeout")({ budget_type: "timeout", current: 588, limit: 600, percentage: 98, remaining: 12 }),
];

const CHANGES = [
  workspace("modified")({ path: "src/store/sqlite/accept.ts" }),
  workspace("modified")({ path: "src/store/sqlite/flush.ts" }),
  workspace("created")({ path: "src/store/sqlite/migrations/0005_batches.sql" }),
  workspace("modified")({ path: "test/system/serve.test.ts" }),
  workspace("deleted")({ path: "src/intake/builtin.ts" }),
  workspace("modified")({ path: "docs/ARCHITECTURE.md" }),
  workspace("created")({ path: "subscribers/templates/turn_digest.toon.j2" }),
  workspace("modified")({ path: "package.json" }),
  workspace("modified")({ path: "package-lock.json" }),
  workspace("modified")({ path: ".github/workflows/ci.yml" }),
];

const SERVERS = [
  mcp("disconnected")({ server: "github", reason: "the process has ended with exit code 1" }),
  mcp("reconnected")({ server: "github" }),
  mcp("tools_changed")({ server: "github", tool: "create_pull_request" }),
  mcp("unresponsive")({ server: "postgres", reason: "no answer to ping for 30 s" }),
  mcp("disconnected")({ server: "postgres", reason: "ECONNREFUSED 127.0.0.1:5432" }),
  mcp("disconnected")({ server: "browser", reason: "closed by the user" }),
  mcp("reconnected")({ server: "postgres" }),
  mcp("tools_changed")({ server: "slack", tool: "post_message" }),
  mcp("unresponsive")({ server: "filesystem", reason: "no answer to ping for 30 s" }),
  mcp("reconnected")({ server: "browser" }),
];

const SUBAGENTS = [
  subagent("complete")({ name: "researcher", summary: "found 12 papers, 3 of them relevant" }),
  subagent("failed")({ name: "tester", error_message: "2 of 418 tests fail: store.test.ts, flush.test.ts" }),
  subagent("complete")({ name: "reviewer", summary: "no objections; two remarks about names" }),
  subagent("complete")({ name: "translator", summary: "README.de.md is up to date" }),
  subagent("failed")({ name: "deployer", error_message: "staging is locked by another release" }),
  subagent("complete")({ name: "indexer", summary: "1,204 files indexed in 48 s" }),
  subagent("complete")({ name: "linter", summary: "14 warnings fixed, none left" }),
  subagent("failed")({ name: "scraper", error_message: "robots.txt forbids /search" }),
  subagent("complete")({ name: "summarizer", summary: "the thread has 3 open questions" }),
  subagent("complete")({ name: "planner", summary: "the migration needs 4 steps" }),
];

const BACKGROUND = [
  background("stopped")({ tool_name: "cargo_check", handle: "h_3", exit_code: 0 }),
  background("failed")({ tool_name: "cargo_test", handle: "h_4", error_message: "error[E0502]: cannot borrow" }),
  background("waiting")({ tool_name: "git_push", handle: "h_5", question: "Username for https://github.com?" }),
  background("stopped")({ tool_name: "npm_install", handle: "h_6", exit_code: 0 }),
  background("stopped")({ tool_name: "docker_build", handle: "h_7", message: "image web:1.4.2" }),
  background("failed")({
    tool_name: "terraform_plan",
    handle: "h_8",
    error_message: "no credentials for provider aws",
  }),
  background("waiting")({ tool_name: "apt_upgrade", handle: "h_9", question: "Restart services? [Y/n]" }),
  background("stopped")({ tool_name: "pytest", handle: "h_10", message: "212 passed in 14.20s" }),
  background("stopped")({ tool_name: "webpack", handle: "h_11", message: "compiled with 2 warnings" }),
  background("failed")({ tool_name: "rsync", handle: "h_12", error_message: "connection unexpectedly closed" }),
];

const SETTINGS = [
  config("reloaded")({ file: "tidings.toml", changed: ["conversation.notifications.enabled"] }),
  config("changed")({ key: "model.temperature", message: "0.2 instead of 0.7" }),
  config("changed")({ key: "tools.shell.allowed", message: "git, npm and node only" }),
  config("reloaded")({ file: "mcp.json", changed: ["servers.github", "servers.slack"] }),
  config("changed")({ key: "workspace.root", message: "/home/me/work/tidings" }),
  config("changed")({ key: "budget.tokens", message: "50000" }),
  config("reloaded")({ file: "AGENTS.md", message: "12 lines changed" }),
  config("changed")({ key: "locale", message: "de-AT" }),
  config("reloaded")({ file: "subscribers/build.toml", changed: ["output.priority"] }),
  config("changed")({ key: "sandbox.network", message: "off" }),
];

const LIMITED = [
  limited("warning")({ provider: "anthropic", remaining: 12, limit: 1_000 }),
  limited("exceeded")({ provider: "openai", message: "429, retry after 20 s", retry_after: 20 }),
  limited("warning")({ provider: "github", remaining: 40, limit: 5_000 }),
  limited("warning")({ provider: "anthropic", remaining: 4, limit: 1_000 }),
  limited("exceeded")({ provider: "github", message: "secondary rate limit" }),
  limited("warning")({ provider: "npm", remaining: 90, limit: 1_000 }),
  limited("warning")({ provider: "openai", remaining: 2, limit: 60 }),
  limited("exceeded")({ provider: "anthropic", message: "429, retry after 8 s", retry_after: 8 }),
  limited("warning")({ provider: "google", remaining: 15, limit: 300 }),
  limited("warning")({ provider: "slack", remaining: 1, limit: 50 }),
];

const LOOPS = [
  loop({ pattern: "vault_search → parse → vault_search", repetitions: 3, window_seconds: 60 }),
  loop({ pattern: "read_file → edit_file → read_file", repetitions: 5, window_seconds: 120 }),
  loop({ pattern: "run_tests", repetitions: 4, window_seconds: 90 }),
  loop({ pattern: "web_fetch → web_search → web_fetch", repetitions: 3, window_seconds: 45 }),
  loop({ pattern: "git_status", repetitions: 6, window_seconds: 30 }),
  loop({ pattern: "list_files → list_files", repetitions: 7, window_seconds: 60 }),
  loop({ pattern: "sql_query → explain → sql_query", repetitions: 3, window_seconds: 60 }),
  loop({ pattern: "ask_user", repetitions: 3, window_seconds: 300 }),
  loop({ pattern: "npm_install → run_tests", repetitions: 4, window_seconds: 240 }),
  loop({ pattern: "browser_click → screenshot", repetitions: 9, window_seconds: 60 }),
];

/** By the id of the subscriber that tells of them. */
export const TOKEN_DATA = {
  tool_failure: FAILURES,
  turn_digest: [
    FAILURES[0],
    WARNINGS[0],
    LOOPS[0],
    FAILURES[1],
    BACKGROUND[0],
    SERVERS[0],
    SUBAGENTS[1],
    CHANGES[0],
    LIMITED[1],
    FAILURES[4],
  ],
  workspace_change: CHANGES,
  budget_warning: WARNINGS,
  mcp_connection: SERVERS,
  subagent: SUBAGENTS,
  tool_handle: BACKGROUND,
  config_change: SETTINGS,
  rate_limit: LIMITED,
  loop_detected: LOOPS,
};
