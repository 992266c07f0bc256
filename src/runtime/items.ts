/** What a turn writes into its conversation. */
import type { ChatRequest, ChatResponse, Item, Steer } from "../domain/conversation.js";
import type { Usage } from "../providers/model.js";
import type { Answer, AskedCall } from "./call.js";

/** Words that were for a turn which has not taken them up yet. */
export function steerRequest({ content, steer }: Steer): ChatRequest {
  return { type: "chat_request", content, source: "user", steer };
}

export function systemRequest(content: string): ChatRequest {
  return { type: "chat_request", content, source: "system" };
}

export function responseOf({ text, original, usage }: Answer & { how: "whole" }): ChatResponse {
  return {
    type: "chat_response",
    content: text,
    ...(original === null ? {} : { original }),
    ...(usage === null ? {} : { usage }),
  };
}

/** What was said before it was cut off; nothing if nothing was. */
export function partial(text: string, usage: Usage | null): ChatResponse[] {
  if (text.trim() === "") return [];
  return [{ type: "chat_response", content: text, truncated: true, ...(usage === null ? {} : { usage }) }];
}

export function requestOf({ id, name, input, malformed }: AskedCall): Item {
  return { type: "tool_call_request", id, name, input, ...(malformed === undefined ? {} : { malformed }) };
}

export function notRun({ id, name }: AskedCall): Item {
  return { type: "tool_call_response", id, name, output: "interrupted before it was begun", is_error: true };
}
