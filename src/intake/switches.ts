/**
 * Whether an event is to be told, by what the operator's file and the user say; asked at delivery. Each switch is a gate,
 * in this order: master, source, name, tool, user. Core subscribers and priority critical pass all of them.
 */
import type { Config } from "../config/config.js";
import { type Switch, sourceName } from "../config/kind_switches.js";
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
  const tool = event.payload["tool_name"];
  const ofTool = source === "tool" && typeof tool === "string" ? tools.get(tool) : undefined;
  for (const one of [kinds?.enable, kinds?.names.get(name), ofTool?.notifications.get(name)])
    if (one?.on === false) return `${one.path.join(".")} = false${where}`;
  if (disabled.includes(subscriber.id)) return `the user has disabled the subscriber ${subscriber.id}`;
  return undefined;
}

/** A switch of kinds that is off, and which types of events it is about. */
export interface OffSwitch {
  readonly at: Switch;
  readonly source: string;
  /** Null: all of the source. */
  readonly name: string | null;
  concerns(pattern: string): boolean;
}

export function* offSwitches({ notifications, tools }: Config): Generator<OffSwitch> {
  for (const [source, { enable, names }] of notifications.kinds) {
    if (enable?.on === false)
      yield { at: enable, source, name: null, concerns: (pattern) => kindOf(pattern).source === source };
    yield* offNames(source, names);
  }
  for (const { notifications: names } of tools.values()) yield* offNames("tool", names);
}

function* offNames(source: string, names: ReadonlyMap<string, Switch>): Generator<OffSwitch> {
  for (const [name, at] of names)
    if (!at.on) yield { at, source, name, concerns: (pattern) => isKind(pattern, source, name) };
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
  const where = config.file === null ? "" : ` (${config.file})`;
  const lines: string[] = [];
  const pass = (key: string, passing: typeof core) => {
    const ids = passing.map(({ id }) => id).join(", ");
    if (ids !== "") lines.push(`${key} = false${where} does not concern ${ids}: core subscribers stay on`);
  };
  if (!config.notifications.enable) pass("conversation.notifications.enable", core);
  for (const { at, concerns } of offSwitches(config))
    pass(
      at.path.join("."),
      core.filter(({ types }) => types.some(concerns)),
    );
  for (const { id } of core)
    if (disabled.includes(id)) lines.push(`the user has disabled ${id}, which is core by now and stays on`);
  return lines;
}

/** Whether it could keep anything back at all. */
export function switchesAnythingOff(config: Config): boolean {
  return !config.notifications.enable || offSwitches(config).next().done === false;
}

/** Split at the first dot: `tool.call.failure` is source `tool`, name `call.failure`. */
export function kindOf(type: string): { source: string; name: string } {
  const dot = type.indexOf(".");
  return { source: sourceName(type.slice(0, dot)), name: type.slice(dot + 1) };
}
