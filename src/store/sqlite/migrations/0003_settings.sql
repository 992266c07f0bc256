-- What users have chosen; as in the journal.
CREATE TABLE user_settings (
  user_id TEXT PRIMARY KEY,
  disabled_subscribers TEXT NOT NULL
) STRICT, WITHOUT ROWID;
