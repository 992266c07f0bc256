import { unlisted, wrongDigests, wrongSubjects } from "./check_rows.js";
import { checkSchema } from "./check_schema.js";
import type { Connection } from "./connection.js";

const SHOWN = 5;

/** Entries before this one may have been pruned. */
const FLOOR_SEQ = "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'floor_seq'), 1)";
/** Whatever was journaled after this time is still in the journal; null if nothing need be. */
const FLOOR_AT = `CASE WHEN ${FLOOR_SEQ} = 1 THEN -1 ELSE (SELECT at FROM journal WHERE seq >= ${FLOOR_SEQ} ORDER BY seq LIMIT 1) END`;

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
    says: "a delivery that nobody holds names a lease or an owner, or one that is held does not",
    sql: "SELECT number FROM deliveries WHERE (state = 'LOCKED') <> (lease_id IS NOT NULL) OR (state = 'LOCKED') <> (owner IS NOT NULL)",
  },
  {
    says: "a lease and what it holds name different owners",
    sql: "SELECT d.number FROM deliveries d JOIN leases l ON l.id = d.lease_id WHERE l.owner IS NOT d.owner",
  },
  {
    // What the system shows has none, nor has what was taken from an agent before it was written, or settled before there was this column.
    says: "a delivery's source disagrees with its notification",
    sql: `SELECT d.number FROM deliveries d JOIN notifications n ON n.number = d.number WHERE CASE
      WHEN n.axes LIKE '%/user/system' THEN d.source IS NOT NULL
      WHEN d.state IN ('PENDING', 'LOCKED') THEN d.source IS NOT n.source ELSE d.source <> n.source END`,
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
      WHERE CASE WHEN json_valid(j.body)
        THEN j.type <> 'turn' OR j.body ->> '$.turn_id' <> t.id OR j.body ->> '$.state' <> t.state END`,
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
    says: "a conversation lists what is not there",
    sql: "SELECT number FROM floor_items WHERE number NOT IN (SELECT number FROM deliveries)",
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
    sql: `SELECT number FROM deliveries WHERE channel IN ('inbox', 'floor') AND (live = 1 OR unread = 1)
      AND NOT EXISTS (SELECT 1 FROM blocks WHERE kind = 'unread' AND key = user_id AND block = number / 1024)`,
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
    // With a thread that is closed, retention removes the one and the other at different times.
    says: "an observation disagrees with the journal",
    sql: `SELECT thread_id || ' ' || subject FROM (
        SELECT thread_id, subject, generation AS kept, NULL AS told FROM observations
        UNION ALL SELECT thread_id, body ->> '$.subject', NULL, body ->> '$.generation'
        FROM journal WHERE type = 'observation' AND json_valid(body)
      ) o LEFT JOIN threads t ON t.id = o.thread_id WHERE t.state IS NOT 'closed'
      GROUP BY thread_id, subject HAVING max(kept) IS NOT max(told)`,
  },
  {
    says: "a handle is not as the journal says",
    sql: `SELECT h.thread_id || ' ' || h.id FROM handles h JOIN threads t ON t.id = h.thread_id AND t.state = 'open'
      LEFT JOIN journal j ON j.seq = h.seq AND j.type = 'handle' AND j.thread_id = h.thread_id
      WHERE CASE WHEN json_valid(j.body) AND json_valid(h.detail) THEN j.body ->> '$.handle' <> h.id
        OR j.body ->> '$.state' <> h.state OR json(j.body -> '$.detail') <> json(h.detail) ELSE 1 END`,
  },
  {
    says: "a file is known in a thread that is closed, or is another user's",
    sql: `SELECT k.thread_id || ' ' || k.path FROM known_files k LEFT JOIN threads t ON t.id = k.thread_id
      WHERE t.id IS NULL OR t.state = 'closed' OR t.user_id <> k.user_id OR NOT json_valid(k.detail)`,
  },
  {
    says: "a tool of an MCP server is not as the journal says",
    sql: `SELECT m.server || ' ' || m.tool FROM mcp_tools m LEFT JOIN journal j ON j.seq = m.seq AND j.type = 'mcp_tool'
      WHERE CASE WHEN j.seq IS NULL THEN m.seq >= ${FLOOR_SEQ} WHEN NOT json_valid(j.body) THEN 1
        ELSE j.body ->> '$.server' <> m.server OR j.body ->> '$.tool' <> m.tool
          OR j.body -> '$.look' IS NOT CASE WHEN j.body ->> '$.by' IS NULL THEN m.held ELSE m.approved END
          OR (j.body ->> '$.by' IS NOT NULL AND m.held IS NOT NULL) END`,
  },
  {
    // Of what made and revoked it the journal has what retention has left; a token itself is never removed.
    says: "a token is not as the journal says",
    sql: `SELECT id FROM (
        SELECT id, user_id || ' ' || scopes AS may, created_at, revoked_at, NULL AS made, NULL AS ended FROM tokens
        UNION ALL SELECT body ->> '$.token_id',
          user_id || ' ' || (SELECT coalesce(group_concat(value, ',' ORDER BY key), '') FROM json_each(body, '$.scopes')), NULL, NULL,
          iif(body ->> '$.action' = 'created', at, NULL), iif(body ->> '$.action' = 'revoked', at, NULL)
        FROM journal WHERE type = 'token' AND json_valid(body)
      ) GROUP BY id HAVING min(may) <> max(may)
        OR (max(created_at) IS NOT max(made) AND (max(made) IS NOT NULL OR max(created_at) > ${FLOOR_AT}))
        OR (max(revoked_at) IS NOT max(ended) AND (max(ended) IS NOT NULL OR max(revoked_at) > ${FLOOR_AT}))`,
  },
  {
    says: "a user's settings are not as the journal says",
    sql: `SELECT user_id FROM (
        SELECT user_id, disabled_subscribers AS kept, NULL AS told, NULL AS seq FROM user_settings
        UNION ALL SELECT user_id, NULL, body -> '$.disabled_subscribers', max(seq)
        FROM journal WHERE type = 'settings' AND json_valid(body) GROUP BY user_id
      ) GROUP BY user_id HAVING max(kept) IS NOT max(told) AND (max(seq) IS NOT NULL OR ${FLOOR_SEQ} = 1)`,
  },
  {
    says: "a redriven notification is not a dead letter",
    sql: "SELECT r.number FROM redrives r LEFT JOIN deliveries d ON d.number = r.number WHERE d.state IS NOT 'FAILED'",
  },
];

/** The same for what SQL cannot tell. */
const READ: readonly { readonly says: string; readonly find: (connection: Connection) => Iterable<number | string> }[] =
  [
    { says: "a delivery's subject disagrees with its notification", find: wrongSubjects },
    { says: "a user's notification is not in the list of its block", find: unlisted },
    { says: "a producer's id stands for another body, or for no event", find: wrongDigests },
  ];

/** Problems of the storage itself, in words. */
export function checkStorage(connection: Connection): string[] {
  const problems: string[] = [];
  const integrity = connection.pragma("integrity_check(20)") as { integrity_check: string }[];
  for (const { integrity_check } of integrity)
    if (integrity_check !== "ok") problems.push(`SQLite: ${integrity_check}`);
  // Nothing that a damaged file says about itself can be relied on.
  if (problems.length > 0) return problems;
  problems.push(...checkSchema(connection));
  const foreign = connection.pragma("foreign_key_check") as { table: string; rowid: number }[];
  for (const { table, rowid } of foreign.slice(0, SHOWN)) problems.push(`row ${rowid} of ${table} points at nothing`);
  for (const { says, sql } of CONTRADICTIONS) {
    const found = connection.prepare(`${sql} LIMIT ${SHOWN + 1}`).pluck();
    problems.push(...inWords(says, found.all() as (number | string)[]));
  }
  for (const { says, find } of READ) problems.push(...inWords(says, find(connection)));
  return problems;
}

/** One problem with the first of what was found, or none. */
function inWords(says: string, found: Iterable<number | string>): string[] {
  const first: (number | string)[] = [];
  let more = "";
  for (const one of found) {
    if (first.length === SHOWN) {
      more = " and more";
      break;
    }
    first.push(one);
  }
  return first.length === 0 ? [] : [`${says}: ${first.join(", ")}${more}`];
}
