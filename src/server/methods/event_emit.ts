import { type EventInput, eventSchema } from "../../domain/event.js";
import { defineMethod } from "../method.js";
import { emitResult } from "../results/notification.js";

export const eventEmit = defineMethod({
  name: "event/emit",
  scope: "ingest",
  summary: "Takes an event in; answers when it is on disk.",
  params: eventSchema,
  result: emitResult,
  async run(params, { caller, runtime }) {
    const { to, input } = caller.sending(params as EventInput);
    const answer = await to.emit(input);
    runtime.events.add(input.user_id ?? caller.user_id);
    return answer;
  },
});
