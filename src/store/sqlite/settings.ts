import type { SubscriberId, UserId } from "../../domain/ids.js";
import type { UserSettings } from "../../domain/settings.js";
import type { Connection, Statement } from "./connection.js";

/** What each user has chosen. */
export class Settings {
  readonly #one: Statement;
  readonly #set: Statement;

  constructor(connection: Connection) {
    this.#one = connection.prepare("SELECT disabled_subscribers FROM user_settings WHERE user_id = ?").pluck();
    this.#set = connection.prepare(
      `INSERT INTO user_settings (user_id, disabled_subscribers) VALUES (?, ?)
       ON CONFLICT (user_id) DO UPDATE SET disabled_subscribers = excluded.disabled_subscribers`,
    );
  }

  of(user_id: UserId): UserSettings {
    const text = this.#one.get(user_id) as string | undefined;
    return { user_id, disabled_subscribers: text === undefined ? [] : (JSON.parse(text) as SubscriberId[]) };
  }

  set({ user_id, disabled_subscribers }: UserSettings): void {
    this.#set.run(user_id, JSON.stringify(disabled_subscribers));
  }
}
