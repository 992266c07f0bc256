/** What a turn holds, and what it has said since it was told each. What is here says what may be acknowledged, by whom. */
import { mustNarrate } from "../domain/axes.js";
import type { CarrierId, NotificationId } from "../domain/ids.js";
import type { Collected, Compose, Stored } from "../store/contract.js";

/** `held`: by this turn. `acknowledged`, `promoted`: it was. `over`: it is nobody's here any more, or never had to be. */
export type HeldState = "held" | "acknowledged" | "promoted" | "over";

export interface HeldItem {
  readonly id: NotificationId;
  readonly carrier_id: CarrierId;
  /** The fence. */
  readonly epoch: number;
  readonly must_narrate: boolean;
  /** Passive: it needs nothing once it was told. */
  readonly passive: boolean;
  readonly content: string;
  /** How often the turn had spoken when it was told this; null: it was not told yet. */
  readonly heard: number | null;
  readonly state: HeldState;
}

export class Holdings {
  readonly #items = new Map<NotificationId, HeldItem>();
  #spoken = 0;

  /** Collected, and not told yet. */
  add({ id: carrier_id, items }: Collected): void {
    for (const { notification, delivery } of items)
      this.#items.set(notification.id, {
        id: notification.id,
        carrier_id,
        epoch: delivery.lease_epoch,
        must_narrate: mustNarrate(delivery.effective),
        passive: delivery.channel === "context",
        content: notification.content,
        heard: null,
        state: "held",
      });
  }

  /** The provider has it: passive ones are done with. */
  told(carrier_id: CarrierId): void {
    this.#ofCarrier(carrier_id, (item) => ({
      ...item,
      heard: this.#spoken,
      state: item.passive && item.state === "held" ? "over" : item.state,
    }));
  }

  /** It was never told, and is let go. */
  released(carrier_id: CarrierId): void {
    this.#ofCarrier(carrier_id, (item) => ({ ...item, state: "over" }));
  }

  #ofCarrier(carrier_id: CarrierId, change: (item: HeldItem) => HeldItem): void {
    for (const item of this.#items.values()) if (item.carrier_id === carrier_id) this.#items.set(item.id, change(item));
  }

  get(id: string): HeldItem | undefined {
    return this.#items.get(id as NotificationId);
  }

  mark(id: NotificationId, state: HeldState): void {
    const item = this.#items.get(id);
    if (item !== undefined) this.#items.set(id, { ...item, state });
  }

  /** It goes to the user, in these words. */
  promote(id: NotificationId, content: string): void {
    const item = this.#items.get(id);
    if (item !== undefined) this.#items.set(id, { ...item, state: "promoted", content });
  }

  /** The user was told something by this turn. */
  spoke(): void {
    this.#spoken += 1;
  }

  /** Whether the turn has said something to the user since it was told this. */
  hasSpokenOf({ heard }: HeldItem): boolean {
    return heard !== null && this.#spoken > heard;
  }

  get isEmpty(): boolean {
    return ![...this.#items.values()].some(({ state }) => state === "held");
  }

  /** What it had to tell the user, was told, and has not acknowledged. */
  unacknowledged(): readonly HeldItem[] {
    return this.#filter((item) => item.must_narrate && item.state === "held" && item.heard !== null);
  }

  /** What is the agent's to decide about. */
  deciding(): readonly HeldItem[] {
    return this.#filter((item) => !item.must_narrate && !item.passive && item.state === "held");
  }

  promoted(): readonly HeldItem[] {
    return this.#filter(({ state }) => state === "promoted");
  }

  #filter(wanted: (item: HeldItem) => boolean): readonly HeldItem[] {
    return [...this.#items.values()].filter(wanted);
  }
}

/** Whether a turn that holds it can still be one that the user does not see. */
export function isInternalMatter({ notification, delivery }: Stored): boolean {
  if (delivery.priority === "critical") return false;
  return delivery.channel === "context" ? notification.wake_ms === null : !mustNarrate(delivery.effective);
}

/** Tells an internal turn only what leaves it one; the rest has a turn of its own. */
export function internalOnly(compose: Compose): Compose {
  return (candidates, more, aware, now) => compose(candidates.filter(isInternalMatter), more, aware, now);
}
