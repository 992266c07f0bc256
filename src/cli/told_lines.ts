/** What a server tells, a line each. */
import type { Told } from "../client/told.js";
import type { NotificationView } from "../domain/notification.js";
import { isoTime } from "../domain/time.js";
import { systemClock } from "../platform/clock.js";
import type { Output, Style } from "./output.js";
import { mark } from "./show.js";
import { cut, oneLine, pad, widthOf } from "./text.js";

const TIME_COLUMNS = 8;
const METHOD_COLUMNS = 20;
const TEXT_COLUMNS_MIN = 20;
const GAP = "  ";

const STYLES: Readonly<Record<string, Style>> = {
  notification: "cyan",
  inbox: "gray",
  thread: "magenta",
  turn: "green",
  item: "blue",
  runtime: "gray",
  stream: "yellow",
};

interface Line {
  /** When it happened; undefined: now. */
  readonly at?: string;
  /** Before what is from outside. */
  readonly sign?: string;
  readonly who?: string;
  readonly text: string;
}

/** Its time (UTC), what it is, whose it is and what it says, cut to the terminal. */
export function toldLine(told: Told, output: Output): string {
  const { at = isoTime(systemClock.wall()), sign = "", who = "", text } = lineOf(told, output);
  const [family = ""] = told.method.split("/");
  const shown = [who, text].filter((part) => part !== "").map(oneLine);
  const taken = TIME_COLUMNS + METHOD_COLUMNS + 2 * GAP.length + (sign === "" ? 0 : 2);
  const room = Math.max(TEXT_COLUMNS_MIN, output.width - taken);
  const [first = "", rest] = shown;
  const words = cut(shown.join(": "), room);
  // Who it is stands out where it is not cut off.
  const named =
    rest === undefined || widthOf(first) >= room ? words : output.style("bold", first) + words.slice(first.length);
  return [
    output.style("gray", pad(oneLine(at.slice(11, 11 + TIME_COLUMNS)), TIME_COLUMNS)),
    output.style(STYLES[family] ?? "gray", pad(oneLine(told.method), METHOD_COLUMNS)),
    sign === "" ? named : `${sign} ${named}`,
  ].join(GAP);
}

function lineOf(told: Told, output: Output): Line {
  switch (told.method) {
    case "notification/created": {
      const { notification } = told.params;
      return { at: notification.created_at, ...notificationLine(notification, output) };
    }
    case "notification/updated": {
      const { notification } = told.params;
      const { state, action, count } = notification;
      const how = [state, action ?? "", count > 1 ? `${count} times` : ""].filter((part) => part !== "").join(", ");
      const line = notificationLine(notification, output);
      return { at: notification.updated_at, ...line, text: `${how}: ${line.text}` };
    }
    case "inbox/counts": {
      const { unacknowledged, unread } = told.params;
      return { text: `${unacknowledged} unacknowledged, ${unread} unread` };
    }
    case "thread/started":
    case "thread/resumed":
    case "thread/paused":
    case "thread/closed":
      return { who: told.params.thread_id, text: told.params.state };
    case "turn/started": {
      const { thread_id, turn_id, source, started_at } = told.params;
      return { at: started_at, who: thread_id, text: `${turn_id}, opened by the ${source}` };
    }
    case "turn/completed":
      return { at: told.params.completed_at, who: told.params.thread_id, text: told.params.turn_id };
    case "turn/interrupted": {
      const { thread_id, turn_id, message, continued_by } = told.params;
      const goesOn = continued_by === null ? "" : `, goes on as ${continued_by}`;
      return { who: thread_id, text: `${turn_id}${message === null ? "" : `, ${message}`}${goesOn}` };
    }
    case "turn/failed": {
      const { thread_id, turn_id, message } = told.params;
      return { who: thread_id, text: `${turn_id}${message === null ? "" : `, ${message}`}` };
    }
    case "turn/progress":
      return { who: told.params.thread_id, text: told.params.delta };
    case "item/created":
    case "item/updated":
      return { at: told.params.timestamp, ...itemLine(told) };
    case "item/deleted":
      return { at: told.params.timestamp, who: told.params.item_type, text: told.params.item_id };
    case "runtime/log":
      return { at: told.params.time, who: told.params.level, text: told.params.message };
    case "stream/reset": {
      const { reason, newest_seq } = told.params;
      return { text: `${reason}: something is missing; what comes after ${newest_seq} is told` };
    }
    default:
      return { text: JSON.stringify((told as Told).params) };
  }
}

function notificationLine({ severity, source, content }: NotificationView, output: Output): Line {
  return { sign: mark(severity, output), who: source, text: content };
}

function itemLine({ params }: Told<"item/created" | "item/updated">): Line {
  switch (params.item_type) {
    case "tool_call": {
      const { name, input, output } = params.content;
      const result = output === null ? "" : ` → ${output}`;
      return { who: "tool", text: `${name} ${JSON.stringify(input)}${result}` };
    }
    case "notice":
      return { who: "notice", text: params.content.notification.content };
    case "observation":
      return { who: "told the agent", text: params.content.text };
    case "message":
      return { who: params.role ?? "message", text: params.content.text };
    case "queued":
    case "steer":
      return { who: `${params.role ?? "user"}, ${params.item_type}`, text: params.content.text };
  }
}
