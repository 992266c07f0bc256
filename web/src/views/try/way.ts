/** What has really happened, read from the server by id: the story of the notifications, and the conversation. */
import { useEffect, useRef, useState } from "react";
import {
  isMiss,
  type NotificationView,
  type ResultOf,
  type ThreadItem,
  type TidingsClient,
  type Told,
} from "tidings/client";
import { useClient, useTold } from "../../session/session.js";
import { wordsOf } from "../ledger/story_lines.js";
import type { Run } from "./runs.js";

type State = NotificationView["state"];

export interface Step {
  readonly key: string;
  readonly seq: number;
  readonly at: string;
  /** Who did it, or what kind of thing it is. */
  readonly kind: "event" | "plane" | "user" | "agent" | "system" | "tool" | "notice";
  readonly title: string | null;
  readonly text: string;
  /** The states that it went through by this. */
  readonly path: readonly State[];
}

export interface Way {
  readonly steps: readonly Step[];
  readonly notifications: readonly NotificationView[];
  /** No subscriber took what was sent. */
  readonly unmatched: boolean;
}

const TERMINAL: ReadonlySet<State> = new Set(["DELIVERED", "FAILED", "SUPPRESSED"]);
/** Of a batch that is closed, or an agent that is woken soon, nobody is told. */
const LOOK_MS = 1_000;

export function isTerminal({ state }: NotificationView): boolean {
  return TERMINAL.has(state);
}

/** Null until it was read for the first time. */
export function useWay(run: Run): { readonly way: Way | null; readonly over: boolean } {
  const client = useClient();
  const [way, setWay] = useState<Way | null>(null);
  const over = run.doing === null && way !== null && (way.unmatched || isSettled(way, run));
  const look = useLook(async () => setWay(await readWay(client, run)));
  useTold((told) => {
    if (isAbout(told, run)) look();
  });
  const found = `${run.number} ${run.thread_id} ${run.event_ids.length} ${run.notification_ids.join()} ${run.doing}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: whatever has become known is looked at
  useEffect(() => {
    look();
    if (over) return;
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [found, over]);
  return { way, over };
}

function isSettled({ notifications }: Way, { notification_ids }: Run): boolean {
  return (
    notifications.length > 0 && notifications.length === notification_ids.length && notifications.every(isTerminal)
  );
}

/** One reading at a time; what is asked for meanwhile is one more. */
function useLook(read: () => Promise<void>): () => void {
  const newest = useRef(read);
  newest.current = read;
  const state = useRef({ busy: false, again: false });
  return useRef(() => {
    state.current.again = true;
    if (state.current.busy) return;
    state.current.busy = true;
    void (async () => {
      while (state.current.again) {
        state.current.again = false;
        // While the server is away there is nothing to read; the next look follows.
        await newest.current().catch(() => undefined);
      }
      state.current.busy = false;
    })();
  }).current;
}

function isAbout({ method, params }: Told, { thread_id, notification_ids }: Run): boolean {
  if (method === "stream/reset") return true;
  if (method === "turn/progress") return false;
  if ("notification" in params) return notification_ids.includes(params.notification.id);
  return "thread_id" in params && params.thread_id === thread_id;
}

async function readWay(client: TidingsClient, { thread_id, event_ids, notification_ids }: Run): Promise<Way | null> {
  if (thread_id === null) return null;
  const ids = notification_ids.length > 0 ? notification_ids : event_ids;
  const [page, ...told] = await Promise.all([
    client.call("thread/read", { thread_id }),
    ...ids.map((id) => client.call("notification/explain", { id })),
  ]);
  const explanations = told.flatMap((one) => (isMiss(one) ? [] : [one]));
  const steps = [...page.items.flatMap(itemStep), ...explanations.flatMap(storySteps)];
  return {
    steps: [startStep(page), ...steps.toSorted((one, other) => one.seq - other.seq)],
    notifications: explanations.flatMap(({ notifications }) => notifications),
    unmatched: event_ids.length > 0 && notification_ids.length === 0,
  };
}

type Page = ResultOf<"thread/read">;
type Explanation = Exclude<ResultOf<"notification/explain">, { miss: string }>;

function startStep({ thread }: Page): Step {
  const text = "A conversation was started for this.";
  return { key: "start", seq: 0, at: thread.created_at, kind: "plane", title: null, text, path: [] };
}

function storySteps({ id, story }: Explanation): Step[] {
  return story.map((line, index) => {
    const { seq, at, path = [] } = line;
    const kind = line.kind === "event" ? "event" : "plane";
    return { key: `${id} ${index}`, seq, at, kind, title: null, text: shortIds(wordsOf(line)), path };
  });
}

const ID = /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/g;

/** Enough of an id to know it again. */
export function shortIds(text: string): string {
  return text.replace(ID, (id) => `…${id.slice(-6)}`);
}

function itemStep(item: ThreadItem): Step[] {
  const fields = { key: item.item_id, seq: item.seq, at: item.timestamp, path: [] };
  switch (item.type) {
    case "message": {
      const { role, status, content } = item;
      const text = shortIds(content.text);
      if (role === "user") return [{ ...fields, kind: "user", title: "You said", text }];
      if (role === "system") return [{ ...fields, kind: "system", title: "The system said to the agent", text }];
      const title = status === "interrupted" ? "The agent was cut off" : "The agent said";
      return [{ ...fields, kind: "agent", title, text }];
    }
    case "tool_call": {
      const { name, output } = item.content;
      const title = item.status === "failed" ? `The agent called ${name}, which failed` : `The agent called ${name}`;
      return [{ ...fields, kind: "tool", title, text: shortIds(output ?? "") }];
    }
    case "notice":
      return [
        { ...fields, kind: "notice", title: "Shown in the conversation", text: item.content.notification.content },
      ];
    default:
      return [];
  }
}
