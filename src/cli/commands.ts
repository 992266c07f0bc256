import type { Listed } from "./command.js";

/**
 * In the order in which the help shows them. Names and summaries stand here, so that whoever starts the program waits
 * for the one command that is used, and not for the modules of all of them.
 */
export const COMMANDS: readonly Listed[] = [
  {
    name: "serve",
    summary: "run the server: HTTP in, WebSocket out",
    load: async () => (await import("./commands/serve.js")).serve,
  },
  {
    name: "chat",
    summary: "speak with the hosted agent",
    load: async () => (await import("./commands/chat.js")).chat,
  },
  {
    name: "tail",
    summary: "follow what a running server tells, as it happens",
    load: async () => (await import("./commands/tail.js")).tail,
  },
  {
    name: "threads",
    summary: "list a user's conversations",
    load: async () => (await import("./commands/threads.js")).threads,
  },
  {
    name: "turn",
    summary: "say something in a conversation, and follow the turn to its end",
    load: async () => (await import("./commands/turn.js")).turn,
  },
  {
    name: "rpc",
    summary: "call any method of the running server",
    load: async () => (await import("./commands/rpc.js")).rpc,
  },
  {
    name: "tour",
    summary: "show Tidings at work, in a few seconds, on a temporary folder",
    load: async () => (await import("./commands/tour.js")).tour,
  },
  {
    name: "emit",
    summary: "take an event in, or many from a file or a pipe",
    load: async () => (await import("./commands/emit.js")).emit,
  },
  {
    name: "notify",
    summary: "tell somebody something in your own words",
    load: async () => (await import("./commands/notify.js")).notify,
  },
  {
    name: "inbox",
    summary: "show what a user has not read yet",
    load: async () => (await import("./commands/inbox.js")).inbox,
  },
  {
    name: "ack",
    summary: "acknowledge what the system showed to its user",
    load: async () => (await import("./commands/ack.js")).ack,
  },
  {
    name: "ledger",
    summary: "list notifications and where they stand, of all users",
    load: async () => (await import("./commands/ledger.js")).ledger,
  },
  {
    name: "explain",
    summary: "tell the whole way of an event or a notification",
    load: async () => (await import("./commands/explain.js")).explain,
  },
  {
    name: "dead list",
    summary: "list the dead letters: shown, and never acknowledged",
    load: async () => (await import("./commands/dead_list.js")).deadList,
  },
  {
    name: "dead redrive",
    summary: "send dead letters again, once each, as new notifications",
    load: async () => (await import("./commands/dead_redrive.js")).deadRedrive,
  },
  {
    name: "subscribers list",
    summary: "list the subscribers and their states",
    load: async () => (await import("./commands/subscribers_list.js")).subscribersList,
  },
  {
    name: "subscribers disable",
    summary: "switch a subscriber off for a user",
    load: async () => (await import("./commands/subscribers_disable.js")).subscribersDisable,
  },
  {
    name: "subscribers enable",
    summary: "switch a subscriber on again for a user",
    load: async () => (await import("./commands/subscribers_enable.js")).subscribersEnable,
  },
  {
    name: "subscribers check",
    summary: "check a folder of subscriber files",
    load: async () => (await import("./commands/subscribers_check.js")).subscribersCheck,
  },
  {
    name: "subscribers test",
    summary: "show what a subscriber file would make of an event",
    load: async () => (await import("./commands/subscribers_test.js")).subscribersTest,
  },
  {
    name: "mcp list",
    summary: "list the MCP servers, how they are, and which of their tools are held",
    load: async () => (await import("./commands/mcp_list.js")).mcpList,
  },
  {
    name: "mcp approve",
    summary: "let a tool be used that is held because it has changed",
    load: async () => (await import("./commands/mcp_approve.js")).mcpApprove,
  },
  {
    name: "token create",
    summary: "make a token for a program or a browser",
    load: async () => (await import("./commands/token_create.js")).tokenCreate,
  },
  {
    name: "token list",
    summary: "list the tokens, without their texts",
    load: async () => (await import("./commands/token_list.js")).tokenList,
  },
  {
    name: "token revoke",
    summary: "end a token: from now on it opens nothing",
    load: async () => (await import("./commands/token_revoke.js")).tokenRevoke,
  },
  {
    name: "audit",
    summary: "check every guarantee over the whole data folder",
    load: async () => (await import("./commands/audit.js")).audit,
  },
  {
    name: "doctor",
    summary: "check the installation and the data folder",
    load: async () => (await import("./commands/doctor.js")).doctor,
  },
  {
    name: "prune",
    summary: "remove settled history older than some time",
    load: async () => (await import("./commands/prune.js")).prune,
  },
  {
    name: "backup",
    summary: "copy the database to a file, while it is in use",
    load: async () => (await import("./commands/backup.js")).backup,
  },
  {
    name: "restore",
    summary: "put a backup in the place of the database",
    load: async () => (await import("./commands/restore.js")).restore,
  },
];
