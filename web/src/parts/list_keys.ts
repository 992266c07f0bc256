/**
 * Moving through a list by keyboard: arrows, j and k, and the rest of what lists have. The keys are the view's: whoever is
 * elsewhere on the page presses them in vain, but for the one that asks for help.
 */
import { type RefObject, useEffect, useEffectEvent } from "react";

const PAGE = 10;
const HELP = "?";
const CONTROLS = "a, button, summary";
const SCROLLS: ReadonlySet<string> = new Set(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End"]);

export interface ListKeys {
  /** Rows in their order, when somebody moves. */
  readonly keys: () => readonly string[];
  readonly active: string | null;
  readonly setActive: (key: string) => void;
  /** What has the rows: whoever moves in it is in it. */
  readonly list: RefObject<HTMLElement | null>;
  readonly open: (key: string) => void;
  readonly close: () => void;
  /** Further keys of the view, or other ways of its own, as `KeyboardEvent.key` names them. */
  readonly more?: Readonly<Record<string, () => void>>;
}

export function useListKeys({ keys: keysNow, active, setActive, list, open, close, more = {} }: ListKeys): void {
  const move = (by: number) => {
    const keys = keysNow();
    const at = active === null ? -1 : keys.indexOf(active);
    // From outside, it comes in at that end from which it moves.
    const wanted = at >= 0 ? at + by : by > 0 ? by - 1 : keys.length + by;
    const key = keys[Math.min(keys.length - 1, Math.max(0, wanted))];
    if (key === undefined) return;
    setActive(key);
    list.current?.focus({ preventScroll: true });
  };
  const openActive = () => {
    if (active !== null) open(active);
  };
  const moves: Readonly<Record<string, number>> = {
    ...{ j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE },
    ...{ Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY },
  };
  const actions: Readonly<Record<string, () => void>> = {
    ...{ o: openActive, Enter: openActive, Escape: close },
    ...more,
  };
  const press = useEffectEvent((event: KeyboardEvent) => {
    const by = Object.hasOwn(moves, event.key) ? moves[event.key] : undefined;
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined;
    if ((by === undefined && action === undefined) || event.defaultPrevented) return;
    if (event.ctrlKey || event.metaKey || event.altKey || isMeantForOther(event)) return;
    if (event.key !== HELP && !isHere(event.target, list.current, by !== undefined || event.key === "Escape")) return;
    event.preventDefault();
    if (action !== undefined) action();
    else if (by !== undefined) move(by);
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => press(event);
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, []);
}

/** In the view, or nowhere. From a control that is not in the list one can move away, and do no more. */
function isHere(target: EventTarget | null, list: HTMLElement | null, isMove: boolean): boolean {
  if (!(target instanceof Element) || target === document.body) return true;
  if (target.closest("[data-view]") === null) return false;
  return isMove || list?.contains(target) === true || target.closest(CONTROLS) === null;
}

/** A field that is written in, something that is open over the page, a button that is pressed, a text that is scrolled. */
function isMeantForOther({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof Element)) return false;
  if (target.closest("input, textarea, select, [contenteditable], [role=dialog], [role=menu], [role=listbox]") !== null)
    return true;
  if (key === "Enter") return target.closest(CONTROLS) !== null;
  return SCROLLS.has(key) && target.closest("[role=region], [role=radiogroup], [role=tablist]") !== null;
}
