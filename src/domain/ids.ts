/** Branded ids: a thread's id can never be passed where a notification's is wanted. */

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** The host's id of an event (UUIDv7). The producer's own id is `producer_id`, a plain string. */
export type EventId = Branded<"EventId">;
/** UUIDv7. */
export type NotificationId = Branded<"NotificationId">;
/** Chosen by whoever starts the thread; belongs to one user. */
export type ThreadId = Branded<"ThreadId">;
export type UserId = Branded<"UserId">;
export type SubscriberId = Branded<"SubscriberId">;
/** UUIDv7; one for every claim. */
export type LeaseId = Branded<"LeaseId">;
/** UUIDv7; its last 48 bits are the `seq` of the entry that opened it. */
export type CarrierId = Branded<"CarrierId">;
/** UUIDv7; its last 48 bits are the `seq` of the entry that made it. */
export type TurnId = Branded<"TurnId">;
/** UUIDv7; names a token without being it. */
export type TokenId = Branded<"TokenId">;
/** Names one journal; a restored backup gets a new one. */
export type JournalId = Branded<"JournalId">;

export const eventId = (value: string): EventId => value as EventId;
export const notificationId = (value: string): NotificationId => value as NotificationId;
export const threadId = (value: string): ThreadId => value as ThreadId;
export const userId = (value: string): UserId => value as UserId;
export const subscriberId = (value: string): SubscriberId => value as SubscriberId;
export const leaseId = (value: string): LeaseId => value as LeaseId;
export const carrierId = (value: string): CarrierId => value as CarrierId;
export const turnId = (value: string): TurnId => value as TurnId;
export const tokenId = (value: string): TokenId => value as TokenId;
export const journalId = (value: string): JournalId => value as JournalId;

/** The user of everything that names none. */
export const LOCAL_USER = userId("local");
/** The subscriber behind `notify()`. */
export const DIRECT_SUBSCRIBER = subscriberId("direct");
/** The subscriber behind the summary of what was too much. */
export const OVERFLOW_SUBSCRIBER = subscriberId("overflow");
