/** Counts over time, step by step: as a line, beside each other, or one on the other. */
import { AreaChart, BarChart } from "@mantine/charts";
import { Center, Text } from "@mantine/core";
import { memo } from "react";
import type { ResultOf } from "tidings/client";
import { type Figures, Panel } from "./panel.js";
import type { Range } from "./ranges.js";

export type Point = ResultOf<"stats/series">["points"][number];

export interface Line {
  readonly label: string;
  /** Of one alone, where that is another word. */
  readonly one?: string;
  readonly color: string;
  readonly of: (point: Point) => number;
}

type Form = "line" | "beside" | "stacked";

interface Props {
  readonly title: string;
  /** `stacked`: what they make together can be seen; `beside`: also those that are the same. */
  readonly form?: Form;
  readonly lines: readonly Line[];
  readonly points: readonly Point[];
  readonly range: Range;
}

const HEIGHT = 220;
const count = new Intl.NumberFormat("en");

/** A picture is drawn anew only when there is something new in it. */
export const OverTime = memo(function OverTime({ title, form = "line", lines, points, range }: Props) {
  const time = new Intl.DateTimeFormat("en-GB", range.time);
  const rows = points.map((point) => ({
    at: time.format(new Date(point.at)),
    counts: lines.map(({ of }) => of(point)),
  }));
  const sums = lines.map((_, index) => rows.reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0));
  const aside = lines.map((line, index) => said(line, sums[index] ?? 0)).join(", ");
  const figures: Figures = {
    columns: [`From (each ${range.step})`, ...lines.map(({ label }) => label)],
    rows: rows.filter(({ counts }) => counts.some((one) => one > 0)).map(({ at, counts }) => [at, ...counts]),
    total: ["All", ...sums],
  };
  const data = rows.map(({ at, counts }) => ({
    at,
    ...Object.fromEntries(lines.map(({ label }, index) => [label, counts[index]])),
  }));
  // Of what there was none there is nothing to draw.
  const there = lines.filter((_, index) => sums[index] !== 0);
  return (
    <Panel
      title={title}
      summary={`${title} in ${range.words}: ${aside}`}
      aside={aside}
      figures={figures}
      height={HEIGHT}
    >
      {there.length === 0 ? (
        <Center h={HEIGHT}>
          <Text size="sm" c="dimmed">
            None in {range.words}.
          </Text>
        </Center>
      ) : (
        <Drawing form={form} lines={there} data={data} />
      )}
    </Panel>
  );
});

function said({ label, one }: Line, sum: number): string {
  return `${count.format(sum)} ${sum === 1 && one !== undefined ? one : label}`;
}

/** Room for the upper half of the highest number beside the grid. */
const MARGIN = { top: 10 };

function Drawing({
  form,
  lines,
  data,
}: {
  readonly form: Form;
  readonly lines: readonly Line[];
  readonly data: readonly { readonly at: string }[];
}) {
  const shared = {
    h: HEIGHT,
    dataKey: "at",
    series: lines.map(({ label, color }) => ({ name: label, color })),
    withLegend: true,
    legendProps: { verticalAlign: "bottom", height: 32, itemSorter: null },
    gridAxis: "x",
    tickLine: "none",
    // The table is for those who cannot look; a picture takes no focus.
    accessibilityLayer: false,
    xAxisProps: { minTickGap: 48 },
    yAxisProps: { allowDecimals: false, width: 44, interval: 0 },
    valueFormatter: (value: number) => count.format(value),
  } as const;
  // Bars, since the line around a stack would take the colour of its last part, also where that is none.
  if (form !== "line")
    return (
      <BarChart
        {...shared}
        data={[...data]}
        type={form === "stacked" ? "stacked" : "default"}
        barProps={{ isAnimationActive: false }}
        barChartProps={{ margin: MARGIN, barCategoryGap: form === "stacked" ? 1 : "15%", barGap: 1 }}
      />
    );
  const last = data.at(-1);
  return (
    <AreaChart
      {...shared}
      // The last step has a width, too.
      data={last === undefined ? [] : [...data, { ...last, at: "now" }]}
      curveType="stepAfter"
      withDots={false}
      strokeWidth={1.5}
      fillOpacity={0.2}
      areaProps={{ isAnimationActive: false }}
      areaChartProps={{ margin: MARGIN }}
    />
  );
}
