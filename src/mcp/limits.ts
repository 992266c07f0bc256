/** A bound on everything that an MCP server says. */
export const MCP_LIMITS = {
  /** That are offered of one server; what it lists beyond is not. */
  tools: 128,
  /** Of one list. */
  pages: 64,
  descriptionChars: 8_192,
  schemaChars: 32_768,
  /** Tools of one server that were ever seen: one that keeps inventing names is not remembered for ever. */
  toolsKnown: 1_000,
  /** Of what is refused, the first are named. */
  refusedShown: 20,
  /** One message, as it is sent. */
  messageChars: 10_485_760,
  /** What waits to be read by a server that does not read. */
  backlogBytes: 8_388_608,
  /** Of what a server prints beside its messages, the last. */
  stderrChars: 2_000,
  /** Parts of one result. */
  contentParts: 1_000,
  /** Events of one server in a minute; what is more is counted. */
  logsPerMinute: 10,
  updatesPerMinute: 30,
  /** Times that a list which keeps changing is read again. */
  relistsPerMinute: 10,
  /** Threads that are told of one server: those that have used it last. */
  threadsTold: 64,
  /** Of a reason, a log message, an address. */
  wordsChars: 1_000,
  /** Tools that are held at once, of which the operator is told one by one. */
  heldTold: 10,
  /** Names of tools in one event. */
  namesTold: 40,
  /** Conversations that have a process of their own of one server at once. */
  threadServers: 16,
} as const;

/** Times that the operator does not set. */
export const MCP_TIMES = {
  /** Before the first attempt to connect again; twice as long before each further one. */
  reconnectBaseMs: 200,
  /** What was up so long has come to stay: the next attempt to connect again is a first one. */
  stableMs: 60_000,
  /** So many returns within so long are told at once; a further one when it has lasted `stableMs`. */
  returnsTold: 3,
  returnsWithinMs: 600_000,
  /** A list that has changed is read again so long after the one before, at the earliest. */
  relistMs: 1_000,
  /** How long a server may take to end by itself when its input is closed, and then when it is told to. */
  closeMs: 500,
  killAfterMs: 2_000,
  /** Threads that used a server so long ago are not told of it any more. */
  usedWithinMs: 86_400_000,
  /** After so long without a call, the process that one conversation has of a server is let go. */
  threadIdleMs: 60_000,
} as const;
