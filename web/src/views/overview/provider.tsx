/** How the model's provider does, since the server was started. */
import { Group, RingProgress, Stack, Text, ThemeIcon } from "@mantine/core";
import { IconCircleCheck, IconClockPause, IconCloudOff, IconRobotOff, type TablerIcon } from "@tabler/icons-react";
import type { ResultOf } from "tidings/client";
import { Time } from "../../parts/time.js";
import { counted } from "../../parts/words.js";
import { useAnswer } from "../../session/session.js";
import { Panel } from "./panel.js";

type Provider = NonNullable<ResultOf<"stats/series">["provider"]>;

interface Health {
  readonly icon: TablerIcon;
  readonly color: string;
  readonly words: string;
}

export function ProviderHealth({ provider, at }: { readonly provider: Provider | null; readonly at: number }) {
  const started = useAnswer("runtime/status", {}).value?.started_at;
  if (provider === null)
    return (
      <Panel
        title="Provider"
        summary="No agent is hosted here"
        figures={{ columns: ["Provider", "Calls"], rows: [["none", 0]] }}
      >
        <Words health={{ icon: IconRobotOff, color: "gray", words: "No agent is hosted here." }}>
          What is for agents waits for those that collect it.
        </Words>
      </Panel>
    );
  const { name, model, calls, retries, failures, last_failure, last_answer_at } = provider;
  const health = healthOf(provider, at);
  const title = model === "" || model === name ? name : `${name}, ${model}`;
  const answered = Math.max(0, calls - failures);
  return (
    <Panel
      title="Provider"
      summary={`Provider ${title}: ${health.words} ${counted(calls, "call")}, ${counted(retries, "retry", "retries")}, ${counted(failures, "failure")} since the server was started`}
      aside={title}
      figures={{
        columns: ["Since the server was started", "Count"],
        rows: [
          ["calls", calls],
          ["answered", answered],
          ["retries", retries],
          ["failures", failures],
        ],
      }}
    >
      <Group wrap="nowrap" gap="lg">
        <RingProgress
          size={132}
          thickness={12}
          roundCaps
          sections={
            calls === 0
              ? [{ value: 100, color: "gray.4" }]
              : [
                  { value: (answered / calls) * 100, color: "green.7" },
                  { value: (Math.min(failures, calls) / calls) * 100, color: "red.7" },
                ].filter(({ value }) => value > 0)
          }
          label={
            <Text ta="center" size="sm" fw={600}>
              {counted(calls, "call")}
            </Text>
          }
        />
        <Words health={health}>
          {last_answer_at === null ? (
            "It has not answered yet."
          ) : (
            <>
              Last answer <Time at={last_answer_at} span size="sm" />.
            </>
          )}
          {last_failure === null ? null : (
            <Text size="sm" c="dimmed" className="outside">
              Last failure <Time at={last_failure.at} span size="sm" />: {last_failure.message ?? last_failure.kind}
            </Text>
          )}
          {retries === 0 ? null : (
            <Text size="sm" c="dimmed">
              {counted(retries, "call was", "calls were")} made again.
            </Text>
          )}
          {started === undefined ? null : (
            <Text size="sm" c="dimmed">
              Counted since the server was started, <Time at={started} span size="sm" />.
            </Text>
          )}
        </Words>
      </Group>
    </Panel>
  );
}

function healthOf({ calls, last_failure, last_answer_at, rate_limited_until }: Provider, at: number): Health {
  if (rate_limited_until !== null && Date.parse(rate_limited_until) > at)
    return { icon: IconClockPause, color: "yellow", words: "It asks to be left alone for a while." };
  const failing = last_failure !== null && (last_answer_at === null || last_failure.at > last_answer_at);
  if (failing) return { icon: IconCloudOff, color: "red", words: "Its last call has failed." };
  return { icon: IconCircleCheck, color: "green", words: calls === 0 ? "Nothing was asked yet." : "Working" };
}

function Words({
  health: { icon: Icon, color, words },
  children,
}: {
  readonly health: Health;
  readonly children: React.ReactNode;
}) {
  return (
    <Stack gap={6} miw={0}>
      <Group gap="xs" wrap="nowrap">
        <ThemeIcon variant="light" color={color} size="sm" radius="xl">
          <Icon size={14} aria-hidden />
        </ThemeIcon>
        <Text size="sm" fw={600}>
          {words}
        </Text>
      </Group>
      <Text size="sm" c="dimmed" component="div">
        {children}
      </Text>
    </Stack>
  );
}
