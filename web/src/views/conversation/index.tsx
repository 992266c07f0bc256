/** Conversations with the agent: the list of them, and the one that the address names. */
import { Box } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { IconMessages } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useLocation, useRoute } from "wouter";
import { ThreadsProvider, useThreads } from "../../live/threads.js";
import { Empty } from "../../parts/empty.js";
import { useClient } from "../../session/session.js";
import style from "./conversation.module.css";
import { StartButton, ThreadList } from "./thread_list.js";
import { ThreadPane } from "./thread_pane.js";

/** From there on there is room for both. */
const WIDE = "(min-width: 62em)";

export default function View() {
  return (
    <ThreadsProvider>
      <Threads />
    </ThreadsProvider>
  );
}

function Threads() {
  const [, params] = useRoute("/threads/:id");
  const selected = params?.id === undefined ? null : decoded(params.id);
  const isWide = useMediaQuery(WIDE, true, { getInitialValueInEffect: false });
  const { isStarting, start } = useStart();
  const list = <ThreadList selected={selected} isAlone={!isWide} start={start} isStarting={isStarting} />;
  const pane = selected === null ? null : <ThreadPane key={selected} thread_id={selected} isAlone={!isWide} />;
  if (!isWide) return <div className={style["view"]}>{pane ?? list}</div>;
  return (
    <div className={style["view"]}>
      {list}
      {pane ?? <NoneSelected start={start} />}
    </div>
  );
}

/** The one that was active last, if there is one. */
function NoneSelected({ start }: { readonly start: () => void }) {
  const { threads } = useThreads();
  const [, navigate] = useLocation();
  const latest = threads?.[0]?.thread_id;
  useEffect(() => {
    // Whoever has gone elsewhere meanwhile is not fetched back.
    if (latest !== undefined && isAtList()) navigate(`/threads/${encodeURIComponent(latest)}`, { replace: true });
  }, [latest, navigate]);
  if (threads === null || latest !== undefined) return null;
  return (
    <div className={style["pane"]}>
      <Empty icon={IconMessages} title="Talk to the agent">
        <Box mb="md">
          It answers here, and here you see what happens around it: what the system shows you, what the agent was told,
          and when.
        </Box>
        <StartButton start={start} />
      </Empty>
    </div>
  );
}

function isAtList(): boolean {
  return /^#\/threads\/?$/.test(location.hash);
}

function useStart() {
  const client = useClient();
  const [, navigate] = useLocation();
  const [isStarting, setStarting] = useState(false);
  const start = () => {
    if (isStarting) return;
    setStarting(true);
    client
      .call("thread/start", {})
      .then(
        ({ thread_id }) => navigate(`/threads/${encodeURIComponent(thread_id)}`),
        (error: unknown) =>
          notifications.show({
            color: "red",
            title: "No conversation was started",
            message: error instanceof Error ? error.message : String(error),
          }),
      )
      .finally(() => setStarting(false));
  };
  return { isStarting, start };
}

/** The router has decoded most of it. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
