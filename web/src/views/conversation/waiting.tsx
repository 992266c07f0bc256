/** Words that wait: for a turn of their own (they can be changed and taken back), or for the running one to take them up. */
import { ActionIcon, Button, Group, Stack, Text, Textarea, Tooltip } from "@mantine/core";
import { IconClock, IconCornerDownRight, IconPencil, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { isMiss } from "tidings/client";
import { useClient } from "../../session/session.js";
import style from "./conversation.module.css";
import { LongText } from "./long_text.js";
import type { WaitingItem } from "./rows.js";

export function Waiting({ items }: { readonly items: readonly WaitingItem[] }) {
  if (items.length === 0) return null;
  return (
    <Stack gap={4} mb={8} component="ul" p={0} m={0} style={{ listStyle: "none", maxHeight: 220, overflowY: "auto" }}>
      {items.map((item) => (
        <li key={item.item_id}>{item.type === "queued" ? <Queued item={item} /> : <Steer item={item} />}</li>
      ))}
    </Stack>
  );
}

function Steer({ item }: { readonly item: WaitingItem }) {
  return (
    <Group gap={8} wrap="nowrap" align="center" className={style["pill"]} data-tone="quiet" px={10} py={6}>
      <IconCornerDownRight size={16} aria-hidden style={{ flexShrink: 0 }} />
      <Text size="sm" fw={600}>
        Steer
      </Text>
      <Text component="div" size="sm" className="outside" style={{ flex: 1, minWidth: 0 }} lineClamp={3}>
        <LongText text={item.content.text} />
      </Text>
      <Text size="xs" c="dimmed">
        until its next step
      </Text>
    </Group>
  );
}

function Queued({ item }: { readonly item: WaitingItem }) {
  const client = useClient();
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const turn_id = item.turn_id ?? "";
  const act = async (change: () => Promise<object>) => {
    setProblem(null);
    try {
      const answer = await change();
      if (isMiss(answer)) setProblem(answer.message);
      else setText(null);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const save = () => act(() => client.call("queue/update", { turn_id, input: text ?? "" }));
  const remove = () => act(() => client.call("queue/remove", { turn_id }));
  return (
    <div className={style["pill"]} data-tone="quiet">
      <Group gap={8} wrap="nowrap" align="center" px={10} py={6}>
        <IconClock size={16} aria-hidden style={{ flexShrink: 0 }} />
        <Text size="sm" fw={600}>
          Queued
        </Text>
        {text === null ? (
          <Text component="div" size="sm" className="outside" style={{ flex: 1, minWidth: 0 }} lineClamp={3}>
            <LongText text={item.content.text} />
          </Text>
        ) : (
          <Textarea
            autosize
            maxRows={6}
            size="sm"
            style={{ flex: 1 }}
            aria-label="Queued message"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") setText(null);
              if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
                event.preventDefault();
                void save();
              }
            }}
            autoFocus
          />
        )}
        {text === null ? (
          <Group gap={0} wrap="nowrap">
            <Tooltip label="Change it">
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label="Change the queued message"
                onClick={() => setText(item.content.text)}
              >
                <IconPencil size={16} stroke={1.7} />
              </ActionIcon>
            </Tooltip>
            <Tooltip label="Take it back">
              <ActionIcon variant="subtle" color="gray" aria-label="Take the queued message back" onClick={remove}>
                <IconTrash size={16} stroke={1.7} />
              </ActionIcon>
            </Tooltip>
          </Group>
        ) : (
          <Group gap={6} wrap="nowrap">
            <Button size="compact-sm" onClick={save} disabled={text.trim() === ""}>
              Save
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => setText(null)}>
              Cancel
            </Button>
          </Group>
        )}
      </Group>
      {problem === null ? null : (
        <Text size="xs" c="red" px={10} pb={6} role="alert" className="outside">
          {problem}
        </Text>
      )}
    </div>
  );
}
