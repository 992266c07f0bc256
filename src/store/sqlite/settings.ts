import type { SubscriberId, UserId } from "../../domain/ids.js";
import type { UserSettings } from "../../domain/settings.js";
import type { Connection, Statement } from "./connection.js";

const KNOWN_MAX = 1_024;

/** What each user has chosen. */
export class Settings {
  readonly #one: Statement;
  readonly #set: Statement;

  /** Of the users asked for last; null for a reader, since others change them. */
  readonly #known: Map<UserId, UserSettings> | null;

  /** `writer`: nobody else changes them. */
  constructor(connection: Connection, writer: boolean) {
    this.#known = writer ? new Map() : null;
    this.#one = connection.prepare("SELECT disabled_subscribers FROM user_settings WHERE user_id = ?").pluck();
    this.#set = connection.prepare(
      `INSERT INTO user_settings (user_id, disabled_subscribers) VALUES (?, ?)
       ON CONFLICT (user_id) DO UPDATE SET disabled_subscribers = excluded.disabled_subscribers`,
    );
  }

  of(user_id: UserId): UserSettings {
    const known = this.#known?.get(user_id);
    if (known !== undefined) return known;
    const text = this.#one.get(user_id) as string | undefined;
    const disabled_subscribers = text === undefined ? [] : (JSON.parse(text) as SubscriberId[]);
    return this.#remember({ user_id, disabled_subscribers });
  }

  set(settings: UserSettings): void {
    this.#set.run(settings.user_id, JSON.stringify(settings.disabled_subscribers));
    this.#remember(settings);
  }

  #remember(settings: UserSettings): UserSettings {
    if (this.#known === null) return settings;
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(settings.user_id, settings);
    return settings;
  }
}
