/**
 * Whether an event is to be told, by what the operator's file and the user say; asked at delivery. Each switch is a gate,
 * in this order: master, source, name, tool, user. Core subscribers and priority critical pass all of them.
 */
import { type Config, sourceName } from "../config/config.js";
import type { Event } from "../domain/event.js";
import type { SubscriberId } from "../domain/ids.js";
import type { Priority } from "../domain/priority.js";

export interface Asked {
  readonly event: Pick<Event, "type" | "payload">;
  readonly subscriber: { readonly id: SubscriberId; readonly core: boolean };
  readonly priority: Priority;
  /** The user's own choice. */
  readonly disabled: readonly SubscriberId[];
}

/** The rule that keeps it back, in words for `explain`; undefined if none does. */
export function muting(config: Config, { event, subscriber, priority, disabled }: Asked): string | undefined {
  if (subscriber.core || priority === "critical") return undefined;
  const { notifications, tools } = config;
  const where = config.file === null ? "" : ` (${config.file})`;
  if (!notifications.enable) return `conversation.notifications.enable = false${where}`;
  const { source, name } = kindOf(event.type);
  const kinds = notifications.kinds.get(source);
  if (kinds?.enable === false) return `conversation.notifications.kinds.${source}.enable = false${where}`;
  if (kinds?.names.get(name) === false) return `conversation.notifications.kinds.${source}.${name} = false${where}`;
  const tool = event.payload["tool_name"];
  if (source === "tool" && typeof tool === "string" && tools.get(tool)?.notifications.get(name) === false)
    return `conversation.tools.${tool}.notifications.${name} = false${where}`;
  if (disabled.includes(subscriber.id)) return `the user has disabled the subscriber ${subscriber.id}`;
  return undefined;
}

/** Split at the first dot: `tool.call.failure` is source `tool`, name `call.failure`. */
export function kindOf(type: string): { source: string; name: string } {
  const dot = type.indexOf(".");
  return { source: sourceName(type.slice(0, dot)), name: type.slice(dot + 1) };
}
