-- What agents were told: each carrier, and what was in it as it was when it was collected. As in the journal.

CREATE TABLE carriers (
  -- The journal entry that opened it; its id carries it.
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  point TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'sent', 'void')),
  -- How the hold on what is in it ended, and under which lease it is held: one of them is null.
  ended TEXT CHECK (ended IN ('settled', 'failed', 'lease_expired', 'thread_closed')),
  lease_id TEXT,
  last_seq INTEGER NOT NULL
) STRICT;
CREATE INDEX carriers_held ON carriers (thread_id, seq) WHERE lease_id IS NOT NULL;
CREATE INDEX carriers_lease ON carriers (lease_id) WHERE lease_id IS NOT NULL;

-- The fence: who ends a carrier changes what still has these epochs, and nothing else.
CREATE TABLE carrier_items (
  carrier INTEGER NOT NULL,
  position INTEGER NOT NULL,
  number INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  lease_epoch INTEGER NOT NULL,
  -- What the end of the carrier has made of it; null while it is held, and if it was lost before.
  state TEXT,
  PRIMARY KEY (carrier, position)
) STRICT, WITHOUT ROWID;
