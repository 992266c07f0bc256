/** What the user wants to be told, and what not. */
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { useClient } from "../../session/session.js";
import type { Subscriber } from "./types.js";

export interface Turn {
  readonly to: (subscriber: Subscriber, on: boolean) => void;
  /** The one that is being turned. */
  readonly busy: string | null;
}

export function useSwitch(changed: () => void): Turn {
  const client = useClient();
  const [busy, setBusy] = useState<string | null>(null);
  const to = async ({ id, name }: Subscriber, on: boolean) => {
    setBusy(id);
    try {
      // As it is now: another tab may have turned another one.
      const { disabled_subscribers: before } = await client.call("settings/get", {});
      const rest = before.filter((one) => one !== id);
      await client.call("settings/update", { disabled_subscribers: on ? rest : [...rest, id] });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      notifications.show({ color: "red", title: `${name ?? id} stays as it was`, message });
    }
    setBusy(null);
    changed();
  };
  return { to: (subscriber, on) => void to(subscriber, on), busy };
}

/** Why it cannot be turned. */
export interface Fixed {
  readonly kind: "core" | "not_enabled" | "broken";
  readonly why: string;
}

/** Null if it can be turned. */
export function fixedBecause({ core_reason, state, enabled }: Subscriber): Fixed | null {
  if (core_reason !== null) return { kind: "core", why: `Always on: ${core_reason}.` };
  if (enabled === null) return { kind: "broken", why: "Not in effect: its file is broken." };
  if (state === "loaded") return { kind: "not_enabled", why: "Off for all: its file has enabled = false." };
  return null;
}
