import type { EventInput } from "../../domain/event.js";
import { previewSchema } from "../../tidings.js";
import { defineMethod } from "../method.js";
import { previewResult } from "../results/subscriber.js";

export const subscriberPreview = defineMethod({
  name: "subscriber/preview",
  scope: "read",
  summary: "What a subscriber would make of an event, in the words in which it would be told. Nothing is stored.",
  params: previewSchema,
  result: previewResult,
  run(params, { caller }) {
    const user_id = caller.userOr(params.user_id);
    const event = params.event as EventInput | undefined;
    return caller.as(params.user_id).previewSubscriber({ ...params, event, user_id });
  },
});
