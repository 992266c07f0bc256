/** Shows on the page what the visit speaks of, wherever the view puts it, and brings it into sight. */
import { useEffect } from "react";

/** The last that fits is outlined, as soon as it is there and as long as it is. */
export function useOutlined(selector: string | null): void {
  useEffect(() => {
    if (selector === null) return;
    let outlined: HTMLElement | SVGElement | undefined;
    const outline = (style: string) => {
      if (outlined === undefined) return;
      outlined.style.outline = style;
      outlined.style.outlineOffset = style === "" ? "" : "-2px";
    };
    const look = () => {
      const found = [...document.querySelectorAll<HTMLElement | SVGElement>(selector)].at(-1);
      if (found === outlined) return;
      outline("");
      outlined = found;
      outline("2px solid var(--mantine-primary-color-filled)");
      found?.scrollIntoView({ block: "nearest" });
    };
    const observer = new MutationObserver(look);
    observer.observe(document.body, { childList: true, subtree: true });
    look();
    return () => {
      observer.disconnect();
      outline("");
    };
  }, [selector]);
}

/** By the step of the visit: its pill in the conversation, its row in the inbox, its way in the ledger. */
export function placeOf(step: number, id: string | undefined): string | null {
  if (id === undefined) return null;
  if (step === 3) return `article:has(a[href$="/ledger/${id}"])`;
  if (step === 4) return `[role="row"][id$="${id}"]`;
  return step === 5 ? 'svg[role="img"][aria-label^="The way that it took"]' : null;
}
