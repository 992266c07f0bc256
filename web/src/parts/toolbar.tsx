/** What stands above a list: which part of it, its filters, and what can be done. Where there is little room, the filters are behind a button. */
import { Badge, Button, Popover, Stack } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { IconFilter } from "@tabler/icons-react";
import type { ReactNode } from "react";
import classes from "./toolbar.module.css";

export interface ListToolbarProps {
  /** Always in sight; in a small form where there is very little room. */
  readonly part: (isSmall: boolean) => ReactNode;
  /** Beside each other, or beneath each other with their options open. */
  readonly filters: (isOpen: boolean) => ReactNode;
  /** How many of the filters choose something. */
  readonly active: number;
  readonly clear: () => void;
  /** How wide it is with everything in a line. */
  readonly wide: number;
  /** How wide its part is in its usual form, with the button. */
  readonly small: number;
  readonly actions: ReactNode;
}

export function ListToolbar({ part, filters, active, clear, wide, small, actions }: ListToolbarProps) {
  const { ref, width } = useElementSize();
  return (
    <div className={classes["toolbar"]} ref={ref}>
      <div className={classes["filters"]}>
        {width === 0 ? null : (
          <>
            {part(width < small)}
            {width < wide ? (
              <Folded active={active} clear={clear}>
                {filters(true)}
              </Folded>
            ) : (
              filters(false)
            )}
          </>
        )}
      </div>
      <div className={classes["actions"]}>{actions}</div>
    </div>
  );
}

function Folded({
  active,
  clear,
  children,
}: {
  readonly active: number;
  readonly clear: () => void;
  readonly children: ReactNode;
}) {
  return (
    <Popover position="bottom-start" width={300} trapFocus returnFocus withinPortal shadow="md">
      <Popover.Target>
        <Button
          size="xs"
          px={8}
          fw={400}
          variant={active === 0 ? "default" : "light"}
          leftSection={<IconFilter size={14} aria-hidden />}
          rightSection={
            active === 0 ? null : (
              <Badge size="sm" circle aria-hidden>
                {active}
              </Badge>
            )
          }
          aria-label={active === 0 ? "Filter" : `Filter, ${active} chosen`}
        >
          Filter
        </Button>
      </Popover.Target>
      <Popover.Dropdown className={classes["folded"] ?? ""} aria-label="Filter">
        <Stack gap="sm">
          {children}
          <Button size="xs" variant="subtle" onClick={clear} disabled={active === 0}>
            Clear filters
          </Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
