/** A client for Node and browsers: calls, and what the server tells, without a gap over connections that break. */
export {
  AccessError,
  ConflictError,
  InvalidInputError,
  isMiss,
  type Miss,
  OverloadedError,
  TidingsError,
  TooLargeError,
  UnreachableError,
} from "../domain/errors.js";
export type { NotificationView } from "../domain/notification.js";
export type { ThreadItem } from "../runtime/thread_items.js";
export type { AskOptions } from "./calls.js";
export { TidingsClient } from "./client.js";
export type {
  CarrierView,
  Cursor,
  InterruptResult,
  MethodName,
  Methods,
  ParamsOf,
  ResultOf,
  ResumeAnswer,
  RuntimeStatus,
  ServerInfo,
  StartedTurn,
  TurnInput,
  View,
} from "./methods.js";
export type { ClientOptions, NotificationsOptions, Status, StatusDetail } from "./options.js";
export { SlowConsumerError } from "./reader.js";
export type { Told, ToldName, ToldParams } from "./told.js";
