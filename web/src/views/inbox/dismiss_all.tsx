/** All that is unread, or all of it that is like what is chosen, dismissed at once. */
import { ActionIcon, Button, Group, Progress, Text } from "@mantine/core";
import { IconChecks } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import type { NotificationView, TidingsClient } from "tidings/client";
import { useCounts } from "../../live/counts.js";
import { useAcknowledgements } from "../../live/inbox_acknowledgements.js";
import type { Filter } from "../../live/rows.js";
import { Dialog } from "../../parts/dialog.js";
import { counted } from "../../parts/words.js";
import { useClient } from "../../session/session.js";

const PAGE = 200;

export function DismissAll({
  filter,
  narrowed,
  opened,
  close,
}: {
  readonly filter: Filter;
  readonly narrowed: boolean;
  readonly opened: boolean;
  readonly close: () => void;
}) {
  const client = useClient();
  const acknowledgements = useAcknowledgements();
  const counts = useCounts();
  const [done, setDone] = useState<number | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    if (!opened) return;
    setDone(null);
    setError(null);
  }, [opened]);
  const run = async () => {
    setDone(0);
    try {
      let all = 0;
      for await (const page of unreadPages(client, filter)) {
        all += await acknowledgements.sendAll(page, "dismissed");
        setDone(all);
      }
      close();
    } catch (why) {
      setDone(null);
      setError(why instanceof Error ? why.message : String(why));
    }
  };
  const unread = counts?.unread ?? 0;
  const how = narrowed
    ? "All that is unread and like what is chosen above"
    : `${counted(unread, "unread item", "unread items")}${counts !== null && unread >= counts.cap ? " or more" : ""}`;
  const isNothing = !narrowed && unread === 0 && done === null;
  const part = done === null || unread === 0 ? 0 : Math.min(100, (100 * done) / (done + unread));
  return (
    <Dialog opened={opened} onClose={close} title="Dismiss all" centered>
      <Text size="sm">
        {isNothing ? "Nothing is unread." : `${how}: they count as read, and stay in the list and in the ledger.`}
      </Text>
      {error === null ? null : (
        <Text size="sm" c="red" mt="xs" className="outside" role="alert">
          {error}
        </Text>
      )}
      {done === null ? null : <Progress value={part} mt="sm" aria-label={`${done} dismissed`} />}
      <Group justify="flex-end" mt="md" gap="xs">
        <Button variant="default" size="xs" onClick={close}>
          {isNothing ? "Close" : "Cancel"}
        </Button>
        {isNothing ? null : (
          <Button size="xs" onClick={() => void run()} loading={done !== null} data-autofocus>
            Dismiss
          </Button>
        )}
      </Group>
    </Dialog>
  );
}

/** In words where there is room for them. */
export function DismissAllButton({ open }: { readonly open: () => void }) {
  const look = { variant: "subtle", color: "gray", onClick: open } as const;
  return (
    <>
      <Button size="compact-sm" leftSection={<IconChecks size={16} aria-hidden />} visibleFrom="sm" {...look}>
        Dismiss all
      </Button>
      <ActionIcon aria-label="Dismiss all" hiddenFrom="sm" {...look}>
        <IconChecks size={18} />
      </ActionIcon>
    </>
  );
}

async function* unreadPages(client: TidingsClient, filter: Filter): AsyncGenerator<NotificationView[]> {
  for (let after: string | undefined; ; ) {
    const page = await client.call("notification/list", { ...filter, unread: true, limit: PAGE, after });
    if (page.notifications.length > 0) yield page.notifications;
    if (page.next === null) return;
    after = page.next;
  }
}
