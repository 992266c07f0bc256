import { Button, Card, Code, Divider, Group, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { IconFlame, IconInfoCircle } from "@tabler/icons-react";
import { useId } from "react";
import type { Agent } from "./agent.js";
import { Progress } from "./progress.js";
import { useRun } from "./runs.js";
import { SITUATIONS, type SituationKey } from "./situations.js";

export function SituationCard({ situation, agent }: { readonly situation: SituationKey; readonly agent: Agent }) {
  const { title, icon: Icon, about, expect, real, differs, refuses } = SITUATIONS[situation];
  const { run, fire } = useRun(situation);
  const id = useId();
  const word = run === undefined ? "Fire" : "Fire again";
  const refused = refuses?.(agent) ?? null;
  const note = refused ?? differs(agent);
  return (
    <Card component="article" withBorder padding="md" aria-labelledby={id}>
      <Group align="flex-start" wrap="nowrap" gap="md">
        <ThemeIcon variant="light" size={36} radius="md" visibleFrom="xs">
          <Icon size={20} stroke={1.7} aria-hidden />
        </ThemeIcon>
        <Stack gap={6} style={{ flex: 1, minWidth: 0 }}>
          <Group justify="space-between" wrap="nowrap" align="flex-start">
            <Title order={2} size="h5" id={id}>
              {title}
            </Title>
            <Button
              size="compact-md"
              leftSection={<IconFlame size={16} aria-hidden />}
              onClick={() => void fire(agent)}
              loading={run !== undefined && run.doing !== null}
              disabled={refused !== null}
              aria-label={`${word}: ${title}`}
              style={{ flexShrink: 0 }}
            >
              {word}
            </Button>
          </Group>
          <Text size="sm">{about}</Text>
          <Said about="What will happen" words={expect(agent)} />
          <Said about="What is real" words={real(agent)} />
          {note === null ? null : <Note text={note} />}
        </Stack>
      </Group>
      {run === undefined ? null : (
        <>
          <Divider my="md" />
          <Progress key={run.number} run={run} />
        </>
      )}
    </Card>
  );
}

function Said({ about, words }: { readonly about: string; readonly words: string }) {
  return (
    <Text size="sm" c="dimmed">
      <Text span fw={600} inherit>
        {about}:{" "}
      </Text>
      {words}
    </Text>
  );
}

/** What stands in quotes is typed as it is. */
function Note({ text }: { readonly text: string }) {
  return (
    <Group gap={6} wrap="nowrap" align="flex-start">
      <IconInfoCircle size={16} aria-hidden style={{ flexShrink: 0, marginTop: 2 }} />
      <Text size="sm">
        {text.split(/“([^”]*)”/).map((part, index) =>
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a fixed text
          index % 2 === 0 ? part : <Code key={index}>{part}</Code>,
        )}
      </Text>
    </Group>
  );
}
