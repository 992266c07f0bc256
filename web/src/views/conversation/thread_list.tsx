/** The conversations: what each is about, how it stands, and what is new in it. */
import { ActionIcon, Badge, Box, Button, Group, Loader, Skeleton, Stack, Text, Tooltip } from "@mantine/core";
import { IconLock, IconMessagePlus, IconMessages, IconPlayerPause } from "@tabler/icons-react";
import type { KeyboardEvent } from "react";
import { Link } from "wouter";
import { type ThreadSummary, useThreads } from "../../live/threads.js";
import { Empty, Failure } from "../../parts/empty.js";
import { Time } from "../../parts/time.js";
import { useVisit } from "../../visit/visit.js";
import style from "./conversation.module.css";
import { nameOf } from "./names.js";
import { useSeen } from "./seen.js";

export function ThreadList({
  selected,
  isAlone,
  start,
  isStarting,
}: {
  readonly selected: string | null;
  /** Nothing else is on the screen. */
  readonly isAlone: boolean;
  readonly start: () => void;
  readonly isStarting: boolean;
}) {
  const { threads, error, hasMore, isCut, readMore, reload } = useThreads();
  const isSeen = useSeen(threads, selected);
  return (
    <nav className={style["list"]} data-alone={isAlone || undefined} aria-label="Conversations">
      <Group justify="space-between" px="md" py={8} wrap="nowrap">
        <Text size="sm" fw={600} component="h2">
          Conversations
        </Text>
        <Tooltip label="New conversation">
          <ActionIcon variant="light" size="lg" aria-label="New conversation" onClick={start} loading={isStarting}>
            <IconMessagePlus size={18} stroke={1.7} />
          </ActionIcon>
        </Tooltip>
      </Group>
      {error !== null ? <Failure error={error} retry={reload} /> : null}
      {threads === null && error === null ? <Skeletons /> : null}
      {threads?.length === 0 ? (
        isAlone ? (
          <Empty icon={IconMessages} title="No conversations yet">
            <Box mb="md">Start one, and say something to the agent.</Box>
            <StartButton start={start} />
          </Empty>
        ) : (
          <Text size="sm" c="dimmed" px="md">
            No conversations yet.
          </Text>
        )
      ) : null}
      {threads !== null && threads.length > 0 ? (
        <ul className={style["threads"]} onKeyDown={move}>
          {threads.map((thread) => (
            <li key={thread.thread_id}>
              <ThreadLink
                thread={thread}
                isSelected={thread.thread_id === selected}
                isNew={thread.thread_id !== selected && !isSeen(thread)}
              />
            </li>
          ))}
          {hasMore ? (
            <li>
              <Button variant="subtle" size="compact-sm" fullWidth mt={6} onClick={readMore}>
                Older conversations
              </Button>
            </li>
          ) : null}
          {isCut ? (
            <Text component="li" size="xs" c="dimmed" ta="center" p="xs">
              The {threads.length} that were active last. What came in older ones is in the inbox and the ledger, which
              lead there.
            </Text>
          ) : null}
        </ul>
      ) : null}
    </nav>
  );
}

/** Where there is none yet. While the visit goes on, that is what one is led through. */
export function StartButton({ start }: { readonly start: () => void }) {
  const isVisit = useVisit() === "on";
  return (
    <Button onClick={start} variant={isVisit ? "default" : "filled"}>
      New conversation
    </Button>
  );
}

function ThreadLink({
  thread,
  isSelected,
  isNew,
}: {
  readonly thread: ThreadSummary;
  readonly isSelected: boolean;
  readonly isNew: boolean;
}) {
  const { thread_id, state, active_at, active_turn_id, queued, unread } = thread;
  const isMarked = isNew || unread > 0;
  return (
    <Link
      href={`/threads/${encodeURIComponent(thread_id)}`}
      className={style["thread"] ?? ""}
      aria-current={isSelected ? "page" : undefined}
    >
      <Group gap={8} wrap="nowrap">
        <Text size="sm" fw={isMarked ? 650 : 450} className={style["title"]}>
          {nameOf(thread)}
        </Text>
        {active_turn_id === null ? null : (
          <Loader size={13} color="var(--mantine-primary-color-light-color)" aria-label="A turn runs" role="img" />
        )}
        {unread > 0 ? (
          <Badge size="sm" aria-label={`${unread} unread`}>
            {unread}
          </Badge>
        ) : isNew ? (
          <span className={style["dot"]} role="img" aria-label="Something new" />
        ) : null}
      </Group>
      <Group gap={8} mt={2} wrap="nowrap">
        <Time at={active_at} />
        {state === "paused" ? <State icon={IconPlayerPause} word="paused" /> : null}
        {state === "closed" ? <State icon={IconLock} word="closed" /> : null}
        {queued > 0 ? (
          <Text size="xs" c="dimmed">
            {queued} queued
          </Text>
        ) : null}
      </Group>
    </Link>
  );
}

function State({ icon: Icon, word }: { readonly icon: typeof IconLock; readonly word: string }) {
  return (
    <Group gap={3} wrap="nowrap">
      <Icon size={12} aria-hidden />
      <Text size="xs" c="dimmed">
        {word}
      </Text>
    </Group>
  );
}

function Skeletons() {
  return (
    <Stack gap="xs" px="md" aria-hidden>
      {[1, 2, 3, 4].map((one) => (
        <Skeleton key={one} h={44} />
      ))}
    </Stack>
  );
}

/** Up and down, by arrows or by j and k. */
function move(event: KeyboardEvent<HTMLUListElement>): void {
  const step =
    event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
  if (step === 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  const links = [...event.currentTarget.querySelectorAll("a")];
  const next = links[links.indexOf(document.activeElement as HTMLAnchorElement) + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}
