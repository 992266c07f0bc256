/** The guided visit: one situation, fired for real, from the conversation to the inbox to the ledger. */
import { Alert, Box, Button, Flex, Group, Loader, Progress, Stack, Text, Title } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { useLocation } from "wouter";
import { outcomeOf } from "../parts/outcome.js";
import { StateBadge } from "../parts/states.js";
import { useAnswer } from "../session/session.js";
import { type Agent, agentOf } from "../views/try/agent.js";
import { type Run, useRun } from "../views/try/runs.js";
import { useWay, type Way } from "../views/try/way.js";
import { placeOf, useOutlined } from "./outlined.js";
import { endVisit } from "./visit.js";
import { conversationWords, inboxWords, WELCOME } from "./words.js";

const STEPS = 5;

export default function Tour() {
  const status = useAnswer("runtime/status", {});
  const [step, setStep] = useState(1);
  const { run, fire } = useRun("silence");
  const [fired, setFired] = useState<number | null>(null);
  const [, navigate] = useLocation();
  const agent = status.value === undefined ? null : agentOf(status.value);
  const mine = run !== undefined && run.number === fired ? run : null;
  const thread_id = mine?.thread_id ?? null;

  useEffect(() => {
    if (thread_id === null) return;
    setStep(3);
    navigate(`/threads/${thread_id}`);
  }, [thread_id, navigate]);

  if (agent === null) return null;
  const begin = () => {
    setFired((run?.number ?? 0) + 1);
    void fire(agent);
  };
  return (
    <Frame step={step}>
      {step === 1 ? (
        <Part title="What Tidings does" body={WELCOME} next={<Next onClick={() => setStep(2)}>Show me</Next>} />
      ) : null}
      {step === 2 ? <Happens run={mine} begin={begin} /> : null}
      {step > 2 && mine !== null ? (
        <Followed
          step={step}
          run={mine}
          agent={agent}
          again={begin}
          goTo={(next, path) => {
            setStep(next);
            navigate(path);
          }}
        />
      ) : null}
    </Frame>
  );
}

/** It takes room of its own: what it speaks of stays in sight. */
function Frame({ step, children }: { readonly step: number; readonly children: ReactNode }) {
  const id = useId();
  return (
    <Box
      component="section"
      aria-labelledby={id}
      bg="var(--mantine-color-default-hover)"
      mah="50dvh"
      style={{ flexShrink: 0, overflow: "auto", borderBottom: "1px solid var(--mantine-color-default-border)" }}
      onKeyDown={(event) => {
        if (event.key === "Escape") endVisit("skipped");
      }}
    >
      <Progress value={(step / STEPS) * 100} size={3} radius={0} aria-hidden />
      <Box px="md" py="sm">
        <Group justify="space-between" mb={2} wrap="nowrap">
          <Heading key={step} id={id} step={step} />
          {step === STEPS ? null : (
            <Button variant="subtle" color="gray" size="compact-xs" onClick={() => endVisit("skipped")}>
              Skip the tour
            </Button>
          )}
        </Group>
        {children}
      </Box>
    </Box>
  );
}

/** Whoever does not see the page hears where the visit has got to: it has the focus when a step begins. */
function Heading({ id, step }: { readonly id: string; readonly step: number }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <Title order={2} size="xs" c="dimmed" fw={600} id={id} ref={heading} tabIndex={-1} style={{ outline: "none" }}>
      A short tour, step {step} of {STEPS}
    </Title>
  );
}

function Part({
  title,
  body,
  children,
  next,
}: {
  readonly title: string;
  readonly body: readonly string[];
  readonly children?: ReactNode;
  readonly next: ReactNode;
}) {
  const narrow = useMediaQuery("(max-width: 48em)", false);
  return (
    <Flex
      direction={narrow ? "column" : "row"}
      gap={narrow ? "xs" : "xl"}
      align={narrow ? "stretch" : "flex-end"}
      maw={1_120}
    >
      <Stack gap={4} maw={820} style={{ flex: 1 }}>
        <Title order={3} size="h5">
          {title}
        </Title>
        {body.map((text) => (
          <Text key={text} size="sm">
            {text}
          </Text>
        ))}
        {children}
      </Stack>
      <Group justify="flex-end" gap="xs" ml="auto" wrap="nowrap">
        {next}
      </Group>
    </Flex>
  );
}

function Next({
  onClick,
  children,
  ...props
}: {
  readonly onClick: () => void;
  readonly children: ReactNode;
  readonly disabled?: boolean;
  readonly loading?: boolean;
}) {
  return (
    <Button size="sm" onClick={onClick} {...props}>
      {children}
    </Button>
  );
}

function Happens({ run, begin }: { readonly run: Run | null; readonly begin: () => void }) {
  const body = [
    "A deployment is rolled back. The agent is to tell you so, but somebody has asked it to stay silent.",
    "No deployment is touched: it is reported, by the method that your own programs use. What comes of it is real.",
  ];
  const next = (
    <Next onClick={begin} loading={run !== null && run.error === null}>
      Make it happen
    </Next>
  );
  return (
    <Part title="Something happens" body={body} next={next}>
      <Trouble run={run} />
    </Part>
  );
}

function Trouble({ run }: { readonly run: Run | null }) {
  if (run === null || run.error === null) return null;
  return (
    <Alert color="red" title="It did not go on">
      <Text size="sm" className="outside">
        {run.error}
      </Text>
    </Alert>
  );
}

interface FollowedProps {
  readonly step: number;
  readonly run: Run;
  readonly agent: Agent;
  readonly again: () => void;
  readonly goTo: (step: number, path: string) => void;
}

function Followed({ step, run, agent, again, goTo }: FollowedProps) {
  const { way, over } = useWay(run);
  const [notification] = way?.notifications ?? [];
  const id = notification?.id ?? "";
  useOutlined(placeOf(step, notification?.id));
  const arrived = over || notification?.channel === "inbox" || notification?.channel === "floor";
  if (step === 3)
    return (
      <Part
        title="In the conversation"
        body={conversationWords(agent, notification)}
        next={
          run.error === null ? (
            <Next onClick={() => goTo(4, "/inbox")} disabled={!arrived}>
              On to the inbox
            </Next>
          ) : (
            <Next onClick={again}>Once more</Next>
          )
        }
      >
        <Standing run={run} way={way} arrived={arrived} />
        <Trouble run={run} />
      </Part>
    );
  if (step === 4)
    return (
      <Part
        title="In your inbox"
        body={inboxWords(agent, notification)}
        next={<Next onClick={() => goTo(5, `/ledger/${id}`)}>On to the ledger</Next>}
      >
        <Standing run={run} way={way} arrived={arrived} />
      </Part>
    );
  return (
    <Part
      title="Why you were told"
      body={[
        "The ledger keeps the story of every notification: the way that it took, the event behind it, who held it and when, the exact words that went out to the model, and the rule that brought it to you.",
        "Four more situations are under “Try it”; what your own programs report comes in the same way.",
      ]}
      next={
        <>
          <Button
            size="sm"
            variant="default"
            onClick={() => {
              endVisit("done");
              goTo(STEPS, "/try");
            }}
          >
            More situations
          </Button>
          <Next onClick={() => endVisit("done")}>Finish</Next>
        </>
      }
    />
  );
}

function Standing({ run, way, arrived }: { readonly run: Run; readonly way: Way | null; readonly arrived: boolean }) {
  const [notification] = way?.notifications ?? [];
  return (
    <Group gap="xs" role="status" mih={24}>
      {notification === undefined ? (
        <>
          <Loader size={14} aria-hidden />
          <Text size="sm" c="dimmed">
            {run.doing ?? "It goes its way"}
          </Text>
        </>
      ) : (
        <>
          {arrived ? null : <Loader size={14} aria-hidden />}
          <StateBadge state={notification.state} />
          <Text size="sm">{outcomeOf(notification, "you")}</Text>
        </>
      )}
    </Group>
  );
}
