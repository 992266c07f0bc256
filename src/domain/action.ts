/** What a user did with a notification that was shown. */
export const ACK_ACTIONS = ["rendered", "clicked", "dismissed"] as const;
export type AckAction = (typeof ACK_ACTIONS)[number];
