/** A list, and beside it what is open of it; on a narrow screen, over it. */
import { ActionIcon, Box, Group, Title } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { IconArrowLeft, IconX } from "@tabler/icons-react";
import { type ReactNode, useEffect, useRef } from "react";
import classes from "./panes.module.css";

export function useIsNarrow(): boolean {
  return useMediaQuery("(max-width: 62em)", undefined, { getInitialValueInEffect: false }) ?? false;
}

export function Panes({ list, open }: { readonly list: ReactNode; readonly open: ReactNode | null }) {
  const isCovered = useIsNarrow() && open !== null;
  return (
    <Box className={classes["panes"]}>
      <Box className={classes["list"]} inert={isCovered}>
        {list}
      </Box>
      {open === null ? null : <Box className={classes["open"]}>{open}</Box>}
    </Box>
  );
}

/** What is open, with its name and the way back; whoever opens it by keyboard is there. */
export function OpenPane({
  title,
  label,
  close,
  actions,
  children,
}: {
  readonly title: ReactNode;
  /** What the way back is called. */
  readonly label: string;
  readonly close: () => void;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const isNarrow = useIsNarrow();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <Box component="section" className={classes["section"]} aria-label={label}>
      <Group className={classes["head"]} gap="xs" wrap="nowrap">
        {isNarrow ? (
          <ActionIcon variant="subtle" color="gray" onClick={close} aria-label="Back to the list">
            <IconArrowLeft size={18} />
          </ActionIcon>
        ) : null}
        <Title order={2} size="h6" tabIndex={-1} ref={heading} className={classes["title"] ?? ""}>
          {title}
        </Title>
        {actions}
        {isNarrow ? null : (
          <ActionIcon variant="subtle" color="gray" onClick={close} aria-label="Close">
            <IconX size={18} />
          </ActionIcon>
        )}
      </Group>
      <Box className={classes["body"]} tabIndex={0} role="region" aria-label={`${label}, content`}>
        {children}
      </Box>
    </Box>
  );
}
