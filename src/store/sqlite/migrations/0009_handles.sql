-- Calls of tools that go on while the agent does something else: each by the newest entry about it. As in the journal; what has
-- stopped is kept until it was read, for a while, and within bounds.
CREATE TABLE handles (
  thread_id TEXT NOT NULL,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'stopped', 'failed')),
  -- The entry that says so.
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (thread_id, id)
) STRICT;
