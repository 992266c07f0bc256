/** Three axes decide the one channel that owns a delivery. */

export const ADDRESSES = ["user", "session"] as const;
export type Address = (typeof ADDRESSES)[number];
export const TARGETS = ["user", "agent"] as const;
export type Target = (typeof TARGETS)[number];
export const HANDLERS = ["system", "agent"] as const;
export type Handler = (typeof HANDLERS)[number];

export interface Axes {
  readonly address: Address;
  readonly target: Target;
  readonly handler: Handler;
}

export const CHANNELS = ["inbox", "floor", "agent", "context"] as const;
export type Channel = (typeof CHANNELS)[number];

/** Channels on which the system shows the notification to the user itself. */
export const SYSTEM_CHANNELS: readonly Channel[] = ["inbox", "floor"];

export function isSystemChannel(channel: Channel): boolean {
  return channel === "inbox" || channel === "floor";
}

const CHANNEL_OF: Record<Address, Record<Target, Record<Handler, Channel>>> = {
  user: {
    user: { system: "inbox", agent: "agent" },
    agent: { system: "context", agent: "agent" },
  },
  session: {
    user: { system: "floor", agent: "agent" },
    agent: { system: "context", agent: "agent" },
  },
};

export function channelOf(axes: Axes): Channel {
  return CHANNEL_OF[axes.address][axes.target][axes.handler];
}

/** The agent must tell the user, in its own words, and acknowledge. */
export function mustNarrate(axes: Axes): boolean {
  return axes.target === "user" && axes.handler === "agent";
}

/** `session` means nothing without a thread: such an item is addressed to the user. */
export function effectiveAxes(declared: Axes, hasThread: boolean): Axes {
  return hasThread || declared.address === "user" ? declared : { ...declared, address: "user" };
}

/** Where an item goes that is taken from the agent: to the user, shown by the system. */
export function shownBySystem(effective: Axes, address: Address = effective.address): Axes {
  return { address, target: "user", handler: "system" };
}
