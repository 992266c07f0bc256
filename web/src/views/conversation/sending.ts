/**
 * What the user says on its way: it leaves the field when the server has it, and not before. Where nobody knows whether it
 * arrived, the conversation is read for it, so that nothing is said twice and nothing is lost, wherever the user goes meanwhile.
 */
import { useSessionStorage } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import { type Methods, UnreachableError } from "tidings/client";
import type { Conversation } from "../../live/threads_state.js";
import { useClient, useConnection } from "../../session/session.js";

/** `deliver`: to the running turn, else a turn of its own. `queue`: a turn of its own. `reply`: instead of the running turn. */
export type How = "deliver" | "queue" | "reply";

export interface Sending {
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly isBusy: boolean;
  /** What became of the last words. */
  readonly said: string | null;
  readonly problem: string | null;
  readonly send: (how: How) => void;
  readonly stop: () => void;
}

const SAID = {
  started: "Sent: the agent has begun a turn.",
  queued: "Queued: it has its turn when the conversation is free.",
  steered: "Steered: the running turn takes it up at its next step.",
  replied: "Interrupted: the agent goes on with what you said.",
  stopped: "Stopped.",
  returned: "Stopped. What it had not taken up is in the field again.",
  stopping: "It is coming to its end.",
  over: "It was over already.",
  arrived: "It had arrived after all.",
} as const;
const IN_DOUBT =
  "The server did not answer before the connection broke. When it is back, this page looks whether it arrived.";
const NOT_ARRIVED = "It did not arrive. Send it again.";

/** For so long it is said what became of the last words. */
const SAID_MS = 6_000;

/** Words that the server has not answered, and what was the newest item before them. */
interface Unanswered {
  readonly text: string;
  readonly after: number;
}

/** Conversations in which this page still waits for the answer. Of the others nobody knows whether the words arrived. */
const awaited = new Set<string>();

export function useSending(thread_id: string, conversation: Conversation): Sending {
  const client = useClient();
  const { status } = useConnection();
  const [text, setText] = useSessionStorage({
    key: `draft ${thread_id}`,
    defaultValue: "",
    getInitialValueInEffect: false,
  });
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [unanswered, setUnanswered] = useSessionStorage<Unanswered | null>({
    key: `unanswered ${thread_id}`,
    defaultValue: null,
    getInitialValueInEffect: false,
  });
  const isInDoubt = unanswered !== null && !awaited.has(thread_id);
  const busy = useRef(false);
  const turn_id = conversation.active?.turn_id ?? null;

  const attempt = async (task: () => Promise<string>, words: string) => {
    if (busy.current) return;
    busy.current = true;
    setBusy(true);
    setSaid(null);
    setProblem(null);
    const sent = words === "" ? null : { text: words, after: conversation.items.at(-1)?.seq ?? 0 };
    const answered = (left: Unanswered | null) => {
      if (sent === null) return;
      awaited.delete(thread_id);
      setUnanswered(left);
    };
    if (sent !== null) {
      awaited.add(thread_id);
      setUnanswered(sent);
    }
    try {
      setSaid(await task());
      answered(null);
    } catch (error) {
      const isOpen = error instanceof UnreachableError && error.why !== "unsent";
      answered(isOpen && sent !== null ? { ...sent } : null);
      if (!isOpen || sent === null) setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      busy.current = false;
      setBusy(false);
    }
  };

  const send = (how: How) => {
    const input = text;
    if (input.trim() === "" || unanswered !== null) return;
    void attempt(async () => {
      const word = await saying(client, how, { thread_id, turn_id, input });
      setText("");
      return word;
    }, input);
  };

  const stop = () => {
    if (turn_id === null) return;
    void attempt(async () => {
      const { state, unconsumed } = await client.call("turn/interrupt", { turn_id });
      // What it had not taken up is the user's again.
      if (unconsumed.length > 0) {
        setText((now) => [...unconsumed, ...(now === "" ? [] : [now])].join("\n"));
        return SAID.returned;
      }
      if (state === "cancel_requested") return SAID.stopping;
      return state === "interrupted" ? SAID.stopped : SAID.over;
    }, "");
  };

  useEffect(() => {
    if (unanswered === null || !isInDoubt || status !== "open") return;
    let over = false;
    hasArrived(client, thread_id, unanswered).then(
      (arrived) => {
        if (over) return;
        setUnanswered(null);
        setProblem(arrived ? null : NOT_ARRIVED);
        setSaid(arrived ? SAID.arrived : null);
        if (arrived) setText((now) => (now === unanswered.text ? "" : now));
      },
      // It broke again, and is looked for when it is back.
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [client, thread_id, unanswered, isInDoubt, status, setText, setUnanswered]);

  useEffect(() => {
    if (said === null) return;
    const timer = setTimeout(() => setSaid(null), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);

  const change = (now: string) => {
    setText(now);
    setSaid(null);
    setProblem(null);
  };
  return {
    ...{ text, setText: change, said, send, stop },
    isBusy: isBusy || unanswered !== null,
    problem: isInDoubt ? IN_DOUBT : problem,
  };
}

type Client = ReturnType<typeof useClient>;

async function saying(
  client: Client,
  how: How,
  {
    thread_id,
    turn_id,
    input,
  }: { readonly thread_id: string; readonly turn_id: string | null; readonly input: string },
): Promise<string> {
  if (how === "reply" && turn_id !== null) {
    const { state, successor } = await client.call("turn/interrupt", { turn_id, input });
    if (successor !== null) return successor.state === "queued" ? SAID.queued : SAID.replied;
    if (state === "cancel_requested") return SAID.replied;
  }
  if (how === "queue") {
    const { state } = await client.call("turn/start", { thread_id, input });
    return state === "queued" ? SAID.queued : SAID.started;
  }
  const { how: became }: Methods["turn/deliver"]["result"] = await client.call("turn/deliver", { thread_id, input });
  return SAID[became];
}

/** Whether the server has these words as an item that is newer than all that was known. */
async function hasArrived(client: Client, thread_id: string, { text, after }: Unanswered): Promise<boolean> {
  const { items } = await client.call("thread/read", { thread_id, after });
  return items.some(
    (item) =>
      (item.type === "queued" || item.type === "steer" || (item.type === "message" && item.role === "user")) &&
      item.content.text === text,
  );
}
