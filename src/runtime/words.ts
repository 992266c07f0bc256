/** What the system says to the model in messages of its own. They stay in the conversation for ever. */
import type { Stored } from "../store/contract.js";
import { type HeldItem, isInternalMatter } from "./holdings.js";

const DECIDE =
  "The system opened this turn for you alone: the notifications are yours to decide about. What you write here is not shown to the user; `tell_user` is.";
const WAKE = "The system opened this turn: there is something to tell you. See the notifications.";
const FORCED =
  "The system opened this turn because something critical has happened. See the notifications, and act on them first.";
const QUESTION_CUT_OFF =
  " Your answer was cut off by it: what the user had asked is still open; answer it in this turn, too, and go on where you were cut off.";
const CUT_OFF = " Your answer was cut off by it: go on where you were cut off, too.";

/** Why the system opened a turn. */
export function openingWords(told: readonly Stored[], forced: boolean): string {
  if (forced) return FORCED;
  return told.every(isInternalMatter) ? DECIDE : WAKE;
}

/** `open`: what was cut off, if something was that the user is to read: the answer to a question, or other words. */
export function forcingWords(open: "question" | "words" | null): string {
  return FORCED + (open === "question" ? QUESTION_CUT_OFF : open === "words" ? CUT_OFF : "");
}

export const GO_ON = "The answer was cut off by an error of the provider; go on.";

export const TURN_END = "Before you end this turn: there is more to tell you. See the notifications.";

export const BACKGROUND =
  "Before you end this turn: there is news of what you have started in the background. See the notifications.";

export function reminderWords(items: readonly HeldItem[]): string {
  const ids = items.map(({ id }) => `\`${id}\``).join(", ");
  return `You have not acknowledged ${ids}: tell the user now, then acknowledge by id with \`acknowledge_notifications\`. What is not acknowledged in this turn is shown to the user by the system.`;
}
