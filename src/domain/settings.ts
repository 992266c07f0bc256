import type { SubscriberId, UserId } from "./ids.js";

/** What a user has chosen. */
export interface UserSettings {
  readonly user_id: UserId;
  /** Their notifications are not delivered to this user; kept also when such a subscriber is no longer there. */
  readonly disabled_subscribers: readonly SubscriberId[];
}
