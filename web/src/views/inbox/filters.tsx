/** What the list of the inbox has. */
import { SegmentedControl, Select } from "@mantine/core";
import { IconChevronDown } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { type Kept, kept } from "../../live/kept.js";
import type { Channel, Filter, Severity, State } from "../../live/rows.js";
import { Choice, wordsOf } from "../../parts/choice.js";
import { CHANNELS, SEVERITIES, STATES } from "../../parts/states.js";
import { ThreadChoice } from "../../parts/thread_choice.js";
import { ListToolbar } from "../../parts/toolbar.js";
import { GROUPINGS, type Grouping } from "./groups.js";

export interface InboxFilters {
  readonly unread: boolean;
  readonly severity: readonly Severity[];
  readonly channel: readonly Channel[];
  readonly state: readonly State[];
  readonly thread_id: string | undefined;
  readonly grouping: Grouping;
}

const ANY: InboxFilters = {
  unread: false,
  severity: [],
  channel: [],
  state: [],
  thread_id: undefined,
  grouping: "day",
};

export const inboxFilters: Kept<InboxFilters> = kept(ANY);

const SYSTEM: readonly Channel[] = ["inbox", "floor"];
/** An open batch is not shown yet, and what is kept back never. */
const SHOWN: readonly State[] = ["DISPATCHED", "ESCALATED", "DELIVERED", "FAILED"];

export function filterOf(user_id: string, { unread, severity, channel, state, thread_id }: InboxFilters): Filter {
  return {
    user_id,
    channel: channel.length === 0 ? SYSTEM : channel,
    state: state.length === 0 ? SHOWN : state,
    ...(severity.length === 0 ? {} : { severity }),
    ...(thread_id === undefined ? {} : { thread_id }),
    ...(unread ? { unread } : {}),
  };
}

/** How many filters choose something. */
export function chosenIn({ severity, channel, state, thread_id }: InboxFilters): number {
  const lists = [severity, channel, state].filter(({ length }) => length > 0);
  return lists.length + (thread_id === undefined ? 0 : 1);
}

/** What was chosen is forgotten; how the list is grouped, and whether it has only what is unread, stays. */
export function widened({ unread, grouping }: InboxFilters): InboxFilters {
  return { ...ANY, unread, grouping };
}

/** How wide the toolbar is with everything in a line; what is always in sight has room everywhere. */
const WIDE = 900;
const SMALL = 0;

export function InboxToolbar({ user_id, actions }: { readonly user_id: string; readonly actions: ReactNode }) {
  const [filters, setFilters] = inboxFilters.use();
  const change = (part: Partial<InboxFilters>) => setFilters({ ...filters, ...part });
  return (
    <ListToolbar
      part={() => (
        <SegmentedControl
          size="xs"
          data={[
            { value: "all", label: "All" },
            { value: "unread", label: "Unread" },
          ]}
          value={filters.unread ? "unread" : "all"}
          onChange={(value) => change({ unread: value === "unread" })}
          aria-label="Read or unread"
        />
      )}
      filters={(isOpen) => <Filters {...{ user_id, filters, change, isOpen }} />}
      active={chosenIn(filters)}
      clear={() => setFilters(widened(filters))}
      wide={WIDE}
      small={SMALL}
      actions={actions}
    />
  );
}

interface FiltersProps {
  readonly user_id: string;
  readonly filters: InboxFilters;
  readonly change: (part: Partial<InboxFilters>) => void;
  readonly isOpen: boolean;
}

function Filters({ user_id, filters, change, isOpen }: FiltersProps) {
  return (
    <>
      <Choice
        name="State"
        options={wordsOf(STATES, SHOWN)}
        chosen={filters.state}
        choose={(state) => change({ state })}
        isOpen={isOpen}
      />
      <Choice
        name="Channel"
        options={wordsOf(CHANNELS, SYSTEM)}
        chosen={filters.channel}
        choose={(channel) => change({ channel })}
        isOpen={isOpen}
      />
      <Choice
        name="Severity"
        options={wordsOf(SEVERITIES)}
        chosen={filters.severity}
        choose={(severity) => change({ severity })}
        isOpen={isOpen}
      />
      <ThreadChoice
        user_id={user_id}
        thread_id={filters.thread_id}
        choose={(thread_id) => change({ thread_id })}
        isOpen={isOpen}
      />
      <Select
        size="xs"
        w={isOpen ? "100%" : 160}
        comboboxProps={{ withinPortal: !isOpen }}
        aria-label="Grouped by"
        data={GROUPINGS.map((value) => ({ value, label: `Group: ${value}` }))}
        rightSection={<IconChevronDown size={14} aria-hidden />}
        value={filters.grouping}
        onChange={(value) => change({ grouping: (value ?? "day") as Grouping })}
        allowDeselect={false}
      />
    </>
  );
}
