-- Files that agents have read or written, as they know them: what changes outside of them is told by comparison. Not in the journal: the
-- calls that read and wrote are, and so are the events about changes.
CREATE TABLE known_files (
  thread_id TEXT NOT NULL,
  path TEXT NOT NULL,
  user_id TEXT NOT NULL,
  folder TEXT NOT NULL,
  generation INTEGER NOT NULL,
  at INTEGER NOT NULL,
  -- As the agent knows it, and what was announced of it since.
  detail TEXT NOT NULL,
  PRIMARY KEY (thread_id, path)
) STRICT;
