/** How severities, states and channels look, everywhere: a shape and a word, never a colour alone. */
import {
  IconAlertOctagon,
  IconAlertTriangle,
  IconArrowUpRight,
  IconBan,
  IconBug,
  IconCircleCheck,
  IconCircleX,
  IconClock,
  IconInfoCircle,
  IconLock,
  IconSend,
  IconUrgent,
  type TablerIcon,
} from "@tabler/icons-react";
import { type CSSProperties, memo, type ReactNode } from "react";
import type { NotificationView } from "tidings/client";
import classes from "./states.module.css";

type Severity = NotificationView["severity"];
type State = NotificationView["state"];
type Channel = NotificationView["channel"];

interface Look {
  readonly icon: TablerIcon;
  readonly color: string;
  readonly word: string;
}

export const SEVERITIES: Readonly<Record<Severity, Look>> = {
  debug: { icon: IconBug, color: "gray", word: "debug" },
  info: { icon: IconInfoCircle, color: "blue", word: "info" },
  warning: { icon: IconAlertTriangle, color: "yellow", word: "warning" },
  error: { icon: IconAlertOctagon, color: "red", word: "error" },
  critical: { icon: IconUrgent, color: "grape", word: "critical" },
};

export const STATES: Readonly<Record<State, Look>> = {
  PENDING: { icon: IconClock, color: "gray", word: "pending" },
  DISPATCHED: { icon: IconSend, color: "blue", word: "dispatched" },
  LOCKED: { icon: IconLock, color: "indigo", word: "locked" },
  DELIVERED: { icon: IconCircleCheck, color: "green", word: "delivered" },
  ESCALATED: { icon: IconArrowUpRight, color: "orange", word: "escalated" },
  FAILED: { icon: IconCircleX, color: "red", word: "failed" },
  SUPPRESSED: { icon: IconBan, color: "gray", word: "suppressed" },
};

interface ChannelLook {
  readonly color: string;
  readonly word: string;
  readonly about: string;
}

export const CHANNELS: Readonly<Record<Channel, ChannelLook>> = {
  inbox: { color: "blue", word: "inbox", about: "Shown to the user in the inbox" },
  floor: { color: "teal", word: "floor", about: "Shown to the user in the conversation, between its messages" },
  agent: { color: "violet", word: "agent", about: "For the agent, which is woken to act on it or to tell the user" },
  context: { color: "gray", word: "context", about: "For the agent to know, with its next turn; nobody is woken" },
};

export const SeverityIcon = memo(function SeverityIcon({
  severity,
  size = 18,
}: {
  readonly severity: Severity;
  readonly size?: number;
}) {
  const { icon: Icon, color, word } = SEVERITIES[severity];
  return <Icon size={size} stroke={1.8} color={`var(--mantine-color-${color}-text)`} role="img" aria-label={word} />;
});

export const StateBadge = memo(function StateBadge({ state }: { readonly state: State }) {
  const { icon: Icon, color, word } = STATES[state];
  return (
    <span className={classes["badge"]} style={light(color)}>
      <Icon size={12} aria-hidden />
      {word}
    </span>
  );
});

export const ChannelBadge = memo(function ChannelBadge({ channel }: { readonly channel: Channel }) {
  const { color, word, about } = CHANNELS[channel];
  const outline = `var(--mantine-color-${color}-outline)`;
  return (
    <span className={classes["badge"]} style={{ color: outline, borderColor: outline }} title={about}>
      {word}
    </span>
  );
});

/** A word beside others, in a line. */
export function SmallBadge({ color, children }: { readonly color: string; readonly children: ReactNode }) {
  return (
    <span className={`${classes["badge"]} ${classes["small"]}`} style={light(color)}>
      {children}
    </span>
  );
}

function light(color: string): CSSProperties {
  return { background: `var(--mantine-color-${color}-light)`, color: `var(--mantine-color-${color}-light-color)` };
}
