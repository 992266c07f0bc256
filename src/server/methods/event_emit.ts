import { type EventInput, eventSchema } from "../../domain/event.js";
import { defineMethod } from "../method.js";

export const eventEmit = defineMethod({
  name: "event/emit",
  scope: "ingest",
  summary: "Takes an event in; answers when it is on disk.",
  params: eventSchema,
  run(params, { caller }) {
    const { to, input } = caller.sending(params as EventInput);
    return to.emit(input);
  },
});
