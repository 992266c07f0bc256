/** What has come above what is being looked at, and the way there. */
import { Button } from "@mantine/core";
import { IconArrowUp } from "@tabler/icons-react";
import { type RefObject, useRef, useState } from "react";
import type { Place } from "./virtual_list.js";
import classes from "./virtual_list.module.css";
import { counted } from "./words.js";

/** How many have come since the newest was last in sight. */
export function useFresh(rows: readonly { readonly id: string }[]): {
  readonly fresh: number;
  readonly onPlace: (place: Place) => void;
} {
  const [{ isAtTop, isHeld }, onPlace] = useState<Place>({ isAtTop: true, isHeld: false });
  const newest = useRef<string | undefined>(undefined);
  const wasAtTop = useRef(true);
  // One that is held at its top does not show what comes; whoever goes there by himself has seen it.
  if ((isAtTop && !(isHeld && wasAtTop.current)) || newest.current === undefined) newest.current = rows[0]?.id;
  wasAtTop.current = isAtTop;
  const index = rows.findIndex(({ id }) => id === newest.current);
  return { fresh: Math.max(0, index), onPlace };
}

export function Fresh({
  count,
  scroller,
}: {
  readonly count: number;
  readonly scroller: RefObject<HTMLElement | null>;
}) {
  if (count === 0) return null;
  return (
    <Button
      className={classes["fresh"] ?? ""}
      size="compact-sm"
      radius="xl"
      leftSection={<IconArrowUp size={14} aria-hidden />}
      onClick={() => scroller.current?.scrollTo({ top: 0 })}
    >
      {counted(count, "new one")}
    </Button>
  );
}
