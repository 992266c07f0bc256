/** One notification's story: the way it took through the states, and everything that happened to it. */
import { Button, Group, Skeleton, Stack } from "@mantine/core";
import { IconInbox, IconMessages, IconTimeline } from "@tabler/icons-react";
import { useEffect } from "react";
import { isMiss } from "tidings/client";
import { Link } from "wouter";
import { changesOf } from "../../live/changes.js";
import { threadPath } from "../../live/open_thread.js";
import { isShownToUser } from "../../live/rows.js";
import { Empty, Failure } from "../../parts/empty.js";
import { Details, Facts } from "../../parts/facts.js";
import { Json } from "../../parts/json.js";
import { useThreadNames } from "../../parts/known_threads.js";
import { NotificationHead } from "../../parts/notification_head.js";
import { OpenPane } from "../../parts/panes.js";
import { SendAgain } from "../../parts/redrive.js";
import { goesTo, toldWhen } from "../../parts/routing.js";
import { Named } from "../../parts/thread_choice.js";
import { Time } from "../../parts/time.js";
import { counted, isPlainNotice } from "../../parts/words.js";
import { useAnswer, useClient, useSession } from "../../session/session.js";
import { Machine } from "./machine.js";
import { type Explanation, statesOf } from "./story_lines.js";
import { StoryTimeline } from "./timeline.js";

export function Story({ id, close }: { readonly id: string; readonly close: () => void }) {
  const client = useClient();
  const answer = useAnswer("notification/explain", { id });
  const { reload } = answer;
  useEffect(() => {
    const { stop } = changesOf(client, undefined).hear({
      changed: (notifications) => {
        if (notifications.some((one) => one.id === id || one.redrive_of === id)) reload();
      },
      reset: reload,
    });
    return stop;
  }, [client, id, reload]);

  const { value } = answer;
  if (value !== undefined && isMiss(value))
    return (
      <OpenPane title="Not there" label="Story" close={close}>
        <Empty icon={IconTimeline} title="There is no such notification">
          It may have been removed with old history, or it is another user's.
        </Empty>
      </OpenPane>
    );
  if (value === undefined)
    return (
      <OpenPane title="Story" label="Story" close={close}>
        {answer.state === "failed" ? <Failure error={answer.error} retry={reload} /> : <Waiting />}
      </OpenPane>
    );
  return <Told explanation={value} close={close} />;
}

function Told({ explanation, close }: { readonly explanation: Explanation; readonly close: () => void }) {
  const { user_id } = useSession();
  const threadName = useThreadNames();
  const { story, summary } = explanation;
  const [view] = explanation.notifications;
  if (view === undefined || explanation.kind === "event")
    return (
      <OpenPane title={<span className="outside">{summary}</span>} label="Story" close={close}>
        <Stack p="md">
          <StoryTimeline story={story} threadName={threadName} />
        </Stack>
      </OpenPane>
    );
  const wasRedriven = story.some(({ kind }) => kind === "redriven");
  const { address, target, handler, effective } = view;
  const [meant, goes] = [goesTo(view), goesTo(effective)];
  return (
    <OpenPane
      title="Notification"
      label="Story"
      close={close}
      actions={view.state === "FAILED" && !wasRedriven ? <SendAgain id={view.id} /> : null}
    >
      <Stack p="md" gap="lg">
        <div>
          <NotificationHead
            view={view}
            reader={view.user_id === user_id ? "you" : "other"}
            times={view.count > 1 ? counted(view.count, "time") : null}
          />
          <Group gap="xs" mt="sm">
            {isShownToUser(view) && view.user_id === user_id ? (
              <Button
                component={Link}
                href={`/inbox/${view.id}`}
                size="compact-sm"
                variant="light"
                leftSection={<IconInbox size={15} aria-hidden />}
              >
                In the inbox
              </Button>
            ) : null}
            {view.thread_id === null ? null : (
              <Button
                component={Link}
                href={threadPath(view.thread_id)}
                size="compact-sm"
                variant="light"
                leftSection={<IconMessages size={15} aria-hidden />}
                maw="100%"
              >
                <Named name={threadName(view.thread_id)} />
              </Button>
            )}
          </Group>
        </div>
        <Machine states={statesOf(story)} now={view.state} />
        <StoryTimeline story={story} threadName={threadName} />
        {view.data === null ? null : <Json name="Data" value={view.data} folded />}
        <Facts
          facts={[
            ["Goes to", goes],
            ["Was meant for", meant === goes ? null : meant],
            ["Told", toldWhen(effective, view.inject_at)],
            ["Priority", view.priority],
            ["Kind", isPlainNotice(view) ? null : view.kind],
            ["Source", view.source === "direct" ? "a program that notified directly" : view.source],
            ["Subject", view.subject],
            ["Subscriber", view.subscriber_id === "direct" ? null : view.subscriber_id],
            ["Instruction", view.directive],
            ["User", view.user_id],
            ["Attempts", view.attempts === 0 ? null : String(view.attempts)],
            ["Until", view.deadline === null ? null : <Time key="until" at={view.deadline} size="sm" c="inherit" />],
          ]}
        />
        <Details
          facts={[
            ["Declared", axes(address, target, handler)],
            ["Effective", axes(effective.address, effective.target, effective.handler)],
            ["Injection point", view.inject_at],
            ["Key", view.dedupe_key],
            ["Revision", String(view.revision)],
            ["Lease epoch", String(view.lease_epoch)],
            ["Conversation", view.thread_id],
            ["Id", view.id],
          ]}
        />
      </Stack>
    </OpenPane>
  );
}

function axes(address: string, target: string, handler: string): string {
  return `address ${address}, target ${target}, handler ${handler}`;
}

function Waiting() {
  return (
    <Stack p="md">
      <Skeleton h={16} w="60%" />
      <Skeleton h={120} />
      <Skeleton h={60} />
    </Stack>
  );
}
