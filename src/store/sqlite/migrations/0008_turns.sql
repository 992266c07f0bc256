-- Hosted agents: turns, what was said in them, what they hold, and whom they are woken for. As in the journal.

-- What was said and done in a thread is read from the journal itself.
CREATE INDEX journal_conversation ON journal (thread_id, seq) WHERE type = 'turn' OR type = 'carrier';

CREATE TABLE turns (
  -- The journal entry that made it; its id carries it.
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (
    state IN ('queued', 'active', 'completed', 'failed', 'interrupted', 'stopped', 'removed')
  ),
  source TEXT NOT NULL CHECK (source IN ('user', 'system')),
  internal INTEGER NOT NULL,
  content TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  note TEXT,
  continued_by TEXT,
  -- While it is active: what it collected is held under it.
  lease_id TEXT,
  -- 1 while it is queued or active.
  live INTEGER NOT NULL,
  last_seq INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_live ON turns (thread_id, seq) WHERE live = 1;
CREATE INDEX turns_lease ON turns (lease_id) WHERE lease_id IS NOT NULL;

ALTER TABLE carriers ADD COLUMN turn_id TEXT;
-- How far its block makes the agent aware of what the system has shown; the thread's cursors move there when it is sent.
ALTER TABLE carriers ADD COLUMN aware_seq INTEGER;
ALTER TABLE carriers ADD COLUMN aware_inbox INTEGER;

ALTER TABLE threads ADD COLUMN paused_at INTEGER;
ALTER TABLE threads ADD COLUMN active_at INTEGER NOT NULL DEFAULT 0;
UPDATE threads SET active_at = created_at;
ALTER TABLE threads ADD COLUMN aware_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN aware_inbox INTEGER NOT NULL DEFAULT 0;
CREATE INDEX threads_of_user ON threads (user_id, active_at, id);

-- When its agent rested: deadlines stood still. Open while `until_at` is null.
CREATE TABLE pauses (
  thread_id TEXT NOT NULL,
  from_at INTEGER NOT NULL,
  until_at INTEGER,
  PRIMARY KEY (thread_id, from_at)
) STRICT, WITHOUT ROWID;

-- What the system showed in a conversation, by the entry that showed it.
CREATE TABLE floor_items (
  thread_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (thread_id, seq, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX floor_items_number ON floor_items (number);
INSERT INTO floor_items (thread_id, seq, number)
  SELECT thread_id, last_seq, number FROM deliveries
  WHERE channel = 'floor' AND state <> 'PENDING' AND state <> 'SUPPRESSED' AND thread_id IS NOT NULL;

ALTER TABLE notifications ADD COLUMN wake_ms INTEGER;
ALTER TABLE deliveries ADD COLUMN quiet INTEGER NOT NULL DEFAULT 0;
-- 1 if an idle agent is to be woken for it while it is pending.
ALTER TABLE deliveries ADD COLUMN wakes INTEGER NOT NULL DEFAULT 0;
UPDATE deliveries SET wakes = 1 WHERE live = 1 AND (channel = 'agent' OR (channel = 'context' AND priority = 'critical'));
CREATE INDEX deliveries_wakes ON deliveries (
  user_id, (CASE WHEN effective < 'user/' THEN thread_id ELSE '' END), priority, number
) WHERE wakes = 1 AND state = 'PENDING';
