/** Everything that was ever to be told, whoever was to be told it, and the story of each. */
import { Anchor, Skeleton, Stack, Text } from "@mantine/core";
import { useDisclosure, useElementSize } from "@mantine/hooks";
import { IconGhost, IconTimeline } from "@tabler/icons-react";
import { useCallback, useMemo, useRef, useState } from "react";
import { useLocation, useRoute } from "wouter";
import { useFeed } from "../../live/feed.js";
import type { Row } from "../../live/rows.js";
import { useToEnd } from "../../live/to_end.js";
import { Empty, Failure, NothingChosen } from "../../parts/empty.js";
import { Fresh, useFresh } from "../../parts/fresh.js";
import { useThreadNames } from "../../parts/known_threads.js";
import { useListKeys } from "../../parts/list_keys.js";
import { Panes } from "../../parts/panes.js";
import { useRedrive } from "../../parts/redrive.js";
import { LIST_SHORTCUTS, Shortcuts, ShortcutsButton } from "../../parts/shortcuts.js";
import { VirtualList } from "../../parts/virtual_list.js";
import { counted } from "../../parts/words.js";
import { useAnswer } from "../../session/session.js";
import { chosenIn, filterOf, isWithoutKept, LedgerToolbar, ledgerFilters, type Part, widened } from "./filters.js";
import classes from "./ledger.module.css";
import { LedgerHead, LedgerRow } from "./row.js";
import { Story } from "./story.js";

const ROW_HEIGHT = 40;
const TALL_ROW_HEIGHT = 52;
const TALLEST_ROW_HEIGHT = 74;
const HEAD_HEIGHT = 34;
const USERS_MAX = 50;
/** So many of the newest are looked at for what the columns are; any other user can be written. */
const NEWEST = 2_000;

const SHORTCUTS = [...LIST_SHORTCUTS, { keys: ["r"], does: "send a dead letter again" }];

export default function Ledger() {
  const [, navigate] = useLocation();
  const [, params] = useRoute("/ledger/:id");
  const openId = params?.id ?? null;
  const [filters, setFilters] = ledgerFilters.use();
  const feed = useFeed(filterOf(filters), undefined);
  const { rows, isLoading, hasMore, error, more, reload } = feed;
  const isAdmin = useIsAdmin();
  const [active, setActive] = useState<string | null>(openId);
  const toEnd = useToEnd(feed, setActive);
  const [helps, help] = useDisclosure(false);
  const scroller = useRef<HTMLDivElement>(null);
  const redrive = useRedrive();
  const { ref: table, width } = useElementSize();
  // Two lines where there is no room for one, as the styles have it: beside a story, or on a small screen; on a phone, three.
  const isTall = width > 0 && width <= 640;
  const height = !isTall ? ROW_HEIGHT : width > 460 ? TALL_ROW_HEIGHT : TALLEST_ROW_HEIGHT;
  const users = useSame(isAdmin ? usersIn(rows) : null);
  // A column that says the same in every row says nothing.
  const withUser = users !== null && users.length > 1;
  const withCount = hasRepeated(rows);
  const { fresh, onPlace } = useFresh(rows);

  const open = useCallback(
    (id: string) => {
      setActive(id);
      navigate(`/ledger/${id}`);
    },
    [navigate],
  );
  const close = () => {
    if (openId === null) return;
    navigate("/ledger");
    scroller.current?.focus({ preventScroll: true });
  };
  const goToEnd = () => {
    toEnd.go();
    scroller.current?.focus({ preventScroll: true });
  };
  useListKeys({
    ...{ keys: () => rows.map(keyOf), active, setActive, open, close, list: scroller },
    more: {
      r: () => {
        if (rows.find(({ id }) => id === active)?.state === "FAILED" && active !== null) void redrive(active);
      },
      "?": help.open,
      End: goToEnd,
    },
  });
  const threadName = useThreadNames();
  const render = useCallback(
    (row: Row) => (
      <LedgerRow
        row={row}
        thread={row.thread_id === null ? "" : threadName(row.thread_id)}
        withUser={withUser}
        withCount={withCount}
        isTall={isTall}
        isOpen={row.id === openId}
        open={open}
      />
    ),
    [threadName, withUser, withCount, isTall, openId, open],
  );

  // What does not change with each that comes is not drawn again with it.
  const toolbar = useMemo(
    () => <LedgerToolbar users={users} actions={<ShortcutsButton open={help.open} />} />,
    [users, help.open],
  );
  const list = (
    <>
      {toolbar}
      {error === null ? null : <Failure error={error} retry={reload} />}
      <div className={classes["table"]} ref={table}>
        {isLoading ? (
          <Waiting />
        ) : rows.length === 0 && !hasMore ? (
          <Nothing
            part={filters.part}
            forget={chosenIn(filters) > 0 ? () => setFilters(widened(filters)) : undefined}
          />
        ) : (
          <VirtualList
            {...{ items: rows, keyOf, height }}
            label="Ledger"
            activeKey={active}
            render={render}
            onNearEnd={more}
            onPlace={onPlace}
            total={hasMore ? null : rows.length}
            {...(isTall ? {} : { head: { height: HEAD_HEIGHT, content: <LedgerHead {...{ withUser, withCount }} /> } })}
            scroller={scroller}
          />
        )}
        <Fresh count={fresh} scroller={scroller} />
      </div>
      <div className={classes["foot"]}>
        <Text size="xs" c="dimmed" role="status">
          {isLoading
            ? "Reading…"
            : `${counted(rows.length, "notification")}${hasMore ? ` read, and ${toEnd.isReading ? "on to the end" : "there are more"}` : ""}${isWithoutKept(filters) ? ", without those kept back" : ""}`}
        </Text>
        {toEnd.isReading ? (
          <Anchor component="button" type="button" size="xs" onClick={toEnd.stop}>
            Stop here
          </Anchor>
        ) : (
          <Text size="xs" c="dimmed" visibleFrom="sm">
            Newest first, live
          </Text>
        )}
      </div>
      <Shortcuts shortcuts={SHORTCUTS} opened={helps} close={help.close} />
    </>
  );
  return <Panes list={list} open={openId === null ? null : <Story key={openId} id={openId} close={close} />} />;
}

/** Only who may see everybody's is told so much of the server. */
function useIsAdmin(): boolean {
  return useAnswer("runtime/status", {}).value?.pid !== undefined;
}

const keyOf = ({ id }: Row) => id;

/** The one of before, as long as there is the same in it. */
function useSame(words: readonly string[] | null): readonly string[] | null {
  const key = JSON.stringify(words);
  // biome-ignore lint/correctness/useExhaustiveDependencies: compared by what is in it
  return useMemo(() => words, [key]);
}

function usersIn(rows: readonly Row[]): readonly string[] {
  const users = new Set<string>();
  for (const { user_id } of rows.slice(0, NEWEST)) {
    users.add(user_id);
    if (users.size >= USERS_MAX) break;
  }
  return [...users];
}

function hasRepeated(rows: readonly Row[]): boolean {
  return rows.slice(0, NEWEST).some(({ count }) => count > 1);
}

function Nothing({ part, forget }: { readonly part: Part; readonly forget: (() => void) | undefined }) {
  if (forget !== undefined) return <NothingChosen icon={IconTimeline} forget={forget} />;
  if (part === "dead")
    return (
      <Empty icon={IconGhost} title="No dead letters">
        What nobody acknowledged in time ends here, and can be sent again.
      </Empty>
    );
  if (part === "kept")
    return (
      <Empty icon={IconTimeline} title="Nothing was kept back">
        What a filter, a switch or a newer one keeps from being told is here, with the rule that did it.
      </Empty>
    );
  return (
    <Empty icon={IconTimeline} title="The ledger is empty">
      Whatever is to be told, to you or to an agent, has its line here from the first moment on. The place “Try it”
      makes things happen.
    </Empty>
  );
}

function Waiting() {
  return (
    <Stack p="md" gap="md" aria-label="Loading">
      {["a", "b", "c", "d", "e", "f"].map((key) => (
        <Skeleton key={key} h={14} />
      ))}
    </Stack>
  );
}
