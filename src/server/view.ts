/** What a client wants to hear. */
import { z } from "zod";
import { NOTIFICATION_NAMES, type NotificationName } from "./notifications.js";

export interface ClientView {
  /** What happens in conversations. */
  readonly conversation: boolean;
  /** Also what the agent was told. */
  readonly observe: boolean;
  /** Methods that it does not want to be told. */
  readonly opt_out: ReadonlySet<NotificationName>;
}

/** Without it a client could not know that it has missed something. */
const MANDATORY = "stream/reset";
const names = NOTIFICATION_NAMES.filter((name) => name !== MANDATORY);

export const optOutSchema = z
  .array(z.enum(names, `must be the name of a notification, like turn/progress; ${MANDATORY} is always told`))
  .max(names.length)
  .default([]);

export const viewSchema = z.strictObject({
  observe: z.boolean().default(false),
  conversation: z.boolean().default(true),
  opt_out: optOutSchema,
});

/** What most clients do not want to be told. */
const NOTHING: ReadonlySet<NotificationName> = new Set();

export function viewOf({ observe, conversation, opt_out }: z.output<typeof viewSchema>): ClientView {
  return { observe, conversation, opt_out: opt_out.length === 0 ? NOTHING : new Set(opt_out) };
}

/** Everything but what the agent was told: what a stream tells that nobody asked for anything else. */
export const WHOLE_VIEW: ClientView = { conversation: true, observe: false, opt_out: NOTHING };
/** Notifications and counts: what a WebSocket tells before `initialize`. */
export const INBOX_VIEW: ClientView = { conversation: false, observe: false, opt_out: NOTHING };

/** Whether one has something that the other has not. */
export function widens(before: ClientView, after: ClientView): boolean {
  return (
    (after.conversation && !before.conversation) ||
    (after.conversation && after.observe && !before.observe) ||
    [...before.opt_out].some((name) => !after.opt_out.has(name))
  );
}

export function wants(
  { conversation, observe, opt_out }: ClientView,
  frame: { readonly method: NotificationName; readonly about: unknown; readonly observation: boolean },
): boolean {
  if (opt_out.has(frame.method)) return false;
  return frame.about === null || (conversation && (observe || !frame.observation));
}

/** Whether there is anything in the journal that it wants to hear. */
export function wantsAnyPush({ conversation, opt_out }: ClientView): boolean {
  return conversation || !opt_out.has("notification/created") || !opt_out.has("notification/updated");
}
