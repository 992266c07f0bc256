/** Where the user speaks: it sends, steers while a turn runs, says which it did, and stops the turn. */
import { ActionIcon, Button, Group, Kbd, Menu, Text, Textarea, VisuallyHidden } from "@mantine/core";
import {
  IconChevronDown,
  IconCornerDownRight,
  IconMessageForward,
  IconPlayerStopFilled,
  IconPlaylistAdd,
  IconSend,
} from "@tabler/icons-react";
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useRef } from "react";
import type { Conversation } from "../../live/threads_state.js";
import { useClient, useConnection } from "../../session/session.js";
import style from "./conversation.module.css";
import { waitingIn } from "./rows.js";
import { type Sending, useSending } from "./sending.js";
import { Waiting } from "./waiting.js";

const CHARS = 16_384;
const NEARLY = 15_000;

export function Composer({ conversation }: { readonly conversation: Conversation }) {
  const { thread, active } = conversation;
  const sending = useSending(thread.thread_id, conversation);
  const { said, problem, text } = sending;
  const why = useWhyNot(conversation);
  const isRunning = active !== null;
  return (
    <section className={style["foot"]} aria-label="Composer" ref={useFoot()}>
      <div className={style["inner"]}>
        <Waiting items={waitingIn(conversation)} />
        <Field sending={sending} isRunning={isRunning} isOff={why !== null} isClosed={thread.state === "closed"} />
        <Group gap="xs" mt={6} wrap="nowrap" justify="space-between">
          <div role="status" style={{ flex: 1, minWidth: 0 }}>
            {problem === null ? (
              <Hint why={why} said={said} isRunning={isRunning} isPaused={thread.state === "paused"} />
            ) : (
              <Text size="xs" c="red" className="outside">
                {problem}
              </Text>
            )}
          </div>
          {text.length > NEARLY ? (
            <Text size="xs" ta="end" c={text.length > CHARS ? "red" : "dimmed"}>
              {text.length} of {CHARS} characters
            </Text>
          ) : null}
          <Buttons
            sending={sending}
            isRunning={isRunning}
            isPaused={thread.state === "paused"}
            disabled={why !== null}
          />
        </Group>
      </div>
    </section>
  );
}

/** Tells the page how much room the composer takes at its foot: toasts stay above it, and Stop can always be reached. */
function useFoot(): RefObject<HTMLElement | null> {
  const foot = useRef<HTMLElement>(null);
  useEffect(() => {
    const { style } = document.documentElement;
    const observer = new ResizeObserver(([entry]) => {
      style.setProperty("--tidings-foot", `${entry?.borderBoxSize[0]?.blockSize ?? 0}px`);
    });
    if (foot.current !== null) observer.observe(foot.current);
    return () => {
      observer.disconnect();
      style.removeProperty("--tidings-foot");
    };
  }, []);
  return foot;
}

/** Why nothing can be said now. */
function useWhyNot({ thread }: Conversation): string | null {
  const client = useClient();
  const { status } = useConnection();
  if (thread.state === "closed") return "This conversation is closed: nothing more can be said in it.";
  if (status !== "open") return "The server does not answer. What you write stays here until it does.";
  if (client.server !== null && client.server.agent === null)
    return "No agent is hosted here: serve with --provider (rehearsal needs no key).";
  return null;
}

function Field({
  sending,
  isRunning,
  isOff,
  isClosed,
}: {
  readonly sending: Sending;
  readonly isRunning: boolean;
  /** Nothing can be sent now. */
  readonly isOff: boolean;
  /** Nor ever. */
  readonly isClosed: boolean;
}) {
  const { text, setText, isBusy, send, stop } = sending;
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    // On a phone it would bring up the keyboard.
    if (matchMedia("(hover: hover)").matches) field.current?.focus({ preventScroll: true });
  }, []);
  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (!isOff && text.length <= CHARS) send("deliver");
    } else if (event.key === "Escape" && isRunning && !isOff) stop();
  };
  return (
    <Textarea
      ref={field}
      aria-label="Message"
      placeholder={isRunning ? "Steer the running turn" : "Say something to the agent"}
      autosize
      minRows={2}
      maxRows={10}
      value={text}
      readOnly={isBusy}
      disabled={isClosed}
      error={text.length > CHARS}
      onChange={(event) => setText(event.currentTarget.value)}
      onKeyDown={press}
    />
  );
}

function Hint({
  why,
  said,
  isRunning,
  isPaused,
}: {
  readonly why: string | null;
  readonly said: string | null;
  readonly isRunning: boolean;
  readonly isPaused: boolean;
}): ReactNode {
  const words =
    why ?? said ?? (isPaused ? "The agent rests: what you say waits until the conversation is resumed." : null);
  if (words !== null)
    return (
      <Text size="xs" {...(why === null && said !== null ? {} : { c: "dimmed" })}>
        {words}
      </Text>
    );
  return (
    <Text size="xs" c="dimmed" component="div" visibleFrom="sm">
      <Kbd size="xs">Enter</Kbd> {isRunning ? "steers" : "sends"} · <Kbd size="xs">Shift</Kbd>{" "}
      <Kbd size="xs">Enter</Kbd> new line
      {isRunning ? (
        <>
          {" "}
          · <Kbd size="xs">Esc</Kbd> stops
        </>
      ) : null}
    </Text>
  );
}

function Buttons({
  sending,
  isRunning,
  isPaused,
  disabled,
}: {
  readonly sending: Sending;
  readonly isRunning: boolean;
  readonly isPaused: boolean;
  readonly disabled: boolean;
}) {
  const { text, isBusy, send, stop } = sending;
  const isOff = disabled || isBusy || text.trim() === "" || text.length > CHARS;
  return (
    <Group gap={6} wrap="nowrap">
      {isRunning ? (
        <Button
          size="sm"
          variant="default"
          leftSection={<IconPlayerStopFilled size={14} />}
          onClick={stop}
          disabled={disabled || isBusy}
        >
          Stop
        </Button>
      ) : null}
      <Button.Group>
        <Button
          size="sm"
          onClick={() => send("deliver")}
          disabled={isOff}
          leftSection={isRunning ? <IconCornerDownRight size={16} /> : <IconSend size={16} />}
        >
          {isRunning ? "Steer" : isPaused ? "Queue" : "Send"}
        </Button>
        {isRunning ? (
          <Menu position="top-end">
            <Menu.Target>
              <ActionIcon
                size={36}
                variant="filled"
                aria-label="Other ways to send"
                disabled={isOff}
                style={{ borderStartStartRadius: 0, borderEndStartRadius: 0, marginInlineStart: 1 }}
              >
                <IconChevronDown size={16} />
                <VisuallyHidden>Other ways to send</VisuallyHidden>
              </ActionIcon>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item leftSection={<IconMessageForward size={16} />} onClick={() => send("reply")}>
                Stop, and go on with this
              </Menu.Item>
              <Menu.Item leftSection={<IconPlaylistAdd size={16} />} onClick={() => send("queue")}>
                Queue for after this turn
              </Menu.Item>
            </Menu.Dropdown>
          </Menu>
        ) : null}
      </Button.Group>
    </Group>
  );
}
