/** What the system showed in the conversation: a notice, or what the agent was to tell and the user got otherwise. */
import { ActionIcon, Group, Text, Tooltip } from "@mantine/core";
import { IconArrowUpRight, IconCheck, IconPinned, IconSpeakerphone, type TablerIcon } from "@tabler/icons-react";
import { useRef, useState } from "react";
import type { NotificationView } from "tidings/client";
import { useAcknowledgements } from "../../live/inbox_acknowledgements.js";
import { SEVERITIES } from "../../parts/states.js";
import { useRendered } from "./acknowledge.js";
import style from "./conversation.module.css";
import { LongText } from "./long_text.js";
import { useOwner } from "./owner.js";
import { LedgerLink, Pill, Word } from "./pill.js";
import type { NoticeItem } from "./rows.js";

const WHY: Readonly<Partial<Record<NonNullable<NotificationView["reason"]>, string>>> = {
  unacknowledged: "The agent was to tell you, and did not.",
  deadline: "The agent was to tell you, and did not come to it in time.",
  lease_expired: "The agent was to tell you, and was gone.",
  attempts: "The agent was to tell you, and could not be told.",
  stopped: "The agent was to tell you, and its turn was stopped.",
  paused: "It does not wait while the conversation is paused.",
  storm: "Too much was critical at once for the agent to tell.",
  thread_closed: "Its conversation was closed.",
  promoted: "The agent decided to bring this to you.",
};

function looksOf({ handler, reason, severity }: NotificationView): {
  readonly icon: TablerIcon;
  readonly color: string;
  readonly word: string;
} {
  if (reason === "promoted") return { icon: IconSpeakerphone, color: "violet", word: "Promoted" };
  if (handler === "agent") return { icon: IconArrowUpRight, color: "orange", word: "Escalated" };
  return { icon: IconPinned, color: SEVERITIES[severity].color, word: "Notice" };
}

export function Notice({ item }: { readonly item: NoticeItem }) {
  const { notification } = item.content;
  const { severity, content, count, handler, reason, read_at, id } = notification;
  const ref = useRef<HTMLDivElement>(null);
  const acknowledgements = useAcknowledgements();
  const isOwn = useOwner() === null;
  const [isDismissing, setDismissing] = useState(false);
  useRendered(ref, notification);
  const dismiss = () => {
    setDismissing(true);
    acknowledgements
      .send(notification, "dismissed")
      .catch(() => undefined)
      .finally(() => setDismissing(false));
  };
  const clicked = () => void acknowledgements.send(notification, "clicked").catch(() => undefined);
  const { icon: Severity, color, word } = SEVERITIES[severity];
  const why = handler === "agent" && reason !== null ? WHY[reason] : undefined;
  const isUnread = read_at === null;
  return (
    <div ref={ref}>
      <Pill
        {...looksOf(notification)}
        at={item.timestamp}
        more={
          <>
            <Word icon={Severity} color={color} word={word} />
            {count > 1 ? (
              <Text size="xs" c="dimmed" aria-label={`${count} times`}>
                ×{count}
              </Text>
            ) : null}
            {isUnread ? <span className={style["dot"]} role="img" aria-label="unread" /> : null}
          </>
        }
        actions={
          <Group gap={0} wrap="nowrap">
            {isUnread && isOwn ? (
              <Tooltip label="Dismiss">
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  size="md"
                  aria-label="Dismiss"
                  loading={isDismissing}
                  onClick={dismiss}
                >
                  <IconCheck size={16} stroke={1.7} />
                </ActionIcon>
              </Tooltip>
            ) : null}
            <LedgerLink id={id} {...(isOwn ? { onClick: clicked } : {})} />
          </Group>
        }
      >
        <Text component="div" size="sm" className="outside">
          <LongText text={content} />
        </Text>
        {why === undefined ? null : (
          <Text size="xs" c="dimmed" mt={4}>
            {isOwn ? why : why.replace(" you", " them")}
          </Text>
        )}
      </Pill>
    </div>
  );
}
