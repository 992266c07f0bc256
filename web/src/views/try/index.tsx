/** The situations that Tidings is for, to be seen for real. */
import { Alert, Button, Container, Group, Skeleton, Stack, Text } from "@mantine/core";
import { IconRoute } from "@tabler/icons-react";
import { Failure } from "../../parts/empty.js";
import { useAnswer } from "../../session/session.js";
import { startVisit } from "../../visit/visit.js";
import { type Agent, agentOf } from "./agent.js";
import { useNoToasts } from "./runs.js";
import { SituationCard } from "./situation_card.js";
import type { SituationKey } from "./situations.js";

const OFFERED: readonly SituationKey[] = ["command", "mcp", "budget", "critical", "silence"];

export default function TryIt() {
  const status = useAnswer("runtime/status", {});
  useNoToasts();
  return (
    <Container size="md" py="md">
      <Stack gap="md">
        <Group justify="space-between" align="flex-start" gap="sm">
          <Text size="sm" maw={560}>
            Fire a situation and watch what becomes of it, in a conversation of its own. What can be made to happen
            happens; the rest is reported by the same methods that your own programs use, and each card says which. What
            is said for you there, you could have typed. All of it stays in the journal.
          </Text>
          <Button
            variant="default"
            size="compact-md"
            leftSection={<IconRoute size={16} aria-hidden />}
            onClick={startVisit}
          >
            Take the tour
          </Button>
        </Group>
        {status.state === "failed" ? <Failure error={status.error} retry={status.reload} /> : null}
        {status.value === undefined ? (
          status.state === "loading" && OFFERED.map((key) => <Skeleton key={key} h={120} />)
        ) : (
          <Situations agent={agentOf(status.value)} />
        )}
      </Stack>
    </Container>
  );
}

function Situations({ agent }: { readonly agent: Agent }) {
  return (
    <>
      <AgentNote agent={agent} />
      {OFFERED.map((key) => (
        <SituationCard key={key} situation={key} agent={agent} />
      ))}
    </>
  );
}

function AgentNote({ agent: { kind, name } }: { readonly agent: Agent }) {
  if (kind === "rehearsal")
    return (
      <Text size="sm" c="dimmed">
        The agent here runs on the rehearsal model: it is offline, costs nothing, and does as it is told.
      </Text>
    );
  if (kind === "real")
    return (
      <Alert color="yellow" title={`The agent runs on ${name}`}>
        What it says and does is its own: a situation may go another way than is described, and costs tokens. Start the
        server with --provider rehearsal to see each of them as it is described.
      </Alert>
    );
  return (
    <Alert color="yellow" title="No agent is hosted here">
      What is for the agent waits until one of yours collects it. Start the server without --provider none to see the
      whole way: the rehearsal model needs no key.
    </Alert>
  );
}
