import { Alert, Badge, Code, Group, Spoiler, Stack, Tabs, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { POINTS } from "../../parts/routing.js";
import { ChannelBadge, SeverityIcon } from "../../parts/states.js";
import type { Preview } from "./types.js";

type Words = NonNullable<Preview["single"]>;

const OUTCOMES: Readonly<Record<Preview["outcome"], { readonly color: string; readonly word: string }>> = {
  matched: { color: "green", word: "would be told" },
  not_matched: { color: "gray", word: "would not be taken" },
  filtered: { color: "gray", word: "would be kept back by its severity filter" },
  muted: { color: "yellow", word: "would be kept back" },
  disabled: { color: "gray", word: "would not be taken" },
};

export function Rendered({ preview }: { readonly preview: Preview }) {
  const { outcome, reason, note, channel, priority, inject_at, event, single, batch } = preview;
  const { color, word } = OUTCOMES[outcome];
  return (
    <Stack gap="sm">
      <Group gap="xs" role="status">
        <SeverityIcon severity={event.severity} />
        <Code className="outside">{event.type}</Code>
        <Badge variant="light" color={color} tt="none">
          {word}
        </Badge>
        {single === null ? null : (
          <>
            <ChannelBadge channel={channel} />
            <Text size="xs" c="dimmed">
              priority {priority}
              {channel === "agent" || channel === "context" ? `, ${POINTS[inject_at]}` : ""}
            </Text>
          </>
        )}
      </Group>
      {reason === null ? null : (
        <Text size="sm" className="outside">
          {reason}
        </Text>
      )}
      {note === null ? null : (
        <Text size="sm" c="dimmed" className="outside">
          {note}
        </Text>
      )}
      {single === null ? null : batch === null ? (
        <Told words={single} />
      ) : (
        <Tabs defaultValue="single" keepMounted={false}>
          <Tabs.List>
            <Tabs.Tab value="single">One event</Tabs.Tab>
            <Tabs.Tab value="batch">A batch of {batch.rows}</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="single" pt="sm">
            <Told words={single} />
          </Tabs.Panel>
          <Tabs.Panel value="batch" pt="sm">
            <Told words={batch} />
          </Tabs.Panel>
        </Tabs>
      )}
    </Stack>
  );
}

function Told({ words: { content, degraded, error, block } }: { readonly words: Words }) {
  return (
    <Stack gap="xs">
      {degraded === null ? null : (
        <Alert color="yellow" icon={<IconAlertTriangle />} title="In general words, since its template fails" p="xs">
          <Text size="sm" className="outside">
            {error === null
              ? degraded
              : `${error.template}${error.line === null ? "" : `, line ${error.line}`}: ${error.reason}`}
          </Text>
        </Alert>
      )}
      <Code block className="outside" aria-label="Its words" role="group">
        {content}
      </Code>
      {block === null ? (
        <Text size="sm" c="dimmed">
          The system shows it to the user as it is.
        </Text>
      ) : (
        <Spoiler
          maxHeight={0}
          styles={{ control: { fontSize: "var(--mantine-font-size-sm)" } }}
          showLabel="Show the whole block that the agent would be sent"
          hideLabel="Hide the block"
        >
          <Code block className="outside" fz="xs">
            {block}
          </Code>
        </Spoiler>
      )}
    </Stack>
  );
}
