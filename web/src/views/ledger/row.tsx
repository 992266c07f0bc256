/** One line of the ledger, and the names of its columns. */
import { memo } from "react";
import type { Row } from "../../live/rows.js";
import { readable } from "../../parts/readable.js";
import { CHANNELS, ChannelBadge, SeverityIcon, STATES, StateBadge } from "../../parts/states.js";
import { RowTime } from "../../parts/time.js";
import { Cell } from "../../parts/virtual_list.js";
import { isPlainNotice, namesOf, shortId } from "../../parts/words.js";
import classes from "./ledger.module.css";

/** Columns that are there only where they say something. */
interface Columns {
  readonly withUser: boolean;
  readonly withCount: boolean;
}

export function LedgerHead({ withUser, withCount }: Columns) {
  const names = [
    ["severity", ""],
    ["what", "What"],
    ["channel", "Channel"],
    ["state", "State"],
    ["thread", "Conversation"],
    ...(withUser ? [["user", "User"]] : []),
    ...(withCount ? [["count", "Count"]] : []),
    ["came", "Came"],
  ] as const;
  return (
    // biome-ignore lint/a11y/useSemanticElements: the rows of a table cannot be placed by hand
    <div
      role="row"
      tabIndex={-1}
      className={classes["columns"]}
      data-user={withUser || undefined}
      data-count={withCount || undefined}
      data-head
    >
      {names.map(([column = "", name]) => (
        // biome-ignore lint/a11y/useSemanticElements: as above
        <div key={column} role="columnheader" tabIndex={-1} className={classes[column]}>
          {name === "" ? <span className={classes["hidden"]}>Severity</span> : name}
        </div>
      ))}
    </div>
  );
}

export interface LedgerRowProps extends Columns {
  readonly row: Row;
  /** What its conversation is called. */
  readonly thread: string;
  /** In more than one line: without columns for what the second line has. */
  readonly isTall: boolean;
  readonly isOpen: boolean;
  readonly open: (id: string) => void;
}

/** Drawn again only if it is another. Plain elements: a burst draws a hundred of them a second. */
export const LedgerRow = memo(function LedgerRow(props: LedgerRowProps) {
  const { row, thread, withUser, withCount, isTall, isOpen, open } = props;
  const { name, kind } = namesOf(row);
  const isKeptBack = row.state === "SUPPRESSED";
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the list has the keyboard, and Enter opens the active row
    <div
      className={classes["columns"]}
      data-user={withUser || undefined}
      data-count={withCount || undefined}
      data-open={isOpen || undefined}
      data-quiet={isKeptBack || undefined}
      onClick={() => open(row.id)}
      role="presentation"
    >
      <Cell className={classes["severity"]}>
        <SeverityIcon severity={row.severity} size={17} />
      </Cell>
      <Cell className={classes["what"]} title={isPlainNotice(row) ? undefined : `${name} ${kind}`.trim()}>
        <span className={`outside ${classes["line"]} ${classes["words"]}`}>
          {row.line === "" ? "(no words)" : readable(row.line)}
        </span>
        {isTall ? (
          <span className={`outside ${classes["where"]} ${classes["dim"]}`}>
            {CHANNELS[row.channel].word}
            {thread === "" ? null : (
              <>
                {" · "}
                <bdi>{thread}</bdi>
              </>
            )}
          </span>
        ) : null}
      </Cell>
      {isTall ? null : (
        <Cell className={classes["channel"]}>
          <ChannelBadge channel={row.channel} />
        </Cell>
      )}
      <Cell className={classes["state"]}>
        {isKeptBack ? (
          <span className={classes["dim"]}>{STATES[row.state].word}</span>
        ) : (
          <StateBadge state={row.state} />
        )}
      </Cell>
      {isTall ? null : (
        <Cell className={classes["thread"]}>
          <span className={`outside ${classes["line"]} ${classes["dim"]}`} title={thread}>
            {thread}
          </span>
        </Cell>
      )}
      {withUser ? (
        <Cell className={classes["user"]}>
          <span className={`outside ${classes["line"]} ${classes["dim"]}`}>{shortId(row.user_id)}</span>
        </Cell>
      ) : null}
      {withCount ? (
        <Cell className={classes["count"]}>
          <span className={classes["dim"]}>{row.count > 1 ? row.count.toLocaleString("en") : ""}</span>
        </Cell>
      ) : null}
      <Cell className={classes["came"]}>
        <RowTime at={row.created_at} />
      </Cell>
    </div>
  );
});
