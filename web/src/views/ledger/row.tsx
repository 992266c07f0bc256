/** One line of the ledger, and the names of its columns. */
import { memo } from "react";
import type { Row } from "../../live/rows.js";
import { readable } from "../../parts/readable.js";
import { ChannelBadge, SeverityIcon, STATES, StateBadge } from "../../parts/states.js";
import { RowTime } from "../../parts/time.js";
import { Cell } from "../../parts/virtual_list.js";
import { isPlainNotice, namesOf, shortId } from "../../parts/words.js";
import classes from "./ledger.module.css";

export function LedgerHead({ withUser }: { readonly withUser: boolean }) {
  const names = ["", "What", "Channel", "State", "Thread", ...(withUser ? ["User"] : []), "Times", "Came"];
  return (
    // biome-ignore lint/a11y/useSemanticElements: the rows of a table cannot be placed by hand
    <div role="row" tabIndex={-1} className={classes["columns"]} data-user={withUser || undefined} data-head>
      {names.map((name) => (
        // biome-ignore lint/a11y/useSemanticElements: as above
        <div key={name} role="columnheader" tabIndex={-1} className={classes[name.toLowerCase()]}>
          {name === "" ? <span className={classes["hidden"]}>Severity</span> : name}
        </div>
      ))}
    </div>
  );
}

export interface LedgerRowProps {
  readonly row: Row;
  /** What its conversation is called. */
  readonly thread: string;
  readonly withUser: boolean;
  readonly isOpen: boolean;
  readonly open: (id: string) => void;
}

/** Drawn again only if it is another. Plain elements: a burst draws a hundred of them a second. */
export const LedgerRow = memo(function LedgerRow({ row, thread, withUser, isOpen, open }: LedgerRowProps) {
  const { name, kind } = namesOf(row);
  const isKeptBack = row.state === "SUPPRESSED";
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the list has the keyboard, and Enter opens the active row
    <div
      className={classes["columns"]}
      data-user={withUser || undefined}
      data-open={isOpen || undefined}
      data-quiet={isKeptBack || undefined}
      onClick={() => open(row.id)}
      role="presentation"
    >
      <Cell className={classes["severity"]}>
        <SeverityIcon severity={row.severity} size={17} />
      </Cell>
      <Cell className={classes["what"]}>
        <span className={`outside ${classes["line"]} ${classes["words"]}`}>
          {row.line === "" ? "(no words)" : readable(row.line)}
        </span>
        {isPlainNotice(row) ? null : (
          <span className={`outside ${classes["names"]} ${classes["dim"]}`}>
            {name} {kind}
          </span>
        )}
      </Cell>
      <Cell className={classes["channel"]}>
        <ChannelBadge channel={row.channel} />
      </Cell>
      <Cell className={classes["state"]}>
        {isKeptBack ? (
          <span className={classes["dim"]}>{STATES[row.state].word}</span>
        ) : (
          <StateBadge state={row.state} />
        )}
      </Cell>
      <Cell className={classes["thread"]}>
        <span className={`outside ${classes["line"]} ${classes["dim"]}`} title={thread}>
          {thread}
        </span>
      </Cell>
      {withUser ? (
        <Cell className={classes["user"]}>
          <span className={`outside ${classes["line"]} ${classes["dim"]}`}>{shortId(row.user_id)}</span>
        </Cell>
      ) : null}
      <Cell className={classes["times"]}>
        <span className={classes["dim"]}>{row.count > 1 ? row.count.toLocaleString("en") : ""}</span>
      </Cell>
      <Cell className={classes["came"]}>
        <RowTime at={row.created_at} />
      </Cell>
    </div>
  );
});
