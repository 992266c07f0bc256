-- Who may speak to the server. Only a digest of a token is here; making and revoking one is journaled, without it.
CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL,
  name TEXT,
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_of_user ON tokens (user_id, id);
