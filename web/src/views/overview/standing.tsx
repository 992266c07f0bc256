/** How it stands now: what is not settled, where, and for how long it has waited. */
import { BarChart } from "@mantine/charts";
import { Anchor, Center, Group, Stack, Text } from "@mantine/core";
import { memo } from "react";
import type { ResultOf } from "tidings/client";
import { Link } from "wouter";
import { CHANNELS, ChannelBadge, STATES } from "../../parts/states.js";
import { counted } from "../../parts/words.js";
import { showDeadLetters } from "../ledger/filters.js";
import { Panel } from "./panel.js";

type Now = ResultOf<"stats/series">["now"];
type Channel = keyof Now["depth"];
type State = keyof typeof STATES;

const NAMES = Object.keys(CHANNELS) as Channel[];
/** Those in which something still has a way to go. */
const RESTS = ["PENDING", "DISPATCHED", "LOCKED", "ESCALATED"] as const satisfies readonly State[];
const COLORS: Readonly<Record<(typeof RESTS)[number], string>> = {
  PENDING: "gray.6",
  DISPATCHED: "blue.6",
  LOCKED: "indigo.6",
  ESCALATED: "orange.6",
};
const HEIGHT = 170;

export const Depth = memo(function Depth({ now }: { readonly now: Now }) {
  const rows = NAMES.map((channel) => ({
    channel: CHANNELS[channel].word,
    counts: RESTS.map((state) => now.depth[channel][state] ?? 0),
  }));
  const sums = RESTS.map((_, index) => rows.reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0));
  const all = sums.reduce((sum, one) => sum + one, 0);
  const words = RESTS.map((state, index) => `${sums[index]} ${STATES[state].word}`).filter(
    (text) => !text.startsWith("0 "),
  );
  const open = all === 0 ? "everything is settled" : words.join(", ");
  const dead = now.dead_letters === 0 ? null : counted(now.dead_letters, "dead letter");
  return (
    <Panel
      title="What is open now"
      summary={`What is open now: ${open}${dead === null ? "" : `, ${dead}`}`}
      aside={
        <>
          {open}
          {dead === null ? null : (
            <>
              ,{" "}
              <Anchor component={Link} href="/ledger" inherit underline="always" onClick={showDeadLetters}>
                {dead}
              </Anchor>
            </>
          )}
        </>
      }
      height={HEIGHT}
      figures={{
        columns: ["Channel", ...RESTS.map((state) => STATES[state].word)],
        rows: rows.map(({ channel, counts }) => [channel, ...counts]),
        total: ["All", ...sums],
      }}
    >
      {all === 0 ? (
        <Nothing>Nothing waits.</Nothing>
      ) : (
        <BarChart
          h={HEIGHT}
          data={rows.map(({ channel, counts }) => ({
            channel,
            ...Object.fromEntries(RESTS.map((state, index) => [STATES[state].word, counts[index]])),
          }))}
          dataKey="channel"
          type="stacked"
          orientation="vertical"
          series={RESTS.filter((_, index) => sums[index] !== 0).map((state) => ({
            name: STATES[state].word,
            color: COLORS[state],
          }))}
          withLegend
          legendProps={{ verticalAlign: "bottom", height: 32, itemSorter: null }}
          gridAxis="y"
          tickLine="none"
          accessibilityLayer={false}
          xAxisProps={{ allowDecimals: false }}
          yAxisProps={{ width: 64 }}
          barProps={{ isAnimationActive: false }}
          maxBarWidth={24}
        />
      )}
    </Panel>
  );
});

/** `at`: when this was so. */
export function Oldest({ now, at }: { readonly now: Now; readonly at: number }) {
  const rows = NAMES.map((channel) => {
    const since = now.oldest[channel];
    return { channel, since, age_ms: since === null ? null : Math.max(0, at - Date.parse(since)) };
  });
  const waiting = rows.filter(({ age_ms }) => age_ms !== null);
  const words = waiting.map(({ channel, age_ms }) => `${CHANNELS[channel].word} ${duration(age_ms ?? 0)}`).join(", ");
  const aside = waiting.length === 0 ? "nothing waits" : words;
  return (
    <Panel
      title="Longest wait"
      summary={`Longest wait: ${aside}`}
      aside="The oldest that is open, by channel"
      figures={{
        columns: ["Channel", "Waits for"],
        rows: rows.map(({ channel, age_ms }) => [
          CHANNELS[channel].word,
          age_ms === null ? "nothing waits" : duration(age_ms),
        ]),
      }}
    >
      {waiting.length === 0 ? (
        <Text size="sm" c="dimmed">
          Nothing waits.
        </Text>
      ) : (
        <Stack gap={6}>
          {waiting.map(({ channel, age_ms }) => (
            <Group key={channel} justify="space-between">
              <ChannelBadge channel={channel} />
              <Text size="sm" fw={600}>
                {duration(age_ms ?? 0)}
              </Text>
            </Group>
          ))}
        </Stack>
      )}
    </Panel>
  );
}

function Nothing({ children }: { readonly children: string }) {
  return (
    <Center h={HEIGHT}>
      <Text size="sm" c="dimmed">
        {children}
      </Text>
    </Center>
  );
}

const UNITS = [
  { word: "d", ms: 86_400_000 },
  { word: "h", ms: 3_600_000 },
  { word: "min", ms: 60_000 },
] as const;

function duration(ms: number): string {
  const found = UNITS.find((unit) => ms >= unit.ms);
  return found === undefined ? `${Math.round(ms / 1_000)} s` : `${Math.floor(ms / found.ms)} ${found.word}`;
}
