/** One notification, whole: what it says, where it comes from, and where more is known about it. */
import { Button, Group, Skeleton, Stack } from "@mantine/core";
import { IconArrowRight, IconCheck, IconInbox, IconMessages, IconTimeline } from "@tabler/icons-react";
import { type ReactNode, useEffect, useEffectEvent } from "react";
import { isMiss, type NotificationView } from "tidings/client";
import { Link } from "wouter";
import { threadPath } from "../../live/open_thread.js";
import { isEarlier, isUnread, type Row } from "../../live/rows.js";
import { Empty, Failure } from "../../parts/empty.js";
import { Details, Facts } from "../../parts/facts.js";
import { Json } from "../../parts/json.js";
import { useThreadNames } from "../../parts/known_threads.js";
import { NotificationHead } from "../../parts/notification_head.js";
import { OpenPane } from "../../parts/panes.js";
import { SendAgainOnce } from "../../parts/redrive.js";
import { Named } from "../../parts/thread_choice.js";
import { clock, exactly, Time } from "../../parts/time.js";
import { counted, isPlainNotice } from "../../parts/words.js";
import { useAnswer } from "../../session/session.js";

export interface DetailProps {
  readonly id: string;
  readonly user_id: string;
  /** As the list has it; it may be on another page, or left out by a filter. */
  readonly row: Row | undefined;
  readonly close: () => void;
  readonly clicked: (seen: { readonly id: string; readonly revision: number }) => void;
  readonly dismiss: (seen: { readonly id: string; readonly revision: number }) => void;
}

export function Detail({ id, user_id, row, close, clicked, dismiss }: DetailProps) {
  const threadName = useThreadNames();
  const read = useAnswer("notification/read", { id, user_id });
  const { reload } = read;
  const now = row === undefined ? "" : `${row.revision} ${row.count} ${row.state} ${row.updated_at}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again when the list says that it is another
  useEffect(() => {
    if (now !== "") reload();
  }, [now]);

  const answered = read.value === undefined || isMiss(read.value) ? undefined : read.value;
  const found = answered === undefined ? undefined : newest(answered, row);
  const isRead = found !== undefined && found.id === id && !isUnread(found);
  const open = useEffectEvent(() => {
    if (found !== undefined && found.id === id && !isRead) clicked(found);
  });
  // Whoever has it before them has read it, and reads it again if its text changes.
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each text
  useEffect(() => open(), [found?.id, found?.revision]);

  if (read.value !== undefined && isMiss(read.value))
    return (
      <OpenPane title="Not there" label="Notification" close={close}>
        <Empty icon={IconInbox} title="There is no such notification">
          It may have been removed with old history, or it is another user's.
        </Empty>
      </OpenPane>
    );
  if (found === undefined || found.id !== id)
    return (
      <OpenPane title="Notification" label="Notification" close={close}>
        {read.state === "failed" ? <Failure error={read.error} retry={reload} /> : <Waiting />}
      </OpenPane>
    );
  const { data, thread_id, count, created_at } = found;
  return (
    <OpenPane
      title="Notification"
      label="Notification"
      close={close}
      actions={
        found.state === "FAILED" ? (
          <SendAgainOnce id={found.id} />
        ) : found.action === "dismissed" ? null : (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconCheck size={14} />}
            onClick={() => dismiss(found)}
          >
            Dismiss
          </Button>
        )
      }
    >
      <Stack p="md" gap="md">
        <NotificationHead
          view={found}
          reader="you"
          times={count > 1 ? `${counted(count, "time")} since ${clock(created_at)}` : null}
          since={exactly(created_at)}
        />
        <Group gap="xs">
          <Go to={`/ledger/${found.id}`} icon={<IconTimeline size={15} aria-hidden />}>
            Its story in the ledger
          </Go>
          {thread_id === null ? null : (
            <Go to={threadPath(thread_id)} icon={<IconMessages size={15} aria-hidden />}>
              <Named name={threadName(thread_id)} />
            </Go>
          )}
        </Group>
        {data === null ? null : <Json name="Data" value={data} />}
        <Facts
          facts={[
            ["From", found.source === "direct" ? "a program that notified you directly" : found.source],
            ["Kind", isPlainNotice(found) ? null : found.kind],
            ["About", found.subject],
            ["Subscriber", found.subscriber_id === "direct" ? null : found.subscriber_id],
            ["Priority", found.priority],
            ["Why it is here", found.reason === null ? null : found.reason.replaceAll("_", " ")],
            ["In general words, since", found.degraded],
            ["Came", <Time key="came" at={created_at} size="sm" c="inherit" />],
            ["Changed", <Time key="changed" at={found.updated_at} size="sm" c="inherit" />],
            ["Read", found.read_at === null ? "not yet" : <Time key="read" at={found.read_at} size="sm" c="inherit" />],
          ]}
        />
        <Details
          facts={[
            ["Key", found.dedupe_key],
            ["Revision", String(found.revision)],
            ["Conversation", thread_id],
            ["Id", found.id],
          ]}
        />
        {found.events.map((event) => (
          <Json key={event.id} name={`Event ${event.type}, ${exactly(event.timestamp)}`} value={event} folded />
        ))}
      </Stack>
    </OpenPane>
  );
}

/** As the list has it, where the list knows more: what is only in the answer is read again by then. */
function newest<View extends NotificationView>(answered: View, row: Row | undefined): View {
  if (row === undefined || row.id !== answered.id || !isEarlier(answered, row)) return answered;
  const { state, channel, severity, count, action, read_at, reason, updated_at } = row;
  return { ...answered, state, channel, severity, count, action, read_at, reason, updated_at };
}

function Go({ to, icon, children }: { readonly to: string; readonly icon: ReactNode; readonly children: ReactNode }) {
  return (
    <Button
      component={Link}
      href={to}
      size="compact-sm"
      variant="light"
      leftSection={icon}
      rightSection={<IconArrowRight size={14} aria-hidden />}
      maw="100%"
    >
      {children}
    </Button>
  );
}

function Waiting() {
  return (
    <Stack p="md">
      <Skeleton h={18} w="40%" />
      <Skeleton h={14} />
      <Skeleton h={14} w="80%" />
    </Stack>
  );
}
