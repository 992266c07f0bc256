/** What can be done with a conversation as a whole. */
import { ActionIcon, Button, Group, Menu, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import {
  IconChecks,
  IconDots,
  IconEye,
  IconEyeOff,
  IconLock,
  IconPlayerPause,
  IconPlayerPlay,
} from "@tabler/icons-react";
import type { TidingsClient } from "tidings/client";
import { type Acknowledgements, useAcknowledgements } from "../../live/inbox_acknowledgements.js";
import type { Conversation } from "../../live/threads_state.js";
import { Dialog } from "../../parts/dialog.js";
import { useClient } from "../../session/session.js";

export function ThreadMenu({
  thread,
  isOwn,
  told,
}: {
  readonly thread: Conversation["thread"];
  /** What is another's can be looked at, and not be changed. */
  readonly isOwn: boolean;
  /** Whether what the agent was told is shown; null where that has a switch of its own. */
  readonly told: { readonly isShown: boolean; readonly show: (shown: boolean) => void } | null;
}) {
  const client = useClient();
  const acknowledgements = useAcknowledgements();
  const [isClosing, closing] = useDisclosure(false);
  const { thread_id, state } = thread;
  const act = (task: () => Promise<unknown>) => () => {
    task().catch((error: unknown) =>
      notifications.show({
        color: "red",
        title: "That could not be done",
        message: error instanceof Error ? error.message : String(error),
      }),
    );
  };
  const close = act(async () => {
    await client.call("thread/close", { thread_id });
    closing.close();
  });
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label="This conversation">
            <IconDots size={18} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label className="outside" maw={280}>
            {thread_id}
          </Menu.Label>
          {told === null ? null : (
            <Menu.Item
              leftSection={told.isShown ? <IconEyeOff size={16} /> : <IconEye size={16} />}
              onClick={() => told.show(!told.isShown)}
            >
              {told.isShown ? "Hide" : "Show"} what the agent was told
            </Menu.Item>
          )}
          {isOwn ? (
            <Menu.Item
              leftSection={<IconChecks size={16} />}
              onClick={act(() => dismissAll(client, acknowledgements, thread_id))}
            >
              Dismiss all notices
            </Menu.Item>
          ) : null}
          {isOwn && state === "running" ? (
            <Menu.Item
              leftSection={<IconPlayerPause size={16} />}
              onClick={act(() => client.call("thread/pause", { thread_id }))}
            >
              Pause
            </Menu.Item>
          ) : null}
          {isOwn && state === "paused" ? (
            <Menu.Item
              leftSection={<IconPlayerPlay size={16} />}
              onClick={act(() => client.call("thread/resume", { thread_id }))}
            >
              Resume
            </Menu.Item>
          ) : null}
          {!isOwn || state === "closed" ? null : (
            <Menu.Item color="red" leftSection={<IconLock size={16} />} onClick={closing.open}>
              Close…
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      <Dialog opened={isClosing} onClose={closing.close} title="Close this conversation?" centered>
        <Text size="sm">
          A turn that runs is cut short, and what was shown in it goes to the inbox. It can be read, and not be opened
          again.
        </Text>
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={closing.close} data-autofocus>
            Keep it open
          </Button>
          <Button color="red" onClick={close}>
            Close it
          </Button>
        </Group>
      </Dialog>
    </>
  );
}

/** Also what is not on the screen. */
async function dismissAll(client: TidingsClient, acknowledgements: Acknowledgements, thread_id: string): Promise<void> {
  for (let after: string | undefined; ; ) {
    const page = await client.call("notification/list", {
      thread_id,
      channel: "floor",
      unread: true,
      ...(after === undefined ? {} : { after }),
    });
    await acknowledgements.sendAll(page.notifications, "dismissed");
    if (page.next === null) return;
    after = page.next;
  }
}
