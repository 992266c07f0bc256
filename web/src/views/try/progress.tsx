/** A situation as it goes its way: what happened, step by step, and where it stands in the ledger. */
import { Alert, Anchor, Badge, Button, Code, Group, Loader, Paper, Stack, Text, Timeline } from "@mantine/core";
import {
  IconAlertCircle,
  IconArrowRight,
  IconBolt,
  IconChevronDown,
  IconChevronRight,
  IconEye,
  IconPointFilled,
  IconRobot,
  IconServer,
  IconTool,
  IconUser,
  type TablerIcon,
} from "@tabler/icons-react";
import { useId, useState } from "react";
import { isMiss, type NotificationView } from "tidings/client";
import { Link } from "wouter";
import { readable } from "../../parts/readable.js";
import { ChannelBadge, StateBadge } from "../../parts/states.js";
import { Time } from "../../parts/time.js";
import { useClient } from "../../session/session.js";
import type { Run } from "./runs.js";
import { isTerminal, type Step, useWay, type Way } from "./way.js";

export function Progress({ run }: { readonly run: Run }) {
  const { way, over } = useWay(run);
  return (
    <Stack gap="sm">
      {run.error === null ? null : (
        <Alert color="red" icon={<IconAlertCircle />} title="It did not go on">
          <Text size="sm" className="outside">
            {run.error}
          </Text>
        </Alert>
      )}
      <Standing run={run} way={way} over={over} />
      {way === null ? null : (
        <Steps
          steps={way.steps}
          folds={over && !way.notifications.some(isUnseen)}
          waiting={!over && run.error === null}
        />
      )}
    </Stack>
  );
}

function Standing({ run, way, over }: { readonly run: Run; readonly way: Way | null; readonly over: boolean }) {
  return (
    <Paper withBorder p="sm">
      <Group justify="space-between" gap="xs">
        <Group gap="xs" role="status" wrap="nowrap">
          {over || run.error !== null ? null : <Loader size={14} aria-hidden />}
          <Text size="sm" fw={500}>
            {standingWords(run, way, over)}
          </Text>
        </Group>
        {run.thread_id === null ? null : (
          <Group gap="md">
            <Anchor component={Link} href={`/threads/${run.thread_id}`} size="sm">
              Conversation
            </Anchor>
            {way?.notifications.some(({ channel }) => channel === "inbox" || channel === "floor") ? (
              <Anchor component={Link} href="/inbox" size="sm">
                Inbox
              </Anchor>
            ) : null}
          </Group>
        )}
      </Group>
      {way?.notifications.map((notification) => (
        <Standpoint key={notification.id} notification={notification} />
      ))}
    </Paper>
  );
}

function standingWords({ doing, error }: Run, way: Way | null, over: boolean): string {
  if (error !== null) return "Stopped";
  if (way?.unmatched) return "No subscriber takes it: it is in the journal, and told to nobody";
  if (over && way?.notifications.some(isUnseen)) return "It was shown to you, and is unread until you have seen it";
  if (over) return "Done: it has come to its end in the ledger";
  if (doing !== null) return doing;
  if (way?.notifications.some(({ state }) => state === "ESCALATED")) return "It waits for you";
  return "It goes its way";
}

function Standpoint({ notification }: { readonly notification: NotificationView }) {
  const { id, kind, state, channel, content, reason } = notification;
  const line = readable(content);
  return (
    <Stack gap={6} mt="sm">
      <Group gap="xs">
        <StateBadge state={state} />
        <ChannelBadge channel={channel} />
        <Text size="sm" className="outside">
          {kind}
        </Text>
        {reason === null ? null : (
          <Badge variant="default" tt="none" fw={500}>
            {reason}
          </Badge>
        )}
        <Anchor component={Link} href={`/ledger/${id}`} size="sm" ml="auto">
          Its story in the ledger
        </Anchor>
      </Group>
      {line === content ? null : (
        <Text size="sm" className="outside">
          {line}
        </Text>
      )}
      <Code block className="outside" fz="xs">
        {content}
      </Code>
      {isUnseen(notification) ? <Seen notification={notification} /> : null}
    </Stack>
  );
}

/** What is shown to the user is settled by the user. */
function isUnseen(notification: NotificationView): boolean {
  const { channel, read_at, state } = notification;
  return (
    (channel === "inbox" || channel === "floor") &&
    read_at === null &&
    (state === "DELIVERED" || !isTerminal(notification))
  );
}

function Seen({ notification }: { readonly notification: NotificationView }) {
  const client = useClient();
  const [failed, setFailed] = useState<string | null>(null);
  const { id, revision } = notification;
  const see = () => {
    setFailed(null);
    client
      .call("notification/ack", { id, revision, action: "clicked" })
      .then((answer) => {
        if (isMiss(answer)) setFailed(answer.message);
      })
      .catch((error: unknown) => setFailed(error instanceof Error ? error.message : String(error)));
  };
  return (
    <Group gap="sm">
      <Button size="compact-sm" leftSection={<IconEye size={14} aria-hidden />} onClick={see}>
        I have seen it
      </Button>
      {failed === null ? null : (
        <Text size="sm" c="red" className="outside">
          {failed}
        </Text>
      )}
    </Group>
  );
}

const ICONS: Readonly<Record<Step["kind"], TablerIcon>> = {
  event: IconBolt,
  plane: IconPointFilled,
  user: IconUser,
  agent: IconRobot,
  system: IconServer,
  tool: IconTool,
  notice: IconEye,
};

/** What is over is folded to its end. */
const LAST = 4;

interface StepsProps {
  readonly steps: readonly Step[];
  readonly folds: boolean;
  readonly waiting: boolean;
}

function Steps({ steps, folds, waiting }: StepsProps) {
  const [all, setAll] = useState(false);
  const id = useId();
  const isLong = folds && steps.length > LAST + 1;
  const shown = isLong && !all ? steps.slice(-LAST) : steps;
  return (
    <Stack gap="xs" align="flex-start">
      {isLong ? (
        <Button
          size="compact-sm"
          variant="subtle"
          leftSection={all ? <IconChevronDown size={14} aria-hidden /> : <IconChevronRight size={14} aria-hidden />}
          aria-expanded={all}
          aria-controls={id}
          onClick={() => setAll(!all)}
        >
          {all ? "The last steps" : `All ${steps.length} steps`}
        </Button>
      ) : null}
      <StepList id={id} steps={shown} waiting={waiting} />
    </Stack>
  );
}

interface StepListProps {
  readonly id: string;
  readonly steps: readonly Step[];
  readonly waiting: boolean;
}

function StepList({ id, steps, waiting }: StepListProps) {
  return (
    <Timeline
      id={id}
      w="100%"
      bulletSize={20}
      lineWidth={1}
      active={steps.length}
      color="gray"
      aria-label="What has happened"
      role="list"
    >
      {steps.map((step) => (
        <OneStep key={step.key} step={step} />
      ))}
      {waiting ? (
        <Timeline.Item role="listitem" bullet={<Loader size={10} aria-hidden />}>
          <Text size="sm" c="dimmed">
            Waiting for what comes next
          </Text>
        </Timeline.Item>
      ) : null}
    </Timeline>
  );
}

function OneStep({ step }: { readonly step: Step }) {
  const { kind, title, text, path, at } = step;
  const Icon = ICONS[kind];
  return (
    <Timeline.Item role="listitem" bullet={<Icon size={12} aria-hidden />} mt="xs">
      <Group gap="xs" wrap="nowrap" align="flex-start" justify="space-between">
        <Text size="sm" className="outside" lineClamp={4}>
          {title === null ? null : <b>{title}: </b>}
          {text}
        </Text>
        <Time at={at} pt={2} />
      </Group>
      {path.length === 0 ? null : (
        <Group gap={6} mt={4}>
          {path.map((state, index) => (
            <Group key={state} gap={6} wrap="nowrap">
              {index === 0 ? null : <IconArrowRight size={12} aria-label="then" />}
              <StateBadge state={state} />
            </Group>
          ))}
        </Group>
      )}
    </Timeline.Item>
  );
}
