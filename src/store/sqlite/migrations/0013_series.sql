-- What has happened over time: the sums of what the entries of the journal say, by the length of a step, by user ('' for all of them) and
-- by the step's begin, both in milliseconds. Added up after the fact, as far as `series_seq` in `meta` says, and kept for a while.
CREATE TABLE series (
  step_ms INTEGER NOT NULL,
  user_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  events INTEGER NOT NULL,
  notifications INTEGER NOT NULL,
  merged INTEGER NOT NULL,
  escalated INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  suppressed INTEGER NOT NULL,
  wakes INTEGER NOT NULL,
  blocks_injected INTEGER NOT NULL,
  tokens_injected INTEGER NOT NULL,
  delivered_inbox INTEGER NOT NULL,
  delivered_floor INTEGER NOT NULL,
  delivered_agent INTEGER NOT NULL,
  delivered_context INTEGER NOT NULL,
  PRIMARY KEY (step_ms, user_id, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX series_at ON series (step_ms, at);

-- The entries of the newest events that a subscriber took for a user, a few each; kept by whoever adds up the series.
CREATE TABLE subscriber_matches (
  user_id TEXT NOT NULL,
  subscriber_id TEXT NOT NULL,
  -- JSON: their numbers, newest first.
  seqs TEXT NOT NULL,
  PRIMARY KEY (user_id, subscriber_id)
) STRICT, WITHOUT ROWID;
