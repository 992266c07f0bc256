/** What was really on the screen is acknowledged as rendered, by the user whose it is. */
import { type RefObject, useEffect } from "react";
import type { NotificationView } from "tidings/client";
import { useAcknowledgements } from "../../live/inbox_acknowledgements.js";
import { useOwner } from "./owner.js";

export function useRendered(
  ref: RefObject<HTMLElement | null>,
  { id, revision, state }: Pick<NotificationView, "id" | "revision" | "state">,
): void {
  const acknowledgements = useAcknowledgements();
  const isOwn = useOwner() === null;
  const isDue = isOwn && (state === "DISPATCHED" || state === "ESCALATED");
  useEffect(() => {
    const element = ref.current;
    if (!isDue || element === null) return;
    let isInView = false;
    const look = () => {
      if (isInView && document.visibilityState === "visible") acknowledgements.rendered({ id, revision });
    };
    const observer = new IntersectionObserver((entries) => {
      isInView = entries.at(-1)?.isIntersecting === true;
      look();
    });
    observer.observe(element);
    document.addEventListener("visibilitychange", look);
    return () => {
      observer.disconnect();
      document.removeEventListener("visibilitychange", look);
    };
  }, [acknowledgements, ref, isDue, id, revision]);
}
