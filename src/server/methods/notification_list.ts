import { breathe } from "../../platform/timers.js";
import { type ListAnswer, type ListInput, listSchema, type TidingsView } from "../../tidings.js";
import { defineMethod } from "../method.js";
import { listResult } from "../results/notification.js";

export const notificationList = defineMethod({
  name: "notification/list",
  scope: "read",
  summary: "Notifications, newest first; admin's token sees every user's. A page that would be too large is shorter.",
  params: listSchema,
  result: listResult,
  run(params, { caller, bytesMax }) {
    return pageWithin(caller.as(params.user_id), params, bytesMax);
  },
});

/** So many are looked up at once at first, then twice as many; what does not fit was looked up for nothing. */
const SLICE = 8;
const SLICE_MAX = 256;

/** As many as were asked for, or as go into an answer of this size; always one. Others have their turn in between. */
async function pageWithin(
  view: TidingsView,
  params: ListInput & { limit: number },
  bytesMax: number,
): Promise<ListAnswer> {
  const page: ListAnswer = { notifications: [], next: params.after ?? null };
  const ask = (limit: number) => view.list({ ...params, limit, after: page.next ?? undefined });
  let room = bytesMax;
  for (let slice = SLICE; ; slice = Math.min(2 * slice, SLICE_MAX)) {
    const limit = Math.min(slice, params.limit - page.notifications.length);
    let { notifications, next } = await ask(limit);
    let fitting = 0;
    for (const one of notifications) {
      room -= Buffer.byteLength(JSON.stringify(one));
      if (room < 0) break;
      fitting += 1;
    }
    if (room < 0) {
      const few = page.notifications.length === 0 ? Math.max(1, fitting) : fitting;
      if (few === 0) return page;
      ({ notifications, next } = await ask(few));
    }
    page.notifications.push(...notifications);
    page.next = next;
    // A short one has looked at as many rows as one call may.
    const over = room < 0 || notifications.length < limit || page.notifications.length >= params.limit;
    if (next === null || over) return page;
    await breathe();
  }
}
