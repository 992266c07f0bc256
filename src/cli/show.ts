/** How notifications look in a terminal. */
import type { Miss } from "../domain/errors.js";
import type { NotificationView } from "../domain/notification.js";
import type { Severity } from "../domain/severity.js";
import type { State } from "../domain/transitions.js";
import { systemClock } from "../platform/clock.js";
import type { Output, Style } from "./output.js";
import { ago, cut, oneLine, pad, shortDuration, widthOf, wrap } from "./text.js";

const MARKS: Record<Severity, readonly [string, Style]> = {
  debug: ["·", "gray"],
  info: ["●", "blue"],
  warning: ["▲", "yellow"],
  error: ["✖", "red"],
  critical: ["◆", "magenta"],
};

const STATE_STYLES: Record<State, Style> = {
  PENDING: "yellow",
  DISPATCHED: "cyan",
  LOCKED: "blue",
  DELIVERED: "green",
  ESCALATED: "magenta",
  FAILED: "red",
  SUPPRESSED: "gray",
};

const TEXT_LINES_MAX = 6;
/** Beyond this, lines are hard to read however wide the window is. */
const TEXT_WIDTH_MAX = 100;

export function mark(severity: Severity, output: Output): string {
  const [sign, style] = MARKS[severity];
  return output.style(style, sign);
}

export function stateWord(state: State, output: Output, columns = 0): string {
  return output.style(STATE_STYLES[state], pad(state, columns));
}

/** How often, unless its own words say so. */
export function times({ content, count }: NotificationView): string {
  return count > 1 && !content.includes(`${count} times`) ? `(${count} times)` : "";
}

export function ageOf(at: string): string {
  return shortDuration(systemClock.wall() - Date.parse(at));
}

/** A notification as its reader sees it: the words, and under them what they are about; of a dead letter, what it was sent again as. */
export async function showCard(notification: NotificationView, output: Output, redrivenAs?: string): Promise<void> {
  const { severity, state, channel, revision, reason, source, thread_id } = notification;
  const width = output.columns(TEXT_WIDTH_MAX) - 4;
  const text = [notification.content, times(notification)].filter((part) => part !== "").join("  ");
  const lines = text.split(/\r?\n/).flatMap((line) => wrap(oneLine(line), width));
  const shown = lines.slice(0, TEXT_LINES_MAX);
  if (lines.length > shown.length) shown.push(`… and ${lines.length - shown.length} more lines`);
  const [first = "", ...rest] = shown;
  await output.line(`  ${mark(severity, output)} ${output.style("bold", first)}`);
  for (const line of rest) await output.line(`    ${line}`);
  const details = [
    severity,
    ago(ageOf(notification.created_at)),
    `from ${oneLine(source)}`,
    channel === "inbox" ? "" : channel,
    thread_id === null ? "" : `thread ${oneLine(thread_id)}`,
    revision === 1 ? "" : `revision ${revision}`,
    reason ?? "",
  ].filter((detail) => detail !== "");
  await output.line(`    ${stateWord(state, output)} ${output.style("gray", `· ${details.join(" · ")}`)}`);
  const again = redrivenAs === undefined ? "" : `  redriven as ${redrivenAs}`;
  await output.line(`    ${output.style("gray", `${notification.id}${again}`)}`);
}

const AGE_COLUMNS = 4;
const STATE_COLUMNS = 10;
const CHANNEL_COLUMNS = 7;
const ID_COLUMNS = 36;
const USER_COLUMNS_MAX = 16;
/** With less room than this, ids get lines of their own. */
const CONTENT_COLUMNS_GOOD = 24;
const CONTENT_COLUMNS_MIN = 4;
const MARK_COLUMNS = 2;
const GAP = "  ";

/** The ledger as a table that fits the terminal; the content takes what is left. */
export class Table {
  readonly #output: Output;
  readonly #userColumns: number;
  readonly #contentColumns: number;
  readonly #idBelow: boolean;

  /** The users of the first rows decide how wide their column is; without users there is none. */
  constructor(output: Output, users: readonly string[]) {
    this.#output = output;
    this.#userColumns =
      users.length === 0 ? 0 : Math.min(USER_COLUMNS_MAX, Math.max(4, ...users.map((user) => widthOf(user))));
    const before = [AGE_COLUMNS, STATE_COLUMNS, CHANNEL_COLUMNS, this.#userColumns].filter((columns) => columns > 0);
    const taken = before.reduce((sum, columns) => sum + columns + GAP.length, 0);
    const left = output.width - taken - MARK_COLUMNS;
    const besideId = left - ID_COLUMNS - GAP.length;
    this.#idBelow = besideId < CONTENT_COLUMNS_GOOD;
    this.#contentColumns = Math.max(CONTENT_COLUMNS_MIN, this.#idBelow ? left : besideId);
  }

  header(): Promise<void> {
    const cells = [
      pad("AGE", AGE_COLUMNS),
      pad("STATE", STATE_COLUMNS),
      pad("CHANNEL", CHANNEL_COLUMNS),
      ...(this.#userColumns === 0 ? [] : [pad("USER", this.#userColumns)]),
      ...(this.#idBelow ? [] : [pad("ID", ID_COLUMNS)]),
      "  CONTENT",
    ];
    return this.#output.line(this.#output.style("gray", cells.join(GAP)));
  }

  async row(notification: NotificationView): Promise<void> {
    const { state, channel, user_id, severity } = notification;
    const output = this.#output;
    const id = output.style("gray", notification.id);
    const suffix = notification.count > 1 ? ` ×${notification.count}` : "";
    const content = cut(oneLine(notification.content), this.#contentColumns - suffix.length) + suffix;
    const cells = [
      pad(ageOf(notification.created_at), AGE_COLUMNS),
      stateWord(state, output, STATE_COLUMNS),
      pad(channel, CHANNEL_COLUMNS),
      ...(this.#userColumns === 0 ? [] : [pad(cut(oneLine(user_id), this.#userColumns), this.#userColumns)]),
      ...(this.#idBelow ? [] : [id]),
      `${mark(severity, output)} ${content}`,
    ];
    await output.line(cells.join(GAP));
    if (this.#idBelow) await output.line(`${" ".repeat(AGE_COLUMNS)}${GAP}${id}`);
  }
}

/** Why nothing changed, where the reader of errors looks. */
export function showMiss(miss: Miss, output: Output): void {
  output.remark(`tidings: ${oneLine(miss.message)}`);
}
