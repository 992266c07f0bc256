import type { ResultOf } from "tidings/client";

export type SubscriberList = ResultOf<"subscriber/list">;
export type Subscriber = SubscriberList["subscribers"][number];
export type Problem = SubscriberList["problems"][number];
export type Match = Subscriber["last_matches"][number];
export type Preview = ResultOf<"subscriber/preview">;
