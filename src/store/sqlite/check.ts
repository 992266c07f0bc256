import type { Connection } from "./connection.js";

const SHOWN = 5;

/** Each asks for what must not be there. These read whole tables: they are for `audit`, never for the product's way. */
const CONTRADICTIONS: readonly { readonly says: string; readonly sql: string }[] = [
  {
    says: "the flag `live` disagrees with the state",
    sql: "SELECT number FROM deliveries WHERE live <> (state IN ('PENDING', 'DISPATCHED', 'LOCKED', 'ESCALATED'))",
  },
  {
    says: "the flag `unread` disagrees with the row",
    sql: "SELECT number FROM deliveries WHERE unread <> (state = 'DELIVERED' AND channel IN ('inbox', 'floor') AND read_at IS NULL)",
  },
  {
    says: "the due time disagrees with the deadline",
    sql: "SELECT number FROM deliveries WHERE due_at IS NOT CASE WHEN state IN ('PENDING', 'DISPATCHED', 'ESCALATED') THEN min(deadline, coalesce(open_until, deadline)) END AND NOT (state = 'PENDING' AND coalesce(thread_id, '') IN (SELECT thread_id FROM pauses))",
  },
  {
    says: "a notification has no delivery",
    sql: "SELECT number FROM notifications WHERE number NOT IN (SELECT number FROM deliveries)",
  },
  {
    says: "a locked delivery has no lease",
    sql: "SELECT number FROM deliveries WHERE (state = 'LOCKED') <> (lease_id IS NOT NULL AND EXISTS (SELECT 1 FROM leases WHERE id = lease_id))",
  },
  {
    says: "a lease counts what it does not hold",
    sql: `SELECT id FROM leases l WHERE held = 0 OR held <> (SELECT count(*) FROM deliveries WHERE lease_id = l.id)
      + (SELECT count(*) FROM carriers WHERE lease_id = l.id) + (SELECT count(*) FROM turns WHERE lease_id = l.id)`,
  },
  {
    says: "a lease holds another user's delivery",
    sql: "SELECT d.number FROM deliveries d JOIN leases l ON l.id = d.lease_id WHERE l.user_id <> d.user_id",
  },
  {
    says: "a carrier is held without a lease of its user, or ended under one",
    sql: `SELECT seq FROM carriers c WHERE (lease_id IS NULL) = (ended IS NULL)
      OR lease_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM leases WHERE id = lease_id AND user_id = c.user_id)`,
  },
  {
    says: "a carrier's state disagrees with its end",
    sql: `SELECT seq FROM carriers WHERE CASE state WHEN 'open' THEN ended IS NOT NULL
      WHEN 'void' THEN ended IS NULL OR ended = 'settled' ELSE ended = 'failed' END`,
  },
  {
    says: "a carrier is of another user than its thread",
    sql: "SELECT seq FROM carriers c WHERE NOT EXISTS (SELECT 1 FROM threads WHERE id = c.thread_id AND user_id = c.user_id)",
  },
  {
    says: "a carrier does not know what is held under its lease",
    sql: `SELECT d.number FROM deliveries d WHERE EXISTS (SELECT 1 FROM carriers c WHERE c.lease_id = d.lease_id)
      AND NOT EXISTS (SELECT 1 FROM carriers c JOIN carrier_items i ON i.carrier = c.seq
        WHERE c.lease_id = d.lease_id AND i.number = d.number
          AND i.lease_epoch = d.lease_epoch AND i.revision = d.revision AND i.state IS NULL)`,
  },
  {
    says: "a turn's state disagrees with its lease",
    sql: `SELECT seq FROM turns t WHERE (state = 'active') <> (lease_id IS NOT NULL)
      OR live <> (state IN ('queued', 'active'))
      OR lease_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM leases WHERE id = lease_id AND user_id = t.user_id)`,
  },
  {
    says: "two turns are active in one thread",
    sql: "SELECT thread_id FROM turns WHERE state = 'active' GROUP BY thread_id HAVING count(*) > 1",
  },
  {
    says: "a turn is of another user than its thread",
    sql: "SELECT seq FROM turns t WHERE NOT EXISTS (SELECT 1 FROM threads WHERE id = t.thread_id AND user_id = t.user_id)",
  },
  {
    says: "a turn's id does not carry its place in the journal",
    sql: "SELECT seq FROM turns WHERE substr(id, -12) <> format('%012x', seq)",
  },
  {
    says: "a turn's state disagrees with the journal",
    sql: `SELECT t.seq FROM turns t LEFT JOIN journal j ON j.seq = t.last_seq
      WHERE j.seq IS NOT NULL AND (j.type <> 'turn' OR j.body ->> '$.turn_id' <> t.id OR j.body ->> '$.state' <> t.state)`,
  },
  {
    says: "what wakes an agent is not marked as such",
    sql: `SELECT d.number FROM deliveries d JOIN notifications n ON n.number = d.number WHERE wakes <> (
      live = 1 AND channel IN ('agent', 'context') AND quiet = 0
        AND (channel = 'agent' OR n.wake_ms IS NOT NULL OR priority = 'critical'))`,
  },
  {
    says: "what is shown in a conversation is not listed there",
    sql: `SELECT number FROM deliveries d WHERE channel = 'floor' AND state NOT IN ('PENDING', 'SUPPRESSED')
      AND NOT EXISTS (SELECT 1 FROM floor_items f WHERE f.number = d.number AND f.thread_id = d.thread_id)`,
  },
  {
    says: "a thread is paused without a pause, or the other way round",
    sql: `SELECT id FROM threads t WHERE state = 'open' AND (paused_at IS NOT NULL) <>
      EXISTS (SELECT 1 FROM pauses p WHERE p.thread_id = t.id AND p.until_at IS NULL)`,
  },
  {
    says: "an item belongs to no carrier",
    sql: "SELECT number FROM carrier_items WHERE carrier NOT IN (SELECT seq FROM carriers)",
  },
  {
    says: "a carrier's id does not carry its place in the journal",
    sql: "SELECT seq FROM carriers WHERE substr(id, -12) <> format('%012x', seq)",
  },
  {
    says: "an event's id does not carry its place in the journal",
    sql: "SELECT seq FROM journal WHERE type = 'event' AND json_valid(body) AND substr(json_extract(body, '$.event.id'), -12) <> format('%012x', seq)",
  },
  {
    says: "a notification's id does not carry its number",
    sql: "SELECT number FROM notifications WHERE substr(id, -12) <> format('%012x', number)",
  },
  {
    says: "a producer's id is not kept with its event",
    sql: `SELECT seq FROM journal j WHERE type = 'event' AND json_valid(body) AND body ->> '$.event.producer_id' IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM producer_ids p WHERE p.user_id = j.user_id AND p.source = j.body ->> '$.event.source'
        AND p.producer_id = j.body ->> '$.event.producer_id' AND p.event_id = j.body ->> '$.event.id')`,
  },
  {
    says: "a journal entry cannot be read",
    sql: "SELECT seq FROM journal WHERE NOT json_valid(body)",
  },
  {
    says: "a count disagrees with the events behind it",
    sql: `SELECT number FROM deliveries d WHERE count <> (SELECT count(*) FROM (
        SELECT event_id FROM notifications n WHERE n.number = d.number
        UNION SELECT event_id FROM notification_rows r WHERE r.number = d.number
        UNION SELECT event_id FROM merged_events m WHERE m.number = d.number))`,
  },
  {
    says: "a delivery is open that takes no more rows",
    sql: "SELECT number FROM deliveries WHERE open_until IS NOT NULL AND state <> 'PENDING'",
  },
  {
    says: "the rows of a notification disagree with its count",
    sql: `SELECT d.number FROM (SELECT number, sum(count) AS events, count(*) AS rows FROM notification_rows GROUP BY number) r
      LEFT JOIN deliveries d ON d.number = r.number WHERE d.count IS NOT r.events OR d.rows IS NOT r.rows`,
  },
  {
    says: "a notification lacks its rows",
    sql: "SELECT number FROM deliveries d WHERE rows > 1 AND NOT EXISTS (SELECT 1 FROM notification_rows r WHERE r.number = d.number)",
  },
  {
    says: "a user's journal entry is not in the coarse index",
    sql: "SELECT seq FROM journal WHERE NOT EXISTS (SELECT 1 FROM blocks WHERE kind = 'j' AND key = user_id AND block = seq / 1024)",
  },
  {
    says: "a user's notification is not in the coarse index",
    sql: "SELECT number FROM deliveries WHERE NOT EXISTS (SELECT 1 FROM blocks WHERE kind = 'u' AND key = user_id AND block = number / 1024)",
  },
  {
    says: "a thread's notification is not in the coarse index",
    sql: "SELECT number FROM deliveries WHERE thread_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blocks WHERE kind = 't' AND key = thread_id AND block = number / 1024)",
  },
  {
    says: "a live notification is not in the coarse index",
    sql: "SELECT number FROM deliveries WHERE live = 1 AND NOT EXISTS (SELECT 1 FROM blocks WHERE kind = channel AND key = user_id AND block = number / 1024)",
  },
  {
    says: "an unread notification is not in the coarse index",
    sql: "SELECT number FROM deliveries WHERE unread = 1 AND NOT EXISTS (SELECT 1 FROM blocks WHERE kind = 'unread' AND key = user_id AND block = number / 1024)",
  },
  {
    says: "the coarse index names a block in which nothing is live or unread",
    sql: `SELECT kind || ' ' || key || ' ' || block FROM blocks WHERE kind NOT IN ('j', 'u', 't') AND NOT EXISTS (
        SELECT 1 FROM deliveries WHERE number BETWEEN block * 1024 AND block * 1024 + 1023
          AND user_id = key AND (live = 1 AND channel = kind OR unread = 1 AND kind = 'unread'))`,
  },
  {
    says: "a delivery that falls due is not in the watchdog's index",
    sql: "SELECT number FROM deliveries WHERE due_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM due WHERE second = due_at / 1000 AND block = number / 1024)",
  },
  {
    says: "a redriven dead letter is not marked as such",
    sql: "SELECT number FROM notifications n WHERE redrive_of IS NOT NULL AND id NOT IN (SELECT redriven_as FROM redrives)",
  },
  {
    says: "an observation disagrees with the journal",
    sql: `SELECT o.thread_id || ' ' || o.subject FROM observations o
      JOIN threads t ON t.id = o.thread_id AND t.state = 'open' LEFT JOIN (
        SELECT thread_id, body ->> '$.subject' AS subject, max(body ->> '$.generation') AS generation
        FROM journal WHERE type = 'observation' AND json_valid(body) GROUP BY 1, 2
      ) j ON j.thread_id = o.thread_id AND j.subject = o.subject WHERE j.generation IS NOT o.generation`,
  },
  {
    says: "a handle is not as the journal says",
    sql: `SELECT h.thread_id || ' ' || h.id FROM handles h JOIN threads t ON t.id = h.thread_id AND t.state = 'open'
      LEFT JOIN journal j ON j.seq = h.seq AND j.type = 'handle' AND j.thread_id = h.thread_id
      WHERE j.seq IS NULL OR j.body ->> '$.handle' <> h.id OR j.body ->> '$.state' <> h.state
        OR json(j.body -> '$.detail') <> json(h.detail)`,
  },
  {
    says: "a file is known in a thread that is closed, or is another user's",
    sql: `SELECT k.thread_id || ' ' || k.path FROM known_files k LEFT JOIN threads t ON t.id = k.thread_id
      WHERE t.id IS NULL OR t.state = 'closed' OR t.user_id <> k.user_id OR NOT json_valid(k.detail)`,
  },
  {
    says: "a tool of an MCP server is not as the journal says",
    sql: `SELECT m.server || ' ' || m.tool FROM mcp_tools m LEFT JOIN journal j ON j.seq = m.seq AND j.type = 'mcp_tool'
      WHERE CASE WHEN j.seq IS NULL THEN m.seq >= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'floor_seq'), 1)
        ELSE j.body ->> '$.server' <> m.server OR j.body ->> '$.tool' <> m.tool
          OR j.body -> '$.look' IS NOT CASE WHEN j.body ->> '$.by' IS NULL THEN m.held ELSE m.approved END
          OR (j.body ->> '$.by' IS NOT NULL AND m.held IS NOT NULL) END`,
  },
  {
    says: "a redriven notification is not a dead letter",
    sql: "SELECT r.number FROM redrives r LEFT JOIN deliveries d ON d.number = r.number WHERE d.state IS NOT 'FAILED'",
  },
];

/** Problems of the storage itself, in words. */
export function checkStorage(connection: Connection): string[] {
  const problems: string[] = [];
  const integrity = connection.pragma("integrity_check(20)") as { integrity_check: string }[];
  for (const { integrity_check } of integrity)
    if (integrity_check !== "ok") problems.push(`SQLite: ${integrity_check}`);
  // Nothing that a damaged file says about itself can be relied on.
  if (problems.length > 0) return problems;
  const foreign = connection.pragma("foreign_key_check") as { table: string; rowid: number }[];
  for (const { table, rowid } of foreign.slice(0, SHOWN)) problems.push(`row ${rowid} of ${table} points at nothing`);
  for (const { says, sql } of CONTRADICTIONS) {
    const found = connection
      .prepare(`${sql} LIMIT ${SHOWN + 1}`)
      .pluck()
      .all() as (number | string)[];
    if (found.length === 0) continue;
    const more = found.length > SHOWN ? " and more" : "";
    problems.push(`${says}: ${found.slice(0, SHOWN).join(", ")}${more}`);
  }
  return problems;
}
