/**
 * Whether an event is to be told, by what the operator's file and the user say; asked at delivery. Each switch is a gate,
 * in this order: master, source, name, tool, user. Core subscribers and priority critical pass all of them.
 */
import { type Config, sourceName } from "../config/config.js";
import { type Event, matchesType } from "../domain/event.js";
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

/** A switch that is off, and which types of events it is about. */
interface OffSwitch {
  readonly rule: string;
  concerns(pattern: string): boolean;
}

function* offSwitches({ file, notifications, tools }: Config): Generator<OffSwitch> {
  const where = file === null ? "" : ` (${file})`;
  if (!notifications.enable) yield { rule: `conversation.notifications.enable = false${where}`, concerns: () => true };
  for (const [source, { enable, names }] of notifications.kinds) {
    const key = `conversation.notifications.kinds.${source}`;
    if (!enable)
      yield { rule: `${key}.enable = false${where}`, concerns: (pattern) => kindOf(pattern).source === source };
    for (const [name, on] of names)
      if (!on) yield { rule: `${key}.${name} = false${where}`, concerns: (pattern) => isKind(pattern, source, name) };
  }
  for (const [tool, { notifications: names }] of tools)
    for (const [name, on] of names) {
      const rule = `conversation.tools.${tool}.notifications.${name} = false${where}`;
      if (!on) yield { rule, concerns: (pattern) => isKind(pattern, "tool", name) };
    }
}

function isKind(pattern: string, source: string, name: string): boolean {
  const kind = kindOf(pattern);
  return kind.source === source && matchesType(`${source}.${kind.name}`, `${source}.${name}`);
}

/** What is switched off, and stays on because it is core; a line each. */
export function withoutEffect(
  config: Config,
  core: readonly { readonly id: SubscriberId; readonly types: readonly string[] }[],
  disabled: readonly SubscriberId[],
): string[] {
  const lines: string[] = [];
  for (const { rule, concerns } of offSwitches(config)) {
    const passing = core.filter(({ types }) => types.some(concerns)).map(({ id }) => id);
    if (passing.length > 0) lines.push(`${rule} does not concern ${passing.join(", ")}: core subscribers stay on`);
  }
  for (const { id } of core)
    if (disabled.includes(id)) lines.push(`the user has disabled ${id}, which is core by now and stays on`);
  return lines;
}

/** Whether it could keep anything back at all. */
export function switchesAnythingOff(config: Config): boolean {
  return offSwitches(config).next().done === false;
}

/** Split at the first dot: `tool.call.failure` is source `tool`, name `call.failure`. */
export function kindOf(type: string): { source: string; name: string } {
  const dot = type.indexOf(".");
  return { source: sourceName(type.slice(0, dot)), name: type.slice(dot + 1) };
}
