/** Says when what is on the page may be old, since when, and what is being done about it. */
import { Button, Group, Text } from "@mantine/core";
import { IconPlugConnectedX } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useClient, useConnection } from "../session/session.js";
import classes from "./offline_banner.module.css";

/** A connection that comes back at once is not worth a word. */
const PATIENCE_MS = 600;

export function OfflineBanner() {
  const client = useClient();
  const { status, detail } = useConnection();
  const [late, setLate] = useState(false);
  const away = status !== "open";
  useEffect(() => {
    if (!away) {
      setLate(false);
      return;
    }
    const timer = setTimeout(() => setLate(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [away]);
  if (!away || !late) return null;
  const since =
    client.cursor === null ? "" : `: this page goes on from entry ${client.cursor.after_seq} of the journal`;
  return (
    <Group role="status" className={classes["banner"] ?? ""} px="md" py={6} gap="sm" wrap="nowrap">
      <IconPlugConnectedX size={18} aria-hidden style={{ flexShrink: 0 }} />
      <Text size="sm" style={{ flex: 1 }}>
        <b>Offline, trying again{detail !== null && detail.attempt > 1 ? ` (${detail.attempt})` : ""}.</b> Nothing is
        lost{since}.
      </Text>
      <Button size="compact-sm" variant="default" style={{ flexShrink: 0 }} onClick={() => client.retryNow()}>
        Try now
      </Button>
    </Group>
  );
}
