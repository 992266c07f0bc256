-- Tools of MCP servers: what each looked like when it was approved, and how its server shows it now, if otherwise. Each by the newest
-- entry about it; as in the journal, and kept when that is pruned.
CREATE TABLE mcp_tools (
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  -- JSON, null if nobody has approved of it.
  approved TEXT,
  -- JSON, null if it looks as it was approved.
  held TEXT,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (server, tool)
) STRICT;
