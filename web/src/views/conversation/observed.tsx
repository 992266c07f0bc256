/** What the agent was told: a copy to look at, which counts for nothing. */
import { Badge, Group, Text } from "@mantine/core";
import { IconEye } from "@tabler/icons-react";
import style from "./conversation.module.css";
import { LongText } from "./long_text.js";
import { FoldedPill, LedgerLink } from "./pill.js";
import type { ObservationItem } from "./rows.js";

export function Observed({ items }: { readonly items: readonly ObservationItem[] }) {
  const [first] = items;
  if (first === undefined) return null;
  const kinds = [...new Set(items.map(({ content }) => content.source))].join(", ");
  const isSent = items.every(({ status }) => status === "sent");
  return (
    <FoldedPill
      icon={IconEye}
      color="gray"
      word="Told to the agent"
      tone="quiet"
      at={first.timestamp}
      more={
        <>
          {items.length > 1 ? (
            <Badge size="sm" variant="light" color="gray" aria-label={`${items.length} notifications`}>
              {items.length}
            </Badge>
          ) : null}
          <Text size="xs" c="dimmed" className={style["title"]} style={{ flex: "0 1 auto" }}>
            {kinds}
            {isSent ? "" : " (on its way)"}
          </Text>
        </>
      }
      actions={items.length === 1 ? <LedgerLink id={first.content.notification_id} /> : undefined}
    >
      {items.map(({ item_id, content }) => (
        <Group key={item_id} gap="xs" wrap="nowrap" align="flex-start" mt={4}>
          <Text component="div" size="sm" className="outside" style={{ flex: 1, minWidth: 0 }}>
            <LongText text={content.text} part={item_id} />
          </Text>
          {items.length > 1 ? <LedgerLink id={content.notification_id} /> : null}
        </Group>
      ))}
    </FoldedPill>
  );
}
