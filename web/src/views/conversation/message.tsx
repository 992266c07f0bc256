/** What was said: by the user, by the agent, and what the agent is saying now. */
import { Badge, Group, Text } from "@mantine/core";
import { IconCornerDownRight, IconCut, IconRobot } from "@tabler/icons-react";
import { useEffect } from "react";
import { Time } from "../../parts/time.js";
import style from "./conversation.module.css";
import { LongText } from "./long_text.js";
import { useOwner } from "./owner.js";
import type { MessageItem } from "./rows.js";
import { unfold } from "./unfolded.js";

/** What the agent says is what one came for. */
const LONG_ANSWER = 40_000;

function nameOf(turn_id: string | null): string {
  return `said in ${turn_id}`;
}

export function Message(props: { readonly item: MessageItem; readonly head: boolean; readonly cut: string | null }) {
  return props.item.role === "user" ? <FromUser {...props} /> : <FromAgent {...props} />;
}

function FromUser({ item }: { readonly item: MessageItem }) {
  const { text, steered } = item.content;
  const who = useOwner() ?? "You";
  return (
    <article className={style["user"]} aria-label={who}>
      <Group gap={8} mb={3}>
        {steered === true ? (
          <Badge
            size="sm"
            variant="light"
            color="gray"
            tt="none"
            leftSection={<IconCornerDownRight size={12} aria-hidden />}
          >
            steered the turn
          </Badge>
        ) : null}
        <Text size="xs" fw={600} className="outside">
          {who}
        </Text>
        <Time at={item.timestamp} />
      </Group>
      <Text component="div" size="sm" className={`outside ${style["bubble"]}`}>
        <LongText text={text} />
      </Text>
    </article>
  );
}

function FromAgent({
  item,
  head,
  cut,
}: {
  readonly item: MessageItem;
  readonly head: boolean;
  readonly cut: string | null;
}) {
  return (
    <article aria-label="Agent">
      {head ? <AgentHead at={item.timestamp} /> : null}
      <Text component="div" size="sm" className="outside">
        <LongText text={item.content.text} name={nameOf(item.turn_id)} long={LONG_ANSWER} />
      </Text>
      {cut === null ? null : (
        <Group gap={6} mt={6} wrap="nowrap" align="flex-start">
          <IconCut
            size={15}
            color="var(--mantine-color-orange-text)"
            aria-hidden
            style={{ flexShrink: 0, marginTop: 2 }}
          />
          <Text size="xs" className="outside">
            <b>Cut off</b> {cut}
          </Text>
        </Group>
      )}
    </article>
  );
}

function AgentHead({ at }: { readonly at?: string }) {
  return (
    <Group gap={8} mb={3}>
      <IconRobot size={16} stroke={1.7} className={style["agent"]} aria-hidden />
      <Text size="xs" fw={600}>
        Agent
      </Text>
      {at === undefined ? null : <Time at={at} />}
    </Group>
  );
}

/** Text as it comes, all of it, also when it is no longer coming; before the first word, that it is at work. */
export function Saying({
  turn_id,
  text,
  head,
}: {
  readonly turn_id: string;
  readonly text: string;
  readonly head: boolean;
}) {
  useEffect(() => unfold(nameOf(turn_id)), [turn_id]);
  return (
    <article aria-label="Agent, answering" aria-busy="true">
      {head ? <AgentHead /> : null}
      <Text component="div" size="sm" className={`outside ${style["caret"]}`} {...(text === "" ? { c: "dimmed" } : {})}>
        {text === "" ? "At work" : text}
      </Text>
    </article>
  );
}
