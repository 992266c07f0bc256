/** Says when what is on the page may be old, since when, and what is being done about it. */
import { Button, Group, Text } from "@mantine/core";
import { IconPlugConnectedX } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useClient, useConnection } from "../session/session.js";

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
  const since = client.cursor === null ? "" : ` from entry ${client.cursor.after_seq} of the journal`;
  return (
    <Group role="status" bg="yellow.2" c="black" px="md" py={6} gap="sm" wrap="nowrap">
      <IconPlugConnectedX size={18} aria-hidden />
      <Text size="sm" style={{ flex: 1 }}>
        The server does not answer
        {detail !== null && detail.attempt > 1 ? ` (try ${detail.attempt})` : ""}. Nothing is lost: when it is back,
        this page goes on{since}.
      </Text>
      <Button size="compact-sm" variant="white" color="dark" onClick={() => client.retryNow()}>
        Try now
      </Button>
    </Group>
  );
}
