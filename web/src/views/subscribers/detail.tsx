import { Alert, Code, DataList, Divider, Group, Stack, Text, Title } from "@mantine/core";
import { IconFileAlert } from "@tabler/icons-react";
import { useState } from "react";
import { goesTo, toldWhen } from "../../parts/routing.js";
import { Matches } from "./matches.js";
import { PreviewPanel, type Source } from "./preview.js";
import { type Fixed, fixedBecause, type Turn } from "./switches.js";
import { FIXED, StateWord, Told } from "./table.js";
import type { Subscriber } from "./types.js";

export function Detail({ subscriber, turn }: { readonly subscriber: Subscriber; readonly turn: Turn }) {
  const { description, reason, last_matches, enabled } = subscriber;
  const fixed = fixedBecause(subscriber);
  const [source, setSource] = useState<Source>({ from: "sample" });
  return (
    <Stack gap="md">
      <Text size="sm" className="outside">
        {description ?? "Its file cannot be read."}
      </Text>
      <Group gap="sm">
        {fixed === null ? <Told subscriber={subscriber} turn={turn} label="On for me" /> : null}
        <StateWord subscriber={subscriber} />
      </Group>
      {fixed === null ? null : <WhyFixed fixed={fixed} />}
      {reason === null ? null : (
        <Alert color="red" icon={<IconFileAlert />} title="Its file cannot be used as it is" p="xs">
          <Text size="sm" className="outside">
            {reason}
          </Text>
        </Alert>
      )}
      <Facts subscriber={subscriber} />
      {enabled === null ? null : (
        <>
          <Divider />
          <Title order={3} size="h5">
            Last matches
          </Title>
          <Matches matches={last_matches} look={(event_id) => setSource({ from: "recent", event_id })} />
          <Divider />
          <Title order={3} size="h5">
            What it makes of an event
          </Title>
          <PreviewPanel subscriber={subscriber} source={source} choose={setSource} />
        </>
      )}
    </Stack>
  );
}

function WhyFixed({ fixed: { kind, why } }: { readonly fixed: Fixed }) {
  const { icon: Icon, color } = FIXED[kind];
  return (
    <Alert color={color} icon={<Icon />} p="xs">
      {why}
    </Alert>
  );
}

function Facts({ subscriber }: { readonly subscriber: Subscriber }) {
  const { id, version, types, sources, severity_filter, priority, inject_at, file, built_in } = subscriber;
  const { batch_window_ms, max_batch_size, dedupe_window_ms } = subscriber;
  const axes = axesOf(subscriber);
  const facts: readonly (readonly [string, string | null])[] = [
    ["Id", id],
    ["Version", version],
    ["Takes", types?.join(", ") ?? null],
    ["From", types === null ? null : (sources?.join(", ") ?? "any source")],
    ["Severity", severity_filter === null ? null : `${severity_filter} and above`],
    ["Priority", priority],
    ["Goes to", axes === null ? null : goesTo(axes)],
    ["Told", axes === null || inject_at === null ? null : toldWhen(axes, inject_at)],
    ["Batched", batched(batch_window_ms, max_batch_size)],
    ["Repeats", repeats(dedupe_window_ms)],
    ["File", built_in ? "built in" : (file ?? "given by the program")],
  ];
  return (
    <DataList size="sm" gap={4} labelWidth="110px">
      {facts.map(([label, value]) =>
        value === null ? null : (
          <DataList.Item key={label}>
            <DataList.ItemLabel>{label}</DataList.ItemLabel>
            <DataList.ItemValue>
              {label === "File" && !built_in ? (
                <Code className="outside">{value}</Code>
              ) : (
                <span className="outside">{value}</span>
              )}
            </DataList.ItemValue>
          </DataList.Item>
        ),
      )}
    </DataList>
  );
}

function batched(window_ms: number | null, size: number | null): string | null {
  if (window_ms === null) return null;
  return window_ms === 0 ? "each by itself" : `up to ${size} within ${seconds(window_ms)}`;
}

function repeats(window_ms: number | null): string | null {
  if (window_ms === null) return null;
  return window_ms === 0 ? "told each time" : `merged for ${seconds(window_ms)}`;
}

function axesOf({ address, target, handler }: Subscriber) {
  return address === null || target === null || handler === null ? null : { address, target, handler };
}

function seconds(ms: number): string {
  return `${ms / 1_000} s`;
}
