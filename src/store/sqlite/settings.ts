import { NotFoundError } from "../../domain/errors.js";
import type { SubscriberId, UserId } from "../../domain/ids.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import type { UserSettings } from "../../domain/settings.js";
import type { Transaction } from "./commit.js";
import type { Connection, Statement } from "./connection.js";
import type { Core } from "./core.js";

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

export function settingsOf(core: Core, principal: Principal, user_id: UserId): UserSettings {
  if (!mayAct(principal, user_id)) throw new NotFoundError("user", user_id);
  return core.settings.of(user_id);
}

export function updateSettings(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  settings: UserSettings,
): UserSettings {
  const { user_id, disabled_subscribers } = settings;
  const before = settingsOf(core, principal, user_id);
  if (before.disabled_subscribers.join("\n") === disabled_subscribers.join("\n")) return before;
  core.journal.append(transaction, user_id, null, { type: "settings", disabled_subscribers, changes: [] });
  core.settings.set(settings);
  return settings;
}
