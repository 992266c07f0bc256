import type { NotificationId } from "../../domain/ids.js";
import type { Priority } from "../../domain/priority.js";
import type { Severity } from "../../domain/severity.js";

/** A notification, as far as a block shows it. */
export interface BlockItem {
  readonly id: NotificationId;
  readonly revision: number;
  /** Events behind it. */
  readonly count: number;
  readonly kind: string;
  readonly severity: Severity;
  readonly priority: Priority;
  readonly content: string;
  /** The agent must tell the user, in its own words, and acknowledge it by its id. */
  readonly must_narrate: boolean;
  /** A granted instruction; the content is none. */
  readonly directive: string | null;
  readonly created_at: string;
}

/** `full`: all of it, up to the length that one may have. `line`: the beginning of it, on one line. */
export type Form = "full" | "line";

/** What the system showed the user, for the agent to know. */
export interface Awareness {
  /** In the conversation. Acknowledged: the user's screen has shown it. */
  readonly seen: readonly { readonly content: string; readonly kind: string; readonly acknowledged: boolean }[];
  /** How many more there were than `seen` lists. */
  readonly seen_more: number;
  /** `newest`: the words of the newest unread one. */
  readonly inbox: { readonly unread: number; readonly newest: string | null } | null;
}
