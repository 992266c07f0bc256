// biome-ignore-all lint/a11y/useSemanticElements: the rows of a table cannot be placed by hand
/**
 * A long list of which only what is seen is on the page. Rows have fixed heights; what comes above does not move what is
 * being looked at or pointed at. One row is the active one: it is where the keyboard is.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type HTMLAttributes,
  type ReactNode,
  type RefObject,
  useEffect,
  useEffectEvent,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
} from "react";
import { useHold } from "./list_hold.js";
import { heightAt, indexOfKey, isAsHigh, type Layout } from "./list_layout.js";
import classes from "./virtual_list.module.css";

export interface VirtualListProps<Item> extends Layout<Item> {
  readonly label: string;
  readonly activeKey: string | null;
  readonly render: (item: Item) => ReactNode;
  readonly onNearEnd: () => void;
  /** Those that have been in sight for a moment. */
  readonly onSeen?: (items: readonly Item[]) => void;
  /** How many there are in all; null: nobody knows. */
  readonly total: number | null;
  readonly onPlace?: (place: Place) => void;
  readonly head?: { readonly height: number; readonly content: ReactNode };
  readonly scroller: RefObject<HTMLDivElement | null>;
}

export interface Place {
  /** Whether the newest is in sight. */
  readonly isAtTop: boolean;
  /** Whether it stays where it is, whatever comes. */
  readonly isHeld: boolean;
}

const OVERSCAN = 6;
/** The next page is asked for so many rows before the end; whoever has gone far goes on as far. */
const AHEAD = 120;
const SEEN_MS = 400;

export function VirtualList<Item>(props: VirtualListProps<Item>) {
  const { items, keyOf, height, label, activeKey, render, onNearEnd, onSeen, onPlace, total, head, scroller } = props;
  const id = useId();
  const headHeight = head?.height ?? 0;
  const layout = useMemo(() => ({ items, keyOf, height }), [items, keyOf, height]);
  const virtualizer = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => heightAt(layout, index),
    overscan: OVERSCAN,
    scrollMargin: headHeight,
    scrollPaddingStart: headHeight,
  });
  const isAtTop = (virtualizer.scrollOffset ?? 0) <= headHeight;
  useSizes(layout, () => virtualizer.measure());
  const { isHeld, handlers } = useHold(layout, scroller, virtualizer, isAtTop);
  useEffect(() => onPlace?.({ isAtTop, isHeld }), [isAtTop, isHeld, onPlace]);

  const shown = virtualizer.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (items.length - last <= Math.max(AHEAD, last)) onNearEnd();
  }, [last, items.length, onNearEnd]);

  const activeIndex = useMemo(() => (activeKey === null ? -1 : indexOfKey(layout, activeKey)), [layout, activeKey]);
  const { scrollToIndex } = virtualizer;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a move brings it into sight, not what comes above it
  useEffect(() => {
    if (activeIndex >= 0) scrollToIndex(activeIndex, { align: "auto" });
  }, [activeKey]);

  const look = useEffectEvent(() => {
    const { isScrolling, scrollOffset, scrollRect } = virtualizer;
    if (isScrolling || scrollOffset === null || scrollRect === null) return;
    const seen = shown.filter(({ start, end }) => start >= scrollOffset && end <= scrollOffset + scrollRect.height);
    onSeen?.(seen.flatMap(({ index }) => items[index] ?? []));
  });
  useEffect(() => {
    const timer = setInterval(() => look(), SEEN_MS);
    return () => clearInterval(timer);
  }, []);

  return (
    <div
      ref={scroller}
      className={classes["scroller"]}
      role="grid"
      aria-label={label}
      aria-rowcount={total ?? -1}
      aria-activedescendant={activeIndex >= 0 ? `${id}${activeKey}` : undefined}
      tabIndex={0}
      {...handlers}
    >
      {head === undefined ? null : (
        <div className={classes["head"]} style={{ height: head.height }}>
          {head.content}
        </div>
      )}
      <div role="rowgroup" className={classes["rows"]} style={{ height: virtualizer.getTotalSize() }}>
        {shown.map(({ index, start, size }) => {
          const item = items[index];
          if (item === undefined) return null;
          const key = keyOf(item);
          return (
            <div
              key={key}
              id={`${id}${key}`}
              data-key={key}
              role="row"
              tabIndex={-1}
              aria-rowindex={index + 1}
              aria-selected={key === activeKey}
              className={classes["row"]}
              style={{ height: size, transform: `translateY(${start - headHeight}px)` }}
            >
              {render(item)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** What stands in a row. */
export function Cell({ children, ...props }: HTMLAttributes<HTMLDivElement>) {
  return (
    <div role="gridcell" tabIndex={-1} {...props}>
      {children}
    </div>
  );
}

/** Heights may differ from before where others have come between. */
function useSizes<Item>(layout: Layout<Item>, measure: () => void): void {
  const before = useRef(layout);
  useLayoutEffect(() => {
    if (before.current === layout) return;
    const isSame = isAsHigh(layout, before.current);
    before.current = layout;
    if (!isSame) measure();
  });
}
