/** What the system shows to the user: the list, and the one that is open. */
import { Skeleton, Stack, Text } from "@mantine/core";
import { useDisclosure, useElementSize } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { IconInbox, IconMoodSmile } from "@tabler/icons-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { isMiss } from "tidings/client";
import { useLocation, useRoute } from "wouter";
import { useFeed } from "../../live/feed.js";
import { type Seen, useAcknowledgements, usePageVisible } from "../../live/inbox_acknowledgements.js";
import { isUnread, type Row } from "../../live/rows.js";
import { Empty, Failure, NothingChosen } from "../../parts/empty.js";
import { Fresh, useFresh } from "../../parts/fresh.js";
import { useThreadNames } from "../../parts/known_threads.js";
import { useListKeys } from "../../parts/list_keys.js";
import { Panes } from "../../parts/panes.js";
import { LIST_SHORTCUTS, Shortcuts, ShortcutsButton } from "../../parts/shortcuts.js";
import { Cell, VirtualList } from "../../parts/virtual_list.js";
import lists from "../../parts/virtual_list.module.css";
import { useSession } from "../../session/session.js";
import { Detail } from "./detail.js";
import { DismissAll, DismissAllButton } from "./dismiss_all.js";
import { chosenIn, filterOf, InboxToolbar, inboxFilters, widened } from "./filters.js";
import { grouped, type InboxItem } from "./groups.js";
import classes from "./inbox.module.css";
import { InboxRow } from "./row.js";
import { useToday } from "./today.js";

const SHORTCUTS = [
  ...LIST_SHORTCUTS,
  { keys: ["e", "Del"], does: "dismiss it" },
  { keys: ["Shift", "E"], does: "dismiss all that is unread here" },
  { keys: ["u"], does: "unread only, or all" },
];

export default function Inbox() {
  const { user_id } = useSession();
  const [, navigate] = useLocation();
  const [, params] = useRoute("/inbox/:id");
  const openId = params?.id ?? null;
  const [filters, setFilters] = inboxFilters.use();
  const filter = filterOf(user_id, filters);
  const { rows, isLoading, hasMore, error, more, reload } = useFeed(filter, user_id);
  const today = useToday();
  const threadName = useThreadNames();
  const { ref: frame, width } = useElementSize();
  // As the styles have it.
  const narrow_px = width > 0 && width <= 460 ? width : null;
  const { grouping } = filters;
  const items = useMemo(
    () => grouped(rows, { by: grouping, now: today, threadName, narrow_px }),
    [rows, grouping, threadName, narrow_px, today],
  );
  const keysNow = () => items.flatMap((item) => (item.type === "row" ? [item.key] : []));
  const { fresh, onPlace } = useFresh(rows);
  const [active, setActive] = useState<string | null>(openId);
  const [helps, help] = useDisclosure(false);
  const [asks, ask] = useDisclosure(false);
  const scroller = useRef<HTMLDivElement>(null);
  const isVisible = usePageVisible();
  const acknowledgements = useAcknowledgements();

  const act = useCallback(
    async (seen: Seen, action: "clicked" | "dismissed") => {
      try {
        const answer = await acknowledgements.send(seen, action);
        if (isMiss(answer) && action === "dismissed") refused(answer.message);
      } catch (why) {
        if (action === "dismissed") refused(why instanceof Error ? why.message : String(why));
      }
    },
    [acknowledgements],
  );
  const clicked = useCallback((seen: Seen) => void act(seen, "clicked"), [act]);
  const open = useCallback(
    (id: string) => {
      setActive(id);
      navigate(`/inbox/${id}`);
    },
    [navigate],
  );
  const close = () => {
    if (openId === null) return;
    navigate("/inbox");
    scroller.current?.focus({ preventScroll: true });
  };
  const dismiss = (seen: Seen) => {
    // The next one is where the keyboard is then, should this one go.
    if (active === seen.id && filters.unread) {
      const keys = keysNow();
      const at = keys.indexOf(seen.id);
      setActive(keys[at + 1] ?? keys[at - 1] ?? null);
    }
    void act(seen, "dismissed");
    if (openId === seen.id) close();
  };
  const latest = useRef(dismiss);
  useEffect(() => {
    latest.current = dismiss;
  });
  const dismissRow = useCallback((row: Row) => latest.current(row), []);
  const dismissActive = () => {
    const row = rows.find(({ id }) => id === active);
    if (row !== undefined && isUnread(row)) dismiss(row);
  };
  const seen = (inSight: readonly InboxItem[]) => {
    if (!isVisible) return;
    for (const item of inSight)
      if (item.type === "row" && (item.row.state === "DISPATCHED" || item.row.state === "ESCALATED"))
        acknowledgements.rendered(item.row);
  };
  useListKeys({
    ...{ keys: keysNow, active, setActive, open, close, list: scroller },
    more: {
      e: dismissActive,
      Delete: dismissActive,
      E: ask.open,
      u: () => setFilters({ ...filters, unread: !filters.unread }),
      "?": help.open,
    },
  });

  const render = (item: InboxItem) =>
    item.type === "header" ? (
      <Cell className={classes["header"]}>
        <Text span size="xs" fw={600} className="outside">
          {item.name}
        </Text>
        <Text span size="xs" c="dimmed">
          {item.about}
        </Text>
      </Cell>
    ) : (
      <InboxRow
        row={item.row}
        lines={item.lines}
        thread={item.row.thread_id === null ? null : threadName(item.row.thread_id)}
        isOpen={item.key === openId}
        open={open}
        dismiss={dismissRow}
      />
    );

  // What does not change with each that comes is not drawn again with it.
  const toolbar = useMemo(
    () => (
      <InboxToolbar
        user_id={user_id}
        actions={
          <>
            <DismissAllButton open={ask.open} />
            <ShortcutsButton open={help.open} />
          </>
        }
      />
    ),
    [user_id, ask.open, help.open],
  );
  const list = (
    <>
      {toolbar}
      {error === null ? null : <Failure error={error} retry={reload} />}
      {isLoading ? (
        <Waiting />
      ) : items.length === 0 && !hasMore ? (
        <Nothing
          unread={filters.unread}
          forget={chosenIn(filters) > 0 ? () => setFilters(widened(filters)) : undefined}
        />
      ) : (
        <div className={`${lists["frame"]} ${classes["frame"]}`} ref={frame}>
          <VirtualList
            {...{ items, keyOf, height: heightOf }}
            label="Inbox"
            activeKey={active}
            render={render}
            onNearEnd={more}
            onSeen={seen}
            onPlace={onPlace}
            total={hasMore ? null : items.length}
            scroller={scroller}
          />
          <Fresh count={fresh} scroller={scroller} />
        </div>
      )}
      <Shortcuts shortcuts={SHORTCUTS} opened={helps} close={help.close} />
      <DismissAll filter={filter} narrowed={chosenIn(filters) > 0} opened={asks} close={ask.close} />
    </>
  );
  const opened =
    openId === null ? null : (
      <Detail
        key={openId}
        id={openId}
        user_id={user_id}
        row={rows.find(({ id }) => id === openId)}
        close={close}
        clicked={clicked}
        dismiss={dismiss}
      />
    );
  return <Panes list={list} open={opened} />;
}

const keyOf = ({ key }: InboxItem) => key;
const heightOf = ({ height }: InboxItem) => height;

function refused(message: string): void {
  notifications.show({ color: "red", title: "It is not dismissed", message });
}

function Nothing({ unread, forget }: { readonly unread: boolean; readonly forget: (() => void) | undefined }) {
  if (forget !== undefined) return <NothingChosen icon={IconInbox} forget={forget} />;
  if (unread)
    return (
      <Empty icon={IconMoodSmile} title="Nothing is unread">
        What comes for you shows here, and rings the bell.
      </Empty>
    );
  return (
    <Empty icon={IconInbox} title="Nothing has come yet">
      What the system tells you shows here. Try it: the place “Try it” makes things happen.
    </Empty>
  );
}

function Waiting() {
  return (
    <Stack p="md" gap="lg" aria-label="Loading">
      {["a", "b", "c", "d", "e"].map((key) => (
        <Stack key={key} gap={6}>
          <Skeleton h={10} w="25%" />
          <Skeleton h={12} w="70%" />
        </Stack>
      ))}
    </Stack>
  );
}
