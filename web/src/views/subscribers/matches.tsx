/** What a subscriber took last. */
import { Anchor, Badge, Button, Code, Table, Text } from "@mantine/core";
import { IconEye } from "@tabler/icons-react";
import { Fragment } from "react";
import { Link } from "wouter";
import { Time } from "../../parts/time.js";
import classes from "./table.module.css";
import type { Match } from "./types.js";

const OUTCOMES: Readonly<Record<Match["outcome"], string>> = {
  queued: "made a notification",
  batched: "in a batch",
  merged: "counted",
  filtered: "below its filter",
  muted: "switched off",
};

export function Matches({
  matches,
  look,
}: {
  readonly matches: readonly Match[];
  readonly look: (event_id: string) => void;
}) {
  if (matches.length === 0)
    return (
      <Text size="sm" c="dimmed">
        It has taken nothing for you yet.
      </Text>
    );
  return (
    <Table aria-label="Last matches" verticalSpacing={4}>
      <Table.Tbody>
        {matches.map(({ event_id, event_type, at, outcome, notification_id }) => (
          <Table.Tr key={event_id}>
            <Table.Td>
              <Code className={classes["dotted"] ?? ""}>{dotted(event_type)}</Code>
            </Table.Td>
            <Table.Td visibleFrom="xs">
              <Badge variant="default" tt="none" fw={500}>
                {OUTCOMES[outcome]}
              </Badge>
            </Table.Td>
            <Table.Td>
              <Time at={at} />
            </Table.Td>
            <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
              <Anchor component={Link} href={`/ledger/${notification_id}`} size="xs" mr="xs">
                Story
              </Anchor>
              <Button
                variant="subtle"
                size="compact-xs"
                leftSection={<IconEye size={14} aria-hidden />}
                aria-label={`Preview ${event_type}`}
                onClick={() => look(event_id)}
              >
                Preview
              </Button>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** A type of event is broken after its dots, and not within its words. */
function dotted(type: string) {
  return type.split(".").map((word, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a type never changes
    <Fragment key={index}>
      {index === 0 ? null : (
        <>
          .<wbr />
        </>
      )}
      {word}
    </Fragment>
  ));
}
