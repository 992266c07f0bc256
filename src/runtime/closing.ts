import type { Item, Steer, ToolCallRequest } from "../domain/conversation.js";
import { steerRequest } from "./items.js";
import { INTERRUPTED } from "./tools.js";

/** What is missing in a turn that was left where it was: results of calls, and words of the user that were not taken up. */
export function closing(items: readonly Item[]): readonly Item[] {
  const calls = new Map<string, ToolCallRequest>();
  const steers = new Map<number, Steer>();
  for (const item of items) {
    if (item.type === "tool_call_request") calls.set(item.id, item);
    if (item.type === "tool_call_response") calls.delete(item.id);
    if (item.type === "steer") steers.set(item.steer, item);
    if (item.type === "chat_request" && item.steer !== undefined) steers.delete(item.steer);
  }
  return [
    ...[...calls.values()].map(
      ({ id, name }): Item => ({ type: "tool_call_response", id, name, output: INTERRUPTED, is_error: true }),
    ),
    ...[...steers.values()].map(steerRequest),
  ];
}
