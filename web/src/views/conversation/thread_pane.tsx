/** One conversation: how it stands, what is in it, and where the user speaks. */
import { ActionIcon, Anchor, Badge, Button, Center, Group, Loader, Switch, Text } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { IconArrowLeft, IconEye, IconLock, IconMessage2, IconPlayerPause, IconRefresh } from "@tabler/icons-react";
import { TidingsError } from "tidings/client";
import { Link } from "wouter";
import { useThreads } from "../../live/threads.js";
import { useConversation } from "../../live/threads_conversation.js";
import type { Conversation } from "../../live/threads_state.js";
import { Empty, Failure } from "../../parts/empty.js";
import { useClient, useSession } from "../../session/session.js";
import { Composer } from "./composer.js";
import style from "./conversation.module.css";
import { Items } from "./items.js";
import { nameOf } from "./names.js";
import { OwnerProvider, useOwner } from "./owner.js";
import { Word } from "./pill.js";
import { ThreadMenu } from "./thread_menu.js";

export function ThreadPane({ thread_id, isAlone }: { readonly thread_id: string; readonly isAlone: boolean }) {
  const { user_id } = useSession();
  const live = useConversation(thread_id);
  const { conversation, error, retry } = live;
  const [observations, setObservations] = useLocalStorage({
    key: "show what the agent was told",
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  if (conversation === null)
    return (
      <div className={style["pane"]}>
        {isAlone ? <Back /> : null}
        {error === null ? (
          <Center h="100%">
            <Loader aria-label="Loading" />
          </Center>
        ) : isUnknown(error) ? (
          <Empty icon={IconMessage2} title="There is no such conversation">
            It may be another user's. The list has yours.
          </Empty>
        ) : (
          <Failure error={error} retry={retry} />
        )}
      </div>
    );
  const { thread, items, active, previous } = conversation;
  const isEmpty = items.length === 0 && active === null && previous === null;
  const owner = thread.user_id === user_id ? null : thread.user_id;
  return (
    <OwnerProvider value={owner}>
      <section className={style["pane"]} aria-label="Conversation with the agent">
        <Head
          thread={thread}
          isAlone={isAlone}
          isRunning={active !== null}
          observations={observations}
          setObservations={setObservations}
        />
        {error === null ? null : <Failure error={error} retry={retry} />}
        {owner === null ? null : <Theirs owner={owner} readAnew={live.readAnew} />}
        {thread.state === "paused" ? <Paused thread_id={thread_id} /> : null}
        {isEmpty ? (
          <Nothing isClosed={thread.state === "closed"} />
        ) : (
          <Items conversation={conversation} live={live} observations={observations} />
        )}
        {owner === null ? <Composer conversation={conversation} /> : null}
      </section>
    </OwnerProvider>
  );
}

function isUnknown(error: Error): boolean {
  return error instanceof TidingsError && error.code === "not_found";
}

function Back() {
  return (
    <ActionIcon component={Link} href="/threads" variant="subtle" color="gray" size="lg" aria-label="All conversations">
      <IconArrowLeft size={18} />
    </ActionIcon>
  );
}

function Head({
  thread,
  isAlone,
  isRunning,
  observations,
  setObservations,
}: {
  readonly thread: Conversation["thread"];
  readonly isAlone: boolean;
  readonly isRunning: boolean;
  readonly observations: boolean;
  readonly setObservations: (shown: boolean) => void;
}) {
  const { threads } = useThreads();
  const isOwn = useOwner() === null;
  const known = threads?.find(({ thread_id }) => thread_id === thread.thread_id);
  return (
    <Group className={style["head"]} gap="xs" wrap="nowrap">
      {isAlone ? <Back /> : null}
      <Text size="sm" fw={600} component="h2" className={style["title"]}>
        {known === undefined ? "Conversation" : nameOf(known)}
      </Text>
      {isRunning && isAlone ? (
        <Loader size={14} color="var(--mantine-primary-color-light-color)" role="img" aria-label="A turn runs" />
      ) : null}
      {isRunning && !isAlone ? (
        <Badge
          variant="light"
          color="indigo"
          tt="none"
          leftSection={<Loader size={10} color="var(--mantine-primary-color-light-color)" aria-hidden />}
        >
          running
        </Badge>
      ) : null}
      {thread.state === "paused" ? <Word icon={IconPlayerPause} color="yellow" word="paused" /> : null}
      {thread.state === "closed" ? <Word icon={IconLock} color="gray" word="closed" /> : null}
      {isAlone ? null : (
        <Switch
          size="sm"
          checked={observations}
          onChange={(event) => setObservations(event.currentTarget.checked)}
          label="Show what the agent was told"
        />
      )}
      {isOwn || isAlone ? (
        <ThreadMenu
          thread={thread}
          isOwn={isOwn}
          told={isAlone ? { isShown: observations, show: setObservations } : null}
        />
      ) : null}
    </Group>
  );
}

/** Nobody is told what happens to another user: it is read when it is asked for. */
function Theirs({ owner, readAnew }: { readonly owner: string; readonly readAnew: () => void }) {
  return (
    <Group className={style["bar"]} gap="sm" wrap="nowrap" role="note" aria-label="Whose conversation this is">
      <IconEye size={17} aria-hidden style={{ flexShrink: 0 }} />
      <Text size="sm" style={{ flex: 1, minWidth: 0 }}>
        This is <b className="outside">{owner}</b>’s conversation, as it was when you opened it. You can read it, and
        change nothing.
      </Text>
      <Button
        size="compact-sm"
        variant="default"
        style={{ flexShrink: 0 }}
        leftSection={<IconRefresh size={14} aria-hidden />}
        onClick={readAnew}
      >
        Read it again
      </Button>
    </Group>
  );
}

function Paused({ thread_id }: { readonly thread_id: string }) {
  const client = useClient();
  const isOwn = useOwner() === null;
  return (
    <Group className={style["bar"]} gap="sm" wrap="nowrap" role="status">
      <IconPlayerPause size={17} color="var(--mantine-color-yellow-text)" aria-hidden style={{ flexShrink: 0 }} />
      <Text size="sm" style={{ flex: 1 }}>
        <b>Paused.</b> The agent rests, and deadlines stand still. What is critical comes to {isOwn ? "you" : "them"}.
      </Text>
      {isOwn ? (
        <Button
          size="compact-sm"
          variant="default"
          style={{ flexShrink: 0 }}
          onClick={() => void client.call("thread/resume", { thread_id }).catch(() => undefined)}
        >
          Resume
        </Button>
      ) : null}
    </Group>
  );
}

function Nothing({ isClosed }: { readonly isClosed: boolean }) {
  const client = useClient();
  const isOwn = useOwner() === null;
  if (isClosed || !isOwn)
    return (
      <Center style={{ flex: 1 }}>
        <Empty icon={IconMessage2} title={isClosed ? "Nothing was said in it" : "Nothing was said yet"} />
      </Center>
    );
  const isRehearsal = client.server?.agent?.provider === "rehearsal";
  return (
    <Center style={{ flex: 1, minHeight: 0, overflowY: "auto" }}>
      <Empty icon={IconMessage2} title="Nothing was said yet">
        Say something to the agent below.
        {isRehearsal ? (
          <>
            {" "}
            It runs on the rehearsal model, which needs no key: <b>say slowly 40</b> gives you something to steer and to
            stop, <b>stay silent</b> something that is escalated. More under{" "}
            <Anchor component={Link} href="/try">
              Try it
            </Anchor>
            .
          </>
        ) : null}
      </Empty>
    </Center>
  );
}
