/** The conversation itself: only what is in view is in the page, its end stays in view, older items come when one scrolls up. */
import { ActionIcon, Loader, Text, Tooltip } from "@mantine/core";
import { IconArrowDown } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { LiveConversation } from "../../live/threads_conversation.js";
import type { Conversation } from "../../live/threads_state.js";
import style from "./conversation.module.css";
import { Message, Saying } from "./message.js";
import { Notice } from "./notice.js";
import { Observed } from "./observed.js";
import { useOwner } from "./owner.js";
import { type Row, rowsOf, speaksOn } from "./rows.js";
import { SystemMessage, TurnEnd } from "./system_turn.js";
import { ToolCall } from "./tool_call.js";
import { LineContext } from "./unfolded.js";

/** So near to the end counts as there. */
const NEAR_PX = 60;
/** So near to the beginning, older items are asked for. */
const NEAR_ROWS = 8;

export function Items({
  conversation,
  live,
  observations,
}: {
  readonly conversation: Conversation;
  readonly live: LiveConversation;
  readonly observations: boolean;
}) {
  const { items, turns, active, saying, previous } = conversation;
  const isOwn = useOwner() === null;
  const told = useMemo(() => rowsOf({ items, turns }, { observations, isOwn }), [items, turns, observations, isOwn]);
  const rows = useMemo(() => withSaying(told, active?.turn_id ?? null, saying?.text ?? ""), [told, active, saying]);
  const scroll = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const [isAway, setAway] = useState(false);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: (index) => estimate(rows[index]),
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 6,
    paddingStart: 12,
    paddingEnd: 16,
    anchorTo: "end",
    scrollEndThreshold: NEAR_PX,
  });
  const size = virtual.getTotalSize();
  const first = virtual.getVirtualItems()[0]?.index ?? 0;

  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever there is more, or something has another size
  useLayoutEffect(() => {
    const element = scroll.current;
    if (isAtEnd.current && element !== null) element.scrollTop = element.scrollHeight;
  }, [rows, size]);

  const { isReadingOlder, readOlder, error } = live;
  const wantsOlder = previous !== null && first < NEAR_ROWS && !isReadingOlder && error === null;
  useEffect(() => {
    if (wantsOlder) readOlder();
  }, [wantsOlder, readOlder]);

  const look = () => {
    const element = scroll.current;
    if (element === null) return;
    isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX;
    setAway(!isAtEnd.current);
  };
  const toEnd = () => {
    isAtEnd.current = true;
    setAway(false);
    virtual.scrollToEnd();
  };

  return (
    <div style={{ position: "relative", flex: 1, minHeight: 0, display: "flex" }}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keyboard */}
      <div ref={scroll} className={style["scroll"]} onScroll={look} tabIndex={0} role="log" aria-label="Conversation">
        {previous === null ? null : (
          <Text size="xs" c="dimmed" ta="center" pos="absolute" w="100%" pt={4}>
            {isReadingOlder ? <Loader size={14} aria-label="Reading older messages" /> : "Older messages follow"}
          </Text>
        )}
        <div style={{ height: size, position: "relative" }}>
          {virtual.getVirtualItems().map(({ key, index, start }) => {
            const row = rows[index];
            return row === undefined ? null : (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className={style["row"]}
                style={{ transform: `translateY(${start}px)` }}
              >
                <Line row={row} />
              </div>
            );
          })}
        </div>
      </div>
      {isAway ? (
        <Tooltip label="To the newest">
          <ActionIcon
            className={style["jump"]}
            radius="xl"
            size="lg"
            variant="default"
            aria-label="To the newest"
            onClick={toEnd}
          >
            <IconArrowDown size={18} />
          </ActionIcon>
        </Tooltip>
      ) : null}
    </div>
  );
}

const Line = memo(function Line({ row }: { readonly row: Row }) {
  const head = "head" in row ? row.head : false;
  return (
    <div className={style["line"]} data-head={head || undefined}>
      <LineContext value={row.key}>
        <Shown row={row} />
      </LineContext>
    </div>
  );
});

function Shown({ row }: { readonly row: Row }) {
  switch (row.kind) {
    case "message":
      return <Message {...row} />;
    case "system":
      return <SystemMessage item={row.item} opens={row.opens} />;
    case "tool_call":
      return <ToolCall item={row.item} />;
    case "notice":
      return <Notice item={row.item} />;
    case "observed":
      return <Observed items={row.items} />;
    case "turn_end":
      return <TurnEnd turn={row.turn} words={row.words} />;
    case "saying":
      return <Saying {...row} />;
  }
}

/** The turn that runs speaks at the end. */
function withSaying(rows: readonly Row[], active: string | null, text: string): readonly Row[] {
  if (active === null) return rows;
  return [
    ...rows,
    { kind: "saying", key: `saying ${active}`, turn_id: active, text, head: !speaksOn(rows.at(-1), active) },
  ];
}

function estimate(row: Row | undefined): number {
  switch (row?.kind) {
    case "message":
    case "saying":
      return 64;
    case "notice":
      return 92;
    case "system":
    case "turn_end":
      return 74;
    default:
      return 46;
  }
}
