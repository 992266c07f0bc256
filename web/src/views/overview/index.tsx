/** What has happened, and how it stands: pictures rather than numbers. */
import "@mantine/charts/styles.css";
import {
  Anchor,
  Box,
  Code,
  Container,
  Group,
  SegmentedControl,
  SimpleGrid,
  Skeleton,
  Stack,
  Text,
} from "@mantine/core";
import { useDocumentVisibility } from "@mantine/hooks";
import { IconChartAreaLine } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import type { ResultOf } from "tidings/client";
import { Link } from "wouter";
import { Empty, Failure } from "../../parts/empty.js";
import { CHANNELS } from "../../parts/states.js";
import { useAnswer, useClient } from "../../session/session.js";
import { type Line, OverTime } from "./over_time.js";
import { ProviderHealth } from "./provider.js";
import { fittingRange, isRangeKey, RANGES, type Range, type RangeKey, rangeOf } from "./ranges.js";
import { Depth, Oldest } from "./standing.js";

type Series = ResultOf<"stats/series">;

const IN_AND_OUT: readonly Line[] = [
  { label: "events", one: "event", color: "indigo.6", of: ({ events }) => events },
  { label: "notifications", one: "notification", color: "teal.6", of: ({ notifications }) => notifications },
  { label: "merged", color: "gray.6", of: ({ merged }) => merged },
];
const DELIVERED: readonly Line[] = (["inbox", "floor", "agent", "context"] as const).map((channel) => ({
  label: CHANNELS[channel].word,
  color: `${CHANNELS[channel].color}.6`,
  of: ({ by_channel }) => by_channel[channel],
}));
const NOT_STRAIGHT: readonly Line[] = [
  { label: "escalated", color: "orange.6", of: ({ escalated }) => escalated },
  { label: "suppressed", color: "gray.6", of: ({ suppressed }) => suppressed },
  { label: "failed", color: "red.7", of: ({ failed }) => failed },
];
const TOKENS: readonly Line[] = [
  { label: "tokens", one: "token", color: "violet.6", of: ({ tokens_injected }) => tokens_injected },
];
const WAKES: readonly Line[] = [
  { label: "wakes", one: "wake", color: "grape.6", of: ({ wakes }) => wakes },
  { label: "carriers sent", one: "carrier sent", color: "cyan.7", of: ({ blocks_injected }) => blocks_injected },
];

const FIT_MS = 30_000;

export default function Overview() {
  const [chosen, setKey] = useState<RangeKey | null>(null);
  const fitting = useFittingRange();
  const key = chosen ?? fitting;
  return (
    <Container size="xl" py="md">
      <Stack gap="md">
        <Group justify="space-between" gap="sm">
          <SegmentedControl
            aria-label="How far back"
            size="xs"
            value={key ?? ""}
            onChange={(value) => isRangeKey(value) && setKey(value)}
            data={Object.entries(RANGES).map(([value, { label }]) => ({ value, label }))}
          />
          <Text size="xs" c="dimmed">
            Kept up to date while you look at it
          </Text>
        </Group>
        {key === null ? <Loading /> : <Shown range={RANGES[key]} />}
      </Stack>
    </Container>
  );
}

/** Null until it is known; found anew now and then, since what has happened grows old. */
function useFittingRange(): RangeKey | null {
  const client = useClient();
  const [fitting, setFitting] = useState<RangeKey | null>(null);
  const now = useTicks(FIT_MS);
  useEffect(() => {
    let over = false;
    const total = async ({ span_ms, step_ms }: Range) => {
      const from = new Date(now - span_ms).toISOString();
      return sum((await client.call("stats/series", { from, step_ms })).points);
    };
    const find = async () => {
      const { minutes, quarter, hour, day, week } = RANGES;
      // The longest first: what happens meanwhile is in all of the others.
      const long = { week: await total(week), day: await total(day), hour: await total(hour) };
      return fittingRange({ ...long, quarter: await total(quarter), minutes: await total(minutes) });
    };
    find().then(
      (found) => over || setFitting(found),
      // The pictures, which ask the same, say what is wrong.
      () => over || setFitting((before) => before ?? "hour"),
    );
    return () => {
      over = true;
    };
  }, [client, now]);
  return fitting;
}

/** How much has happened, of what makes for a picture. */
function sum(points: Series["points"]): number {
  return points.reduce(
    (all, { events, delivered, wakes, escalated, failed }) => all + events + delivered + wakes + escalated + failed,
    0,
  );
}

function Shown({ range }: { readonly range: Range }) {
  const now = useTicks(range.refresh_ms);
  const series = useAnswer("stats/series", {
    from: new Date(now - range.span_ms).toISOString(),
    step_ms: range.step_ms,
  });
  return (
    <>
      {series.state === "failed" ? <Failure error={series.error} retry={series.reload} /> : null}
      {series.value === undefined ? (
        series.state === "failed" ? null : (
          <Loading />
        )
      ) : (
        <Pictures series={series.value} now={now} />
      )}
    </>
  );
}

function Pictures({ series, now: at }: { readonly series: Series; readonly now: number }) {
  const { points, now, step_ms } = useSame(series);
  // That of what is shown, while another is on its way.
  const range = rangeOf(step_ms);
  const { provider } = series;
  const happened = sum(points) > 0;
  const shared = { points, range };
  const standing = (
    <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
      <Depth now={now} />
      <Oldest now={now} at={at} />
      <ProviderHealth provider={provider} at={at} />
    </SimpleGrid>
  );
  return (
    <>
      {happened ? (
        <>
          {standing}
          <OverTime title="Events and notifications" form="beside" lines={IN_AND_OUT} {...shared} />
          <SimpleGrid cols={{ base: 1, md: 2 }}>
            <OverTime title="Delivered, by channel" form="stacked" lines={DELIVERED} {...shared} />
            <OverTime title="Escalated, suppressed, failed" form="stacked" lines={NOT_STRAIGHT} {...shared} />
            <OverTime title="Tokens injected" lines={TOKENS} {...shared} />
            <OverTime title="Wakes and carriers" form="stacked" lines={WAKES} {...shared} />
          </SimpleGrid>
        </>
      ) : (
        <>
          <Empty icon={IconChartAreaLine} title={`Nothing has happened in ${range.words}`}>
            <Box mb={4}>
              Fire a situation under{" "}
              <Anchor component={Link} href="/try" inherit>
                Try it
              </Anchor>
              , or report something of your own:
            </Box>
            <Code>npx tidings emit cli.build.finished</Code>
          </Empty>
          {standing}
        </>
      )}
    </>
  );
}

/** The very same as before where nothing has happened since: nothing is drawn anew for it. */
function useSame(series: Series): Series {
  const known = useRef(series);
  const { seq, from, step_ms } = known.current;
  if (series.seq !== seq || series.from !== from || series.step_ms !== step_ms) known.current = series;
  return known.current;
}

function Loading() {
  return (
    <>
      <Skeleton h={290} />
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Skeleton h={290} />
        <Skeleton h={290} />
      </SimpleGrid>
    </>
  );
}

/** The time, anew every so often, while the page is looked at. */
function useTicks(every_ms: number): number {
  const visible = useDocumentVisibility() === "visible";
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!visible) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), every_ms);
    return () => clearInterval(timer);
  }, [visible, every_ms]);
  return now;
}
