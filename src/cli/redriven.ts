/** Which dead letters were sent again. */
import type { PlaneView } from "../client/remote.js";
import { isMiss } from "../domain/errors.js";
import type { NotificationView } from "../domain/notification.js";

/** By the id of a dead letter, what it was sent again as. A notification does not say so itself; its story does. */
export type Redriven = Readonly<Record<string, string>>;

export async function redrivenOf(
  plane: Pick<PlaneView, "explain">,
  notifications: readonly NotificationView[],
): Promise<Redriven> {
  const redriven: Record<string, string> = {};
  for (const { id, state } of notifications) {
    if (state !== "FAILED") continue;
    const answer = await plane.explain(id);
    const line = isMiss(answer) ? undefined : answer.story.find(({ kind }) => kind === "redriven");
    if (line?.notification_id !== undefined) redriven[id] = line.notification_id;
  }
  return redriven;
}

/** The first one that can be sent again. */
export function firstRedrivable(
  notifications: readonly NotificationView[],
  redriven: Redriven,
): NotificationView | undefined {
  return notifications.find(({ id, state }) => state === "FAILED" && redriven[id] === undefined);
}
