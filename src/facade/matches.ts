import { z } from "zod";
import { catchUp } from "../delivery/series.js";
import type { SubscriberId, UserId } from "../domain/ids.js";
import { matchesOf } from "../domain/journal.js";
import { LIMITS } from "../domain/limits.js";
import type { Principal } from "../domain/principal.js";
import { isoTime } from "../domain/time.js";
import type { MatchView } from "../intake/listing.js";
import type { Shared } from "./shared.js";

export const matchesSchema = z.int().min(0).max(LIMITS.matchesKept);

/** What each subscriber took last for a user. */
export async function lastMatches(
  { store, catalogue, writable }: Shared,
  principal: Principal,
  user_id: UserId,
  limit: number,
): Promise<ReadonlyMap<SubscriberId, readonly MatchView[]>> {
  if (writable) await catchUp(store);
  const found = new Map<SubscriberId, readonly MatchView[]>();
  for (const { id } of catalogue.subscribers) {
    const entries = await store.lastMatches(principal, user_id, id, limit);
    const views = entries.flatMap((entry): MatchView[] => {
      const match = matchesOf(entry.changes).find(({ subscriber_id }) => subscriber_id === id);
      if (match === undefined || entry.type !== "event") return [];
      const { outcome, notification_id } = match;
      const { id: event_id, type: event_type } = entry.event;
      return [{ at: isoTime(entry.at), event_id, event_type, outcome, notification_id }];
    });
    found.set(id, views);
  }
  return found;
}
