-- An event behind a notification is in one place: it is the first, a row shows it, or it is in `merged_events`.
DELETE FROM merged_events WHERE EXISTS (
  SELECT 1 FROM notification_rows r WHERE r.number = merged_events.number AND r.event_id = merged_events.event_id
);
