/** Where something goes, and when, in words: the three axes and the injection points are words of the wire. */
import type { NotificationView } from "tidings/client";

type Axes = Pick<NotificationView, "address" | "target" | "handler">;
type InjectionPoint = NotificationView["inject_at"];

export const POINTS: Readonly<Record<InjectionPoint | "user_message", string>> = {
  next: "with its next input, whatever that is",
  turn_start: "at the start of a turn",
  user_message: "with the user's message",
  after_tool: "with the results of tools",
  turn_end: "at the end of a turn",
  immediate: "at once",
};

export function goesTo({ address, target, handler }: Axes): string {
  if (target === "agent") return handler === "agent" ? "the agent, which decides what to do" : "the agent, as context";
  if (handler === "agent") return "the agent, which is to tell the user";
  return address === "session" ? "the user, in the conversation" : "the user, in the inbox";
}

/** When the agent is told; null where the user is, who is told at once. */
export function toldWhen({ target, handler }: Axes, inject_at: InjectionPoint): string | null {
  return target === "user" && handler === "system" ? null : POINTS[inject_at];
}
