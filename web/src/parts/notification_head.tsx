/** What a notification says, how it stands, and what has become of it. */
import { Badge, Group, Text } from "@mantine/core";
import type { NotificationView } from "tidings/client";
import { outcomeOf } from "./outcome.js";
import { ChannelBadge, SEVERITIES, SeverityIcon, StateBadge } from "./states.js";

/** So much can be said in large letters. */
const SHORT_CHARS = 240;

export function NotificationHead({
  view,
  reader,
  times,
  since,
}: {
  readonly view: NotificationView;
  /** Whether it is about whoever reads this. */
  readonly reader: "you" | "other";
  /** How often it came, if that was more than once. */
  readonly times: string | null;
  readonly since?: string;
}) {
  const { content, severity, state, channel } = view;
  return (
    <div>
      <Text
        className="outside"
        component="div"
        fz={content.length > SHORT_CHARS ? "md" : "lg"}
        fw={content.length > SHORT_CHARS ? 400 : 500}
        lh={1.45}
        mb="xs"
      >
        {content}
      </Text>
      <Group gap="xs" mb={6}>
        <Group gap={6} wrap="nowrap">
          <SeverityIcon severity={severity} />
          <Text size="sm">{SEVERITIES[severity].word}</Text>
        </Group>
        <StateBadge state={state} />
        <ChannelBadge channel={channel} />
        {times === null ? null : (
          <Badge variant="light" color="gray" tt="none" title={since}>
            {times}
          </Badge>
        )}
      </Group>
      <Text size="sm" c="dimmed" role="note" aria-label="What became of it">
        {outcomeOf(view, reader)}
      </Text>
    </div>
  );
}
