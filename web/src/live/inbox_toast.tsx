/** What a toast says. That it is on the screen is what the server is told. */
import { Group, Text, UnstyledButton } from "@mantine/core";
import { useEffect } from "react";
import type { NotificationView } from "tidings/client";
import { SEVERITIES } from "../parts/states.js";
import { isPlainNotice, namesOf, shortId } from "../parts/words.js";
import { type Acknowledgements, usePageVisible } from "./inbox_acknowledgements.js";
import { openThreadNow } from "./open_thread.js";
import { oneLine } from "./rows.js";

const WORDS_CHARS = 400;
/** How serious these are need not be said in words. */
const PLAIN: ReadonlySet<NotificationView["severity"]> = new Set(["debug", "info"]);

export function ToastTitle({ notification }: { readonly notification: NotificationView }) {
  const { count, severity } = notification;
  const { name, kind } = namesOf(notification);
  const { word } = SEVERITIES[severity];
  // What has no name of its own is called by how serious it is.
  const isNamed = !isPlainNotice(notification) || PLAIN.has(severity);
  return (
    <Group component="span" gap={6} wrap="nowrap">
      <Text span inherit className="outside" truncate>
        {isPlainNotice(notification) ? titled(isNamed ? name : word) : name}
      </Text>
      {PLAIN.has(severity) || !isNamed ? null : (
        <Text span size="xs" fw={600} style={{ whiteSpace: "nowrap" }}>
          {word}
        </Text>
      )}
      <Text span size="xs" c="dimmed" fw={400} className="outside" truncate>
        {kind}
      </Text>
      {count > 1 ? (
        <Text span size="xs" c="dimmed" fw={400} style={{ whiteSpace: "nowrap" }}>
          {count} times
        </Text>
      ) : null}
    </Group>
  );
}

function titled(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}

export function NotificationToast({
  notification,
  acknowledgements,
  open,
}: {
  readonly notification: NotificationView;
  readonly acknowledgements: Acknowledgements;
  readonly open: () => void;
}) {
  const isVisible = usePageVisible();
  const { id, revision, thread_id, channel } = notification;
  useEffect(() => {
    if (isVisible) acknowledgements.rendered({ id, revision });
  }, [isVisible, acknowledgements, id, revision]);
  return (
    <Words
      text={notification.content}
      open={open}
      where={channel === "floor" && thread_id !== null ? placeOf(thread_id) : null}
    />
  );
}

/** Where the conversation is that it is in, if it has a name that says so. */
export function placeOf(thread_id: string): string {
  const name = shortId(thread_id);
  if (!name.startsWith("…")) return `in ${name}`;
  return openThreadNow() === null ? "in a conversation" : "in another conversation";
}

export function Words({
  text,
  open,
  where,
}: {
  readonly text: string;
  readonly open: () => void;
  readonly where: string | null;
}) {
  return (
    <UnstyledButton onClick={open} display="block" w="100%">
      <Text size="sm" className="outside" lineClamp={3} c="var(--mantine-color-text)">
        {oneLine(text, WORDS_CHARS)}
      </Text>
      {where === null ? null : (
        <Text size="xs" c="dimmed" className="outside">
          {where}
        </Text>
      )}
    </UnstyledButton>
  );
}
