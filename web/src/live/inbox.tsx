/** What reaches the user wherever they are on the page: toasts, and what was seen and done, told to the server. */
import { notifications } from "@mantine/notifications";
import { IconSparkles, IconStack2 } from "@tabler/icons-react";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { isMiss, type TidingsClient } from "tidings/client";
import { useLocation } from "wouter";
import { SEVERITIES, SeverityIcon } from "../parts/states.js";
import { counted } from "../parts/words.js";
import { useClient, useSession, useTold } from "../session/session.js";
import { Acknowledgements, AcknowledgementsContext, isPageVisible, usePageVisible } from "./inbox_acknowledgements.js";
import { Arrivals } from "./inbox_arrivals.js";
import { type Board, Desk, isCritical, type Toast } from "./inbox_desk.js";
import { NotificationToast, placeOf, ToastTitle, Words } from "./inbox_toast.js";
import { ToastTimers } from "./inbox_toast_timers.js";
import { openThread, openThreadNow, threadPath } from "./open_thread.js";
import { pace } from "./pace.js";

const TOAST_MS = 8_000;
const WORDS_MS = 14_000;
/** How often a burst changes the number of those that found no room. */
const MORE_PACE_MS = 300;
const MORE = "toast:more";
const PLAIN_ICON = { icon: { backgroundColor: "transparent" } };

export function InboxProvider({ children }: { readonly children: ReactNode }) {
  const { client, user_id } = useSession();
  const acknowledgements = useMemo(() => new Acknowledgements(client, user_id), [client, user_id]);
  useEffect(() => () => acknowledgements.end(), [acknowledgements]);
  return (
    <AcknowledgementsContext value={acknowledgements}>
      <Toasts acknowledgements={acknowledgements} />
      {children}
    </AcknowledgementsContext>
  );
}

function Toasts({ acknowledgements }: { readonly acknowledgements: Acknowledgements }) {
  const client = useClient();
  const [location, navigate] = useLocation();
  const isVisible = usePageVisible();
  const [arrivals] = useState(() => new Arrivals());
  const { desk, timers } = useMemo(() => board(acknowledgements, navigate), [acknowledgements, navigate]);

  useEffect(() => {
    if (isVisible) desk.showWaiting();
    timers.setVisible(isVisible);
  }, [desk, timers, isVisible]);

  // The next one at this page is somebody else.
  useEffect(() => () => notifications.clean(), []);

  // Whoever goes to a conversation has its agent's words there.
  const open = openThread(location);
  useEffect(() => {
    if (open !== null) desk.takeOfThread(open);
  }, [desk, open]);

  useTold((told) => {
    const arrival = arrivals.hear(told);
    if (arrival === null) return;
    if (arrival.kind === "words") {
      const { turn_id, thread_id, text, told } = arrival;
      const toast: Toast = { kind: "words", key: `toast:${turn_id}`, thread_id, text };
      if (thread_id === open) return;
      if (told === null) desk.put(toast);
      else
        void isNarrated(client, told).then((is) => {
          if (is && thread_id !== openThreadNow()) desk.put(toast);
        });
      return;
    }
    const { notification, isNew } = arrival;
    const toast: Toast = { kind: "notification", key: `toast:${notification.id}`, notification };
    if (notification.read_at !== null || notification.state === "FAILED") desk.take(toast.key);
    else if (desk.has(toast.key) || (isNew && isWanted(toast, location, open))) desk.put(toast);
  });
  return null;
}

/** What stands on the page anyway needs no toast: in the conversation that is open, and in the list of the inbox. */
function isWanted(toast: Toast & { readonly kind: "notification" }, location: string, open: string | null): boolean {
  const { channel, thread_id } = toast.notification;
  if (channel === "floor") return thread_id !== open || open === null;
  return isCritical(toast) || location !== "/inbox";
}

/** Whether the agent was to tell the user one of these, wherever they are. */
async function isNarrated(client: TidingsClient, ids: readonly string[]): Promise<boolean> {
  const answers = await Promise.all(
    [...new Set(ids)].map((id) => client.call("notification/read", { id }).catch(() => null)),
  );
  return answers.some((one) => {
    if (one === null || isMiss(one)) return false;
    const { address, target, handler } = one.effective;
    return address === "user" && target === "user" && handler === "agent";
  });
}

function board(acknowledgements: Acknowledgements, go: (to: string) => void): { desk: Desk; timers: ToastTimers } {
  /** Closed by us, and not by the user. */
  const ours = new Set<string>();
  const hide = (key: string) => {
    ours.add(key);
    notifications.hide(key);
    ours.delete(key);
  };
  const timers = new ToastTimers(hide);
  const open = (toast: Toast) => {
    if (toast.kind === "words") go(threadPath(toast.thread_id));
    else {
      const { id, revision, channel, thread_id } = toast.notification;
      void acknowledgements.send({ id, revision }, "clicked").catch(() => {});
      go(channel === "floor" && thread_id !== null ? threadPath(thread_id) : `/inbox/${id}`);
    }
    desk.take(toast.key);
  };
  const closed = (toast: Toast) => {
    timers.end(toast.key);
    desk.closed(toast.key);
    if (ours.has(toast.key) || toast.kind === "words") return;
    const { id, revision } = toast.notification;
    void acknowledgements.send({ id, revision }, "dismissed").catch(() => {});
  };
  const common = (toast: Toast) => ({
    id: toast.key,
    autoClose: false as const,
    withBorder: true,
    styles: PLAIN_ICON,
    onClose: () => closed(toast),
    onMouseEnter: () => timers.hold(toast.key),
    onMouseLeave: () => timers.letGo(toast.key),
    onFocusCapture: () => timers.hold(toast.key),
    onBlurCapture: () => timers.letGo(toast.key),
  });
  const looks = (toast: Toast) =>
    toast.kind === "words"
      ? {
          ...common(toast),
          color: "violet",
          icon: <IconSparkles size={20} color="var(--mantine-color-violet-text)" aria-hidden />,
          title: "The agent says",
          message: <Words text={toast.text} open={() => open(toast)} where={placeOf(toast.thread_id)} />,
          closeButtonProps: { "aria-label": "Close" },
        }
      : {
          ...common(toast),
          color: SEVERITIES[toast.notification.severity].color,
          icon: <SeverityIcon severity={toast.notification.severity} size={20} />,
          title: <ToastTitle notification={toast.notification} />,
          message: (
            <NotificationToast
              notification={toast.notification}
              acknowledgements={acknowledgements}
              open={() => open(toast)}
            />
          ),
          closeButtonProps: { "aria-label": "Dismiss" },
        };
  const start = (toast: Toast) => {
    if (!isCritical(toast)) timers.start(toast.key, toast.kind === "words" ? WORDS_MS : TOAST_MS);
  };
  const sayMore = pace<number>(MORE_PACE_MS, (count) => {
    if (count === 0) hide(MORE);
    else {
      const onClose = () => {
        sayMore.end();
        desk.moreClosed();
      };
      const more = { ...moreToast(count, () => go("/inbox")), onClose };
      notifications.show(more);
      notifications.update(more);
      timers.start(MORE, TOAST_MS);
    }
  });
  const shown: Board = {
    show(toast) {
      notifications.show(looks(toast));
      start(toast);
    },
    update(toast) {
      notifications.update(looks(toast));
      start(toast);
    },
    hide,
    more: (count) => sayMore.show(count),
  };
  const desk = new Desk(shown, isPageVisible);
  return { desk, timers };
}

function moreToast(count: number, openInbox: () => void) {
  return {
    id: MORE,
    autoClose: false as const,
    withBorder: true,
    color: "gray",
    styles: PLAIN_ICON,
    icon: <IconStack2 size={20} color="var(--mantine-color-dimmed)" aria-hidden />,
    title: counted(count, "more", "more"),
    message: <Words text="They wait in the inbox." open={openInbox} where={null} />,
    closeButtonProps: { "aria-label": "Close" },
  };
}
