/** Conversations as the wire has them: what is said to an agent, and its threads and turns in the answers. */
import { z } from "zod";
import { LIMITS } from "../domain/limits.js";
import { wordSchema } from "../domain/parse.js";
import type { ThreadSummaryView, ThreadView, TurnView } from "../runtime/conversation.js";

/** Somewhere in it there is more than spaces. */
export const NOT_BLANK = "\\S";

// How long all of them may be together cannot be described; none may be longer than that.
const partSchema = z.strictObject({
  type: z.literal("input_text"),
  text: z.string().meta({ maxLength: LIMITS.contentChars }),
});

const said = { properties: { text: { type: "string", pattern: NOT_BLANK } } };

const messageSchema = z.strictObject({
  type: z.literal("message"),
  role: z.literal("user"),
  content: z.array(partSchema).min(1, "must not be empty"),
});

/** In a described schema: it may also be a text of so many characters. */
export const OR_TEXT = "x-or-text";

/** A user's words, as a text or as messages; several of them are one, each on lines of its own. */
export const inputSchema = z
  .preprocess(
    (input) =>
      typeof input === "string"
        ? [{ type: "message", role: "user", content: [{ type: "input_text", text: input }] }]
        : input,
    z
      .array(messageSchema, "must be a text, or an array of messages")
      .min(1, "must not be empty")
      .meta({ contains: { properties: { content: { type: "array", contains: said } } } }),
  )
  .transform((messages) => ({
    text: messages.flatMap(({ content }) => content.map(({ text }) => text)).join("\n"),
    items: messages.length,
  }))
  .refine(({ text }) => text.trim() !== "", "must not be empty")
  .refine(({ text }) => text.length <= LIMITS.contentChars, `is longer than ${LIMITS.contentChars} characters`)
  .refine(({ text }) => text.isWellFormed(), "holds a lone surrogate, which is not text")
  // What is made of a text before it is looked at cannot be seen in the schema.
  .meta({ [OR_TEXT]: LIMITS.contentChars });

const word = wordSchema(LIMITS.idChars);

/** One thread by its id; admin's token may act as a user. */
export const threadSchema = z.strictObject({ thread_id: word, user_id: word.optional() });

export const turnSchema = z.strictObject({ turn_id: word, user_id: word.optional() });

export type ThreadAnswer = Omit<ThreadView, "state"> & {
  /** The same as `thread_id`. */
  session_id: ThreadView["thread_id"];
  state: "running" | "paused" | "closed";
  started_at: string;
};

export function threadAnswer(thread: ThreadView): ThreadAnswer {
  const { thread_id, state, created_at } = thread;
  const shown = state === "open" ? "running" : state;
  return { ...thread, session_id: thread_id, state: shown, started_at: created_at };
}

export type ThreadSummaryAnswer = ThreadAnswer & Omit<ThreadSummaryView, keyof ThreadView>;

export function summaryAnswer(thread: ThreadSummaryView): ThreadSummaryAnswer {
  return { ...thread, ...threadAnswer(thread) };
}

/** Of a turn that was begun just now, or waits. */
export function startAnswer(turn: TurnView): TurnView & { started_at: string | null } {
  return { ...turn, started_at: turn.state === "queued" ? null : turn.created_at };
}
