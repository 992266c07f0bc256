-- Fewer pages for each commit: deadlines, and what is live and unread, by coarse hints.

-- What is live and what is unread, by blocks of 1024 numbers and then by user: what is written together stands
-- together. By user alone, each user's newest entries would be a page of their own in every commit. In which blocks to
-- look for a user is said by `blocks`.
DROP INDEX deliveries_live;
DROP INDEX deliveries_unread;
CREATE INDEX deliveries_live ON deliveries (number / 1024, user_id, channel) WHERE live = 1;
CREATE INDEX deliveries_unread ON deliveries (number / 1024, user_id) WHERE unread = 1;

-- `blocks` says now which blocks of 1024 numbers hold anything of a key. kind: 'j' journal by user, 'u' notifications by
-- user, 't' notifications by thread, 'unread' and the name of a channel notifications by user that are unread, or live
-- on that channel. A full index by user costs a page a row when many users write; this costs a row a block. In a block
-- of 'j', 'u' or 't' reading visits at most 1024 rows for each one it finds. The others lead to an index that begins
-- with the block, and only while there is something to find: the last one that is settled or read takes the row away.
DELETE FROM blocks;
INSERT INTO blocks (kind, key, block) SELECT DISTINCT 'j', user_id, seq / 1024 FROM journal;
INSERT INTO blocks (kind, key, block) SELECT DISTINCT 'u', user_id, number / 1024 FROM deliveries;
-- A notification is found by the thread that it is bound to.
INSERT OR IGNORE INTO blocks (kind, key, block)
  SELECT DISTINCT 't', thread_id, number / 1024 FROM deliveries WHERE thread_id IS NOT NULL;
INSERT INTO blocks (kind, key, block) SELECT DISTINCT channel, user_id, number / 1024 FROM deliveries WHERE live = 1;
INSERT INTO blocks (kind, key, block) SELECT DISTINCT 'unread', user_id, number / 1024 FROM deliveries WHERE unread = 1;

-- The other coarse index: in which second anything of a block of numbers falls due. Written with the row, left alone
-- when it is settled, removed by the watchdog once the second has passed.
DROP INDEX deliveries_due;
CREATE TABLE due (
  second INTEGER NOT NULL,
  block INTEGER NOT NULL,
  PRIMARY KEY (second, block)
) STRICT, WITHOUT ROWID;
INSERT INTO due (second, block)
  SELECT DISTINCT due_at / 1000, number / 1024 FROM deliveries WHERE live = 1 AND due_at IS NOT NULL;
