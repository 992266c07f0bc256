/** What the system has to do with turns: it opened one, reminded the agent, or one ended otherwise than with its answer. */
import { Text } from "@mantine/core";
import { IconBolt, IconCircleX, IconHandStop, IconInfoCircle, IconMessageForward } from "@tabler/icons-react";
import type { PageTurn } from "../../live/threads_state.js";
import style from "./conversation.module.css";
import { FoldedPill, Pill } from "./pill.js";
import type { MessageItem } from "./rows.js";

export function SystemMessage({ item, opens }: { readonly item: MessageItem; readonly opens: boolean }) {
  const { text } = item.content;
  if (opens)
    return (
      <FoldedPill
        icon={IconBolt}
        color="grape"
        word="System turn"
        at={item.timestamp}
        more={
          <Text size="sm" className={style["reason"] ?? ""}>
            {reasonOf(text)}
          </Text>
        }
      >
        <Text size="sm" className="outside">
          {text}
        </Text>
      </FoldedPill>
    );
  return (
    <FoldedPill icon={IconInfoCircle} color="gray" word="The system to the agent" at={item.timestamp} tone="quiet">
      <Text size="sm" className="outside">
        {text}
      </Text>
    </FoldedPill>
  );
}

/** What it says to the agent, as it is to whoever looks on. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^The system opened this turn because something critical has happened\./, "because something critical has happened"],
  [/^The system opened this turn: there is something to tell you\./, "there is something to tell the agent"],
  [/^The system opened this turn for you alone:/, "for the agent alone, to decide"],
];

/** Why the system opened it: that it did stands before it. */
function reasonOf(text: string): string {
  const [, known] = REASONS.find(([words]) => words.test(text)) ?? [];
  return known ?? /^[^.\n]{1,200}\./.exec(text)?.[0] ?? text.slice(0, 200);
}

export function TurnEnd({ turn, words }: { readonly turn: PageTurn; readonly words: string }) {
  const at = turn.created_at;
  if (turn.state === "failed")
    return (
      <Pill icon={IconCircleX} color="red" word="Turn failed" at={at}>
        <Text size="sm" className="outside">
          {words}
        </Text>
      </Pill>
    );
  const more = (
    <Text size="sm" className="outside">
      {words}
    </Text>
  );
  return turn.state === "stopped" ? (
    <Pill icon={IconHandStop} color="gray" word="Stopped" at={at} more={more} tone="quiet" />
  ) : (
    <Pill icon={IconMessageForward} color="gray" word="Interrupted" at={at} more={more} tone="quiet" />
  );
}
