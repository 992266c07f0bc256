/** One line of the inbox. */
import { IconCheck } from "@tabler/icons-react";
import { memo } from "react";
import { isUnread, type Row } from "../../live/rows.js";
import { readable } from "../../parts/readable.js";
import { SeverityIcon, SmallBadge, STATES } from "../../parts/states.js";
import { RowTime } from "../../parts/time.js";
import { Cell } from "../../parts/virtual_list.js";
import { isPlainNotice, namesOf } from "../../parts/words.js";
import { isMarked } from "./groups.js";
import classes from "./inbox.module.css";

export interface InboxRowProps {
  readonly row: Row;
  /** How many its words have where there is little room. */
  readonly lines: 1 | 2;
  /** What its conversation is called; null if it is in none. */
  readonly thread: string | null;
  readonly isOpen: boolean;
  readonly open: (id: string) => void;
  readonly dismiss: (row: Row) => void;
}

/** Drawn again only if it is another. Plain elements: a burst draws a hundred of them a second. */
export const InboxRow = memo(function InboxRow({ row, lines, thread, isOpen, open, dismiss }: InboxRowProps) {
  const unread = isUnread(row);
  const { name, kind } = namesOf(row);
  const isPlain = isPlainNotice(row);
  return (
    // The list has the keyboard, and Enter opens the active row.
    <Cell className={classes["row"]} data-open={isOpen || undefined} onClick={() => open(row.id)}>
      <span className={classes["dot"]}>{unread ? <span title="Unread" /> : null}</span>
      <SeverityIcon severity={row.severity} size={18} />
      <div className={classes["text"]}>
        <div className={classes["about"]} data-severity={isPlain ? row.severity : undefined}>
          {isPlain ? null : (
            <>
              <span className={`outside ${classes["dim"]} ${classes["source"]}`}>{name}</span>
              <span className={`outside ${classes["dim"]} ${classes["kind"]}`}>{kind}</span>
            </>
          )}
          {row.count > 1 ? <SmallBadge color="gray">{row.count} times</SmallBadge> : null}
          {isMarked(row) ? <SmallBadge color={STATES[row.state].color}>{STATES[row.state].word}</SmallBadge> : null}
          {thread === null ? null : (
            <span className={`outside ${classes["dim"]} ${classes["kind"]}`}>
              in <bdi>{thread}</bdi>
            </span>
          )}
        </div>
        <div
          className={`outside ${classes["line"]}`}
          data-lines={lines}
          data-unread={unread || undefined}
          data-dead={row.state === "FAILED" || undefined}
        >
          {row.line === "" ? "(no words)" : readable(row.line)}
        </div>
      </div>
      <div className={classes["end"]}>
        {unread ? (
          <button
            type="button"
            className={classes["dismiss"]}
            onClick={(event) => {
              event.stopPropagation();
              dismiss(row);
            }}
            aria-label="Dismiss"
            title="Dismiss (e)"
            tabIndex={-1}
          >
            <IconCheck size={16} aria-hidden />
          </button>
        ) : (
          <span className={`${classes["dim"]} ${classes["done"]}`}>
            {row.action === "dismissed" ? "dismissed" : ""}
          </span>
        )}
        <RowTime at={row.created_at} />
      </div>
    </Cell>
  );
});
