/**
 * What comes above does not move what is being looked at. At its top a list follows what comes, but not while it is
 * pointed at: nobody clicks on a row that was another one a moment ago.
 */
import { type PointerEvent, type RefObject, useEffect, useEffectEvent, useLayoutEffect, useRef, useState } from "react";
import { type Layout, movedBy } from "./list_layout.js";

export interface Hold {
  readonly isHeld: boolean;
  readonly handlers: {
    readonly onPointerOver: (event: PointerEvent) => void;
  };
}

const ROW = "data-key";

/** `scroll`: where the list stands as far as its rows were chosen by it; they are chosen anew by where it will stand. */
export function useHold<Item>(
  layout: Layout<Item>,
  scroller: RefObject<HTMLElement | null>,
  scroll: { scrollOffset: number | null },
  isAtTop: boolean,
): Hold {
  const [isHeld, setHeld] = useState(false);
  const before = useRef(layout);
  const pointed = useRef<string | null>(null);
  const due = useRef(0);
  /** To where it was moved from its top because it was pointed at: it goes back when it is not any more. */
  const held = useRef<number | null>(null);
  const old = before.current;
  before.current = layout;
  if (old.items !== layout.items && !(isAtTop && !isHeld)) {
    const offset = scroll.scrollOffset ?? 0;
    const moved = movedBy(layout, old, offset, isHeld ? pointed.current : null);
    due.current += moved;
    // The rows that are in sight stay on the page: one that is being clicked on would be another otherwise.
    scroll.scrollOffset = offset + moved;
  }
  useLayoutEffect(() => {
    const element = scroller.current;
    const moved = due.current;
    due.current = 0;
    if (moved === 0 || element === null) return;
    const top = element.scrollTop;
    const rows = rowsOf(element);
    // A list that is not longer than what is seen of it has no room to be moved in.
    if (isHeld && rows !== null && element.scrollHeight < top + moved + element.clientHeight)
      rows.style.minHeight = `${top + moved + element.clientHeight - rows.offsetTop}px`;
    element.scrollTop = top + moved;
    if (isAtTop || held.current === top) held.current = element.scrollTop;
  });
  const letGo = useEffectEvent(() => {
    const element = scroller.current;
    if (element !== null) {
      if (element.scrollTop === held.current) element.scrollTop = 0;
      rowsOf(element)?.style.removeProperty("min-height");
    }
    held.current = null;
    pointed.current = null;
    setHeld(false);
  });
  useEffect(() => {
    if (!isHeld) return;
    // What was pointed at may be taken off the page in the moment in which the pointer goes; then nobody says that it left.
    const elsewhere = ({ target }: Event) => {
      if (!(target instanceof Node) || scroller.current?.contains(target) !== true) letGo();
    };
    document.addEventListener("pointerover", elsewhere);
    document.documentElement.addEventListener("pointerleave", letGo);
    return () => {
      document.removeEventListener("pointerover", elsewhere);
      document.documentElement.removeEventListener("pointerleave", letGo);
    };
  }, [isHeld, scroller]);
  return {
    isHeld,
    handlers: {
      onPointerOver({ pointerType, target }) {
        // A finger is not there any more after it has pointed.
        if (pointerType === "touch" || !(target instanceof Element)) return;
        pointed.current = target.closest(`[${ROW}]`)?.getAttribute(ROW) ?? null;
        setHeld(true);
      },
    },
  };
}

function rowsOf(element: HTMLElement): HTMLElement | null {
  return element.querySelector<HTMLElement>("[role=rowgroup]");
}
