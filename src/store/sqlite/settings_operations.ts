import { NotFoundError } from "../../domain/errors.js";
import type { UserId } from "../../domain/ids.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import type { UserSettings } from "../../domain/settings.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";

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
