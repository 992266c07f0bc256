-- What is live and what is unread is found by the coarse index alone: a block that it names is read whole. An index of
-- its own cost each settlement of an older notification two pages more than its row.
DROP INDEX deliveries_live;
DROP INDEX deliveries_unread;
-- 'unread' names a block from the moment at which something for the user is in it, shown or not: acknowledging writes
-- nothing here. A name may outlast what it stands for; see live_blocks.ts.
INSERT OR IGNORE INTO blocks (kind, key, block)
  SELECT 'unread', key, block FROM blocks WHERE kind IN ('inbox', 'floor');

-- Of a block that is full: which of its numbers are the user's, as a list of 16-bit offsets, if they are few. Of kind 'u'
-- alone. NULL: nobody knows, and the block is read whole.
ALTER TABLE blocks ADD COLUMN numbers BLOB;
