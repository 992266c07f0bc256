import { Anchor, Badge, Button, Code, Group, Switch, Table, Text, Tooltip } from "@mantine/core";
import { IconFileAlert, IconLock, IconPlugOff, type TablerIcon } from "@tabler/icons-react";
import { Link } from "wouter";
import { Time } from "../../parts/time.js";
import { type Fixed, fixedBecause, type Turn } from "./switches.js";
import classes from "./table.module.css";
import type { Subscriber } from "./types.js";

export function SubscriberTable({
  subscribers,
  turn,
}: {
  readonly subscribers: readonly Subscriber[];
  readonly turn: Turn;
}) {
  // A column that says nothing is none.
  const withState = subscribers.some(isWorthAWord);
  return (
    <Table verticalSpacing="sm" highlightOnHover aria-label="Subscribers">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Subscriber</Table.Th>
          <Table.Th visibleFrom="md">Takes</Table.Th>
          {withState ? <Table.Th visibleFrom="sm">State</Table.Th> : null}
          <Table.Th visibleFrom="sm" className={classes["narrow"] ?? ""}>
            Last match
          </Table.Th>
          <Table.Th className={classes["narrow"] ?? ""}>On</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {subscribers.map((one) => (
          <Row key={`${one.file} ${one.id}`} subscriber={one} turn={turn} withState={withState} />
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Row({
  subscriber,
  turn,
  withState,
}: {
  readonly subscriber: Subscriber;
  readonly turn: Turn;
  readonly withState: boolean;
}) {
  const { id, name, description, types, last_matches } = subscriber;
  const [last] = last_matches;
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap={6}>
          <Anchor component={Link} href={addressOf(id)} fw={500} size="sm" className="outside">
            {name ?? id}
          </Anchor>
          <Kind subscriber={subscriber} />
        </Group>
        <Text size="sm" c="dimmed" className="outside">
          {description ?? "Its file cannot be read."}
        </Text>
        {isWorthAWord(subscriber) ? (
          <Text size="sm" hiddenFrom="sm" component="div" mt={4}>
            <StateWord subscriber={subscriber} />
          </Text>
        ) : null}
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Group gap={6} wrap="nowrap">
          {types?.slice(0, 1).map((type) => (
            <Code key={type} className={`outside ${classes["type"]}`} title={type}>
              {type}
            </Code>
          ))}
          {types !== null && types.length > 1 ? (
            <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
              and {types.length - 1} more
            </Text>
          ) : null}
        </Group>
      </Table.Td>
      {withState ? (
        <Table.Td visibleFrom="sm">{isWorthAWord(subscriber) ? <StateWord subscriber={subscriber} /> : null}</Table.Td>
      ) : null}
      <Table.Td visibleFrom="sm">
        {last === undefined ? (
          <Text size="xs" c="dimmed">
            never
          </Text>
        ) : (
          <Time at={last.at} />
        )}
      </Table.Td>
      <Table.Td>
        <Told subscriber={subscriber} turn={turn} />
      </Table.Td>
    </Table.Tr>
  );
}

function Kind({ subscriber: { core, built_in } }: { readonly subscriber: Subscriber }) {
  if (core) return <Mark color="indigo">core</Mark>;
  return built_in ? null : <Mark color="teal">yours</Mark>;
}

function Mark({ color, children }: { readonly color: string; readonly children: string }) {
  return (
    <Badge size="sm" variant="outline" color={color} tt="none">
      {children}
    </Badge>
  );
}

const STATES = {
  active: { color: "green", word: "active" },
  disabled: { color: "gray", word: "switched off" },
  loaded: { color: "gray", word: "not enabled" },
  broken: { color: "red", word: "broken" },
} as const;

/** Most are active, and what is off for all says so where it would be switched. */
function isWorthAWord({ state }: Subscriber): boolean {
  return state === "disabled" || state === "broken";
}

export function StateWord({ subscriber: { state } }: { readonly subscriber: Subscriber }) {
  const { color, word } = STATES[state];
  return (
    <Badge variant="light" color={color} tt="none" miw="max-content">
      {word}
    </Badge>
  );
}

/** What is always on does not look like what is off for everybody. */
export const FIXED: Readonly<
  Record<Fixed["kind"], { readonly icon: TablerIcon; readonly color: string; readonly word: string }>
> = {
  core: { icon: IconLock, color: "indigo", word: "Always on" },
  not_enabled: { icon: IconPlugOff, color: "gray", word: "Off for all" },
  broken: { icon: IconFileAlert, color: "red", word: "Not in effect" },
};

/** Whether this user is told of it; where that is fixed, why. */
export function Told({
  subscriber,
  turn,
  label,
}: {
  readonly subscriber: Subscriber;
  readonly turn: Turn;
  /** Where no column says what it switches. */
  readonly label?: string;
}) {
  const { id, name, state } = subscriber;
  const fixed = fixedBecause(subscriber);
  if (fixed !== null) {
    const { icon: Icon, color, word } = FIXED[fixed.kind];
    return (
      <Tooltip label={fixed.why} multiline maw={280} events={{ hover: true, focus: true, touch: true }}>
        <Button
          component={Link}
          href={addressOf(id)}
          variant="subtle"
          size="compact-xs"
          px={0}
          fw={500}
          color={color}
          leftSection={<Icon size={16} stroke={1.7} aria-hidden />}
          aria-label={`${name ?? id}. ${fixed.why}`}
        >
          {word}
        </Button>
      </Tooltip>
    );
  }
  return (
    <Switch
      {...(label === undefined ? { "aria-label": `On: ${name ?? id}` } : { label })}
      checked={state !== "disabled"}
      disabled={turn.busy === id}
      onChange={(event) => turn.to(subscriber, event.currentTarget.checked)}
    />
  );
}

function addressOf(id: string): string {
  return `/subscribers/${encodeURIComponent(id)}`;
}
