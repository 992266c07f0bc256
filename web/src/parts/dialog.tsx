/** A question or a help over the page. It has the keyboard from the moment it stands, and gives it back when it goes. */
import { Modal, type ModalProps } from "@mantine/core";
import { type ReactNode, type RefObject, useLayoutEffect, useRef } from "react";

export type DialogProps = Pick<ModalProps, "opened" | "onClose" | "title" | "centered" | "children">;

export function Dialog({ opened, children, ...props }: DialogProps) {
  const before = useRef<Element | null>(null);
  useLayoutEffect(() => {
    if (opened || before.current === null) return;
    if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true });
    before.current = null;
  }, [opened]);
  return (
    <Modal
      opened={opened}
      size="sm"
      // The page does not scroll, its parts do; and the lock would write styles that the policy refuses.
      lockScroll={false}
      returnFocus={false}
      closeButtonProps={{ "aria-label": "Close" }}
      // It is no banner of the page.
      attributes={{ header: { role: "presentation" } }}
      {...props}
    >
      <Focused before={before}>{children}</Focused>
    </Modal>
  );
}

/** The modal's own focus comes by a timer: who types at once would type into the page behind it. */
function Focused({ before, children }: { readonly before: RefObject<Element | null>; readonly children: ReactNode }) {
  const inside = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    before.current ??= document.activeElement;
    const dialog = inside.current?.closest("[role=dialog]");
    const wanted = dialog?.querySelector<HTMLElement>("[data-autofocus]") ?? dialog?.querySelector("button");
    wanted?.focus({ preventScroll: true });
  }, [before]);
  return <div ref={inside}>{children}</div>;
}
