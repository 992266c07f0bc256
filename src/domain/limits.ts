/** A bound on everything that comes in. Pinned by tests; part of the documented contract. */
export const LIMITS = {
  idChars: 200,
  sourceChars: 200,
  subjectChars: 500,
  dedupeKeyChars: 500,
  contentChars: 16_384,
  directiveChars: 4_096,
  payloadBytes: 65_536,
  payloadDepth: 32,
  payloadKeys: 1_000,
  typeSegmentsMin: 2,
  typeSegmentsMax: 5,
  typeChars: 200,
  dedupeWindowMs: 60_000,
  ttlMsMax: 365 * 24 * 60 * 60 * 1000,
  leaseMsMax: 60 * 60 * 1000,
  /** Of what the policy lets wait for agents. */
  pendingMax: 100_000,
  listLimit: 1_000,
  claimLimit: 100,
  /** Of the block that tells an agent, estimated. */
  blockTokens: 100_000,
  /** How long a collect waits for something to tell. */
  waitMsMax: 60_000,
  emitManyEvents: 100_000,
  /** A user's messages that wait in one conversation: for a turn, or for the running one to take them up. */
  messagesWaiting: 100,
  /** That one user has switched off. */
  disabledSubscribers: 1_000,
  /** `event_ids` of a notification lists the first and the latest up to this many; `explain` tells all. */
  eventIdsListed: 100,
  /** The newest matches of a subscriber that are kept for a user. */
  matchesKept: 10,
  /** Rows that one list call visits at most; a filter that matches little answers a short page and a cursor. */
  listVisits: 20_000,
} as const;
