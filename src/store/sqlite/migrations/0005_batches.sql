-- Batches: a notification of several rows, which is open for further ones until its window ends.

ALTER TABLE deliveries ADD COLUMN rows INTEGER NOT NULL DEFAULT 1;
ALTER TABLE deliveries ADD COLUMN open_until INTEGER;
-- Of what is for an agent: whose it is, for the limit of what waits of one source.
ALTER TABLE deliveries ADD COLUMN source TEXT;
UPDATE deliveries SET source = (SELECT n.source FROM notifications n WHERE n.number = deliveries.number)
  WHERE state IN ('PENDING', 'LOCKED') AND channel IN ('agent', 'context');
-- Why the words are general ones and not the template's.
ALTER TABLE notifications ADD COLUMN degraded TEXT;

CREATE INDEX deliveries_open ON deliveries (user_id, channel, number) WHERE open_until IS NOT NULL;
CREATE INDEX deliveries_source ON deliveries (user_id, source, priority, number)
  WHERE state = 'PENDING' AND source IS NOT NULL;
CREATE INDEX deliveries_rows ON deliveries (thread_id, number) WHERE state = 'PENDING' AND rows > 1;

-- The rows of a notification: which event each shows (the latest with its key), how often it came and since when. Written
-- with the first merge: until then the notification itself says all of its only row.
CREATE TABLE notification_rows (
  number INTEGER NOT NULL,
  row INTEGER NOT NULL,
  key TEXT,
  until INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  count INTEGER NOT NULL,
  since TEXT NOT NULL,
  PRIMARY KEY (number, row)
) STRICT, WITHOUT ROWID;
