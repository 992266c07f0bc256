-- The journal is the truth. Every other table is a projection of it that changes in the same transaction, except
-- leases.expires_at (renewals are not journaled) and blocks (hints for reading).

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per operation. `seq` is assigned by the writer, `at` never decreases. The body links each change to the
-- previous entry about the same notification, so that a story is read without an index by notification. An event's id
-- carries its seq, and a notification's id its number: neither needs an index of ids.
CREATE TABLE journal (
  seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  user_id TEXT NOT NULL,
  thread_id TEXT,
  body TEXT NOT NULL
) STRICT;

-- The producer's ids, for idempotency; forgotten with the history they belong to.
CREATE TABLE producer_ids (
  user_id TEXT NOT NULL,
  source TEXT NOT NULL,
  producer_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (user_id, source, producer_id)
) STRICT, WITHOUT ROWID;

-- The cold half: what is delivered. Written once; only a merge that changes the words writes it again.
CREATE TABLE notifications (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  thread_id TEXT,
  subscriber_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  source TEXT NOT NULL,
  subject TEXT,
  severity TEXT NOT NULL,
  inject_at TEXT NOT NULL,
  content TEXT NOT NULL,
  data TEXT,
  directive TEXT,
  axes TEXT NOT NULL,
  dedupe_key TEXT,
  dedupe_until INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  redrive_of TEXT,
  linked_to TEXT
) STRICT;

-- The hot half: state and ownership. Small rows, and indexes only over what is live. The checks use instr(), since an
-- IN list costs SQLite a temporary table for every row (measured: 4 of 9 microseconds an insert).
CREATE TABLE deliveries (
  number INTEGER PRIMARY KEY REFERENCES notifications (number),
  user_id TEXT NOT NULL,
  thread_id TEXT,
  state TEXT NOT NULL CHECK (instr('|PENDING|DISPATCHED|LOCKED|DELIVERED|ESCALATED|FAILED|SUPPRESSED|', '|' || state || '|')),
  channel TEXT NOT NULL CHECK (instr('|inbox|floor|agent|context|', '|' || channel || '|')),
  effective TEXT NOT NULL,
  priority TEXT NOT NULL,
  revision INTEGER NOT NULL,
  count INTEGER NOT NULL,
  lease_epoch INTEGER NOT NULL,
  lease_id TEXT,
  owner TEXT,
  deadline INTEGER NOT NULL,
  not_before INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  action TEXT,
  read_at INTEGER,
  reason TEXT,
  -- The name of what it is about, without its generation.
  subject TEXT,
  -- 1 while not terminal.
  live INTEGER NOT NULL,
  -- 1 once delivered to the user and neither clicked nor dismissed.
  unread INTEGER NOT NULL,
  -- The deadline while the watchdog must look at it; null while a lease says so instead, and when settled.
  due_at INTEGER,
  -- The newest journal entry about it.
  last_seq INTEGER NOT NULL
) STRICT;

CREATE INDEX deliveries_live ON deliveries (user_id, channel, number) WHERE live = 1;
CREATE INDEX deliveries_thread ON deliveries (thread_id, number) WHERE live = 1 AND thread_id IS NOT NULL;
-- What waits for an agent, by whom it waits for (its thread, or '' for any of the user's) and how urgent it is. Only
-- agent and context items rest in PENDING, so the others do not pay for these.
CREATE INDEX deliveries_pending ON deliveries (
  user_id, (CASE WHEN effective < 'user/' THEN thread_id ELSE '' END), priority, number
) WHERE state = 'PENDING';
CREATE INDEX deliveries_about ON deliveries (thread_id, subject, number) WHERE state = 'PENDING' AND subject IS NOT NULL;
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE live = 1;
CREATE INDEX deliveries_lease ON deliveries (lease_id) WHERE lease_id IS NOT NULL;
CREATE INDEX deliveries_unread ON deliveries (user_id, number) WHERE unread = 1;
CREATE INDEX deliveries_dead ON deliveries (number) WHERE state = 'FAILED';
CREATE INDEX deliveries_dead_of_user ON deliveries (user_id, number) WHERE state = 'FAILED';

-- The last line of defence behind the guards in the statements: the moves of domain/transitions.ts and no others,
-- and an epoch that only grows. A test compares this list with the table.
CREATE TRIGGER deliveries_guard BEFORE UPDATE ON deliveries
WHEN NEW.lease_epoch < OLD.lease_epoch OR (NEW.state <> OLD.state AND instr(
  '|PENDING>DISPATCHED|PENDING>LOCKED|PENDING>DELIVERED|PENDING>ESCALATED|PENDING>FAILED|PENDING>SUPPRESSED' ||
  '|DISPATCHED>DELIVERED|DISPATCHED>FAILED' ||
  '|LOCKED>DELIVERED|LOCKED>PENDING|LOCKED>ESCALATED' ||
  '|ESCALATED>DELIVERED|ESCALATED>FAILED|',
  '|' || OLD.state || '>' || NEW.state || '|'
) = 0)
BEGIN
  SELECT RAISE(ABORT, 'illegal change of a delivery');
END;

-- The events behind a notification after its first.
CREATE TABLE merged_events (
  number INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  PRIMARY KEY (number, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE redrives (
  number INTEGER PRIMARY KEY,
  redriven_as TEXT NOT NULL
) STRICT;

CREATE TABLE leases (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  -- How many deliveries it holds; a lease that holds none is removed.
  held INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_expiry ON leases (expires_at);

CREATE TABLE threads (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'closing', 'closed')),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_closing ON threads (id) WHERE state = 'closing';

-- What the agent has seen by itself, up to a generation of the subject.
CREATE TABLE observations (
  thread_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  generation INTEGER NOT NULL,
  PRIMARY KEY (thread_id, subject)
) STRICT, WITHOUT ROWID;

-- Coarse indexes: which blocks of 256 numbers hold anything of a key. kind: 'j' journal by user, 'u' notifications by
-- user, 't' notifications by thread. A full index by user costs a page a row when many users write; this costs a row
-- a block, and reading visits at most 256 rows for each one it finds.
CREATE TABLE blocks (
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  block INTEGER NOT NULL,
  PRIMARY KEY (kind, key, block)
) STRICT, WITHOUT ROWID;
