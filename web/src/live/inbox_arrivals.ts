/**
 * Which of all that is told is worth a toast: what is new since the page was opened, and what the agent says without being
 * asked. What it answers to the user is found where it was asked.
 */
import type { NotificationView, Told } from "tidings/client";
import { isUnread } from "./rows.js";

export type Arrival =
  | { readonly kind: "notification"; readonly notification: NotificationView; readonly isNew: boolean }
  | {
      readonly kind: "words";
      readonly turn_id: string;
      readonly thread_id: string;
      readonly text: string;
      /** In a turn that the user has opened: what the agent was told in it, and may be speaking of. */
      readonly told: readonly string[] | null;
    };

export class Arrivals {
  /** The journal's newest entry when the page was opened: what is older was there before. */
  #since: number | null = null;
  readonly #shown = new Set<string>();
  /** Turns that run and that the system has opened. */
  readonly #unasked = new Set<string>();
  /** What the agent was told in turns that run. */
  readonly #told = new Map<string, readonly string[]>();

  /** What of it is to be shown, or changes what is shown; null: nothing. */
  hear(told: Told): Arrival | null {
    switch (told.method) {
      case "inbox/counts":
        this.#since ??= told.params.seq;
        return null;
      case "stream/reset":
        // In another journal, other numbers count: it begins anew with what is told next.
        if (told.params.reason !== "cursor_too_old") this.#since = told.params.newest_seq;
        return null;
      case "notification/created":
      case "notification/updated": {
        const { notification, seq } = told.params;
        return { kind: "notification", notification, isNew: this.#isNew(notification, seq) };
      }
      case "item/created":
      case "item/updated": {
        const { item_type, role, status, content, turn_id, thread_id } = told.params;
        if (turn_id === null) return null;
        if (item_type === "observation") {
          const { notification_id } = content as { notification_id: string };
          this.#told.set(turn_id, [...(this.#told.get(turn_id) ?? []), notification_id]);
        }
        if (item_type !== "message" || role !== "assistant" || status !== "completed") return null;
        const inTurn = this.#unasked.has(turn_id) ? null : (this.#told.get(turn_id) ?? []);
        if (inTurn?.length === 0) return null;
        return { kind: "words", turn_id, thread_id, text: (content as { text: string }).text, told: inTurn };
      }
      case "turn/started":
        if (told.params.source === "system") this.#unasked.add(told.params.turn_id);
        return null;
      case "turn/completed":
      case "turn/interrupted":
      case "turn/failed":
        this.#unasked.delete(told.params.turn_id);
        this.#told.delete(told.params.turn_id);
        return null;
      default:
        return null;
    }
  }

  /** Each text of it is worth one toast. */
  #isNew(notification: NotificationView, seq: number): boolean {
    if (this.#since === null || seq <= this.#since || !isUnread(notification)) return false;
    if (notification.state === "DELIVERED") return false;
    const key = `${notification.id} ${notification.revision}`;
    if (this.#shown.has(key)) return false;
    this.#shown.add(key);
    return true;
  }
}
