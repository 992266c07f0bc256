-- What turns have used, by thread, and by user and day (UTC, days since 1970): the sums of what the entries of the journal say.
CREATE TABLE thread_usage (
  thread_id TEXT PRIMARY KEY,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  time_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE day_usage (
  user_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  time_ms INTEGER NOT NULL,
  PRIMARY KEY (user_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX day_usage_day ON day_usage (day);
