/**
 * What users are to be shown, as it happens: the journal read as pushes. Only what a system channel owns is pushed;
 * what is the agent's alone is not, until it escalates.
 */
import { isSystemChannel } from "../domain/axes.js";
import type { NotificationId, TokenId, UserId } from "../domain/ids.js";
import type { JournalEntry } from "../domain/journal.js";
import type { Kept, NotificationView } from "../domain/notification.js";
import { HOST } from "../domain/principal.js";
import { evolve } from "../domain/reducer.js";
import { viewOf } from "../domain/view.js";
import type { Store } from "../store/contract.js";
import { watchPages } from "./watch.js";

/** A notification came to a system channel (`created`), or changed on one. It is shown as it was at `seq`. */
export interface Push {
  readonly kind: "created" | "updated";
  readonly user_id: UserId;
  readonly seq: number;
  readonly notification: NotificationView;
}

export interface FeedBatch {
  /** Everything up to here is in this batch or an earlier one. */
  readonly seq: number;
  readonly pushes: readonly Push[];
  readonly revoked: readonly TokenId[];
}

/** Batches after `start`, of the users that `wants` names. */
export async function* feed(
  store: Store,
  start: Promise<number>,
  wants: (user_id: UserId) => boolean,
  signal: AbortSignal,
): AsyncGenerator<FeedBatch, void, undefined> {
  for await (const page of watchPages(store, HOST, start, signal)) {
    const pushes: Push[] = [];
    const revoked: TokenId[] = [];
    for (const entry of page.entries) {
      if (entry.type === "token" && entry.action === "revoked") revoked.push(entry.token_id);
      if (entry.changes.length > 0 && wants(entry.user_id)) pushes.push(...(await pushesOf(store, entry)));
    }
    yield { seq: page.after, pushes, revoked };
  }
}

async function pushesOf(store: Store, entry: JournalEntry): Promise<Push[]> {
  const { seq, user_id } = entry;
  const pushes: Push[] = [];
  for (const id of new Set(entry.changes.map((change) => change.notification_id))) {
    const changes = entry.changes.filter((change) => change.notification_id === id);
    const kept = await keptAt(store, entry, id);
    // Retention has removed it meanwhile: it was settled long ago.
    if (kept === undefined || !isSystemChannel(kept.delivery.channel)) continue;
    const arrived = changes.some(({ command }) => command === "create" || command === "escalate");
    if (arrived && kept.delivery.state === "SUPPRESSED") continue;
    pushes.push({ kind: arrived ? "created" : "updated", user_id, seq, notification: viewOf(kept) });
  }
  return pushes;
}

type KeptWithEvents = Kept & { readonly event_ids: Parameters<typeof viewOf>[0]["event_ids"] };

/** The notification as this entry left it. */
async function keptAt(store: Store, entry: JournalEntry, id: NotificationId): Promise<KeptWithEvents | undefined> {
  const created = entry.changes.some((change) => change.notification_id === id && change.command === "create");
  if (created) return replayed([entry], id);
  const stored = await store.get(HOST, id);
  if (stored === undefined || stored.seq === entry.seq) return stored;
  const story = (await store.story(HOST, id)) ?? [];
  return replayed(
    story.filter(({ seq }) => seq <= entry.seq),
    id,
  );
}

function replayed(story: readonly JournalEntry[], id: NotificationId): KeptWithEvents | undefined {
  let kept: Kept | undefined;
  const event_ids = [];
  for (const entry of story) {
    for (const change of entry.changes) {
      if (change.notification_id !== id) continue;
      kept = evolve(kept, change, entry.at);
      const event_id = change.notification?.event_id ?? change.event_id;
      if (event_id !== undefined) event_ids.push(event_id);
    }
  }
  return kept === undefined ? undefined : { ...kept, event_ids };
}
