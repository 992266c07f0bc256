/** What the ledger's table has. */
import { SegmentedControl, Select } from "@mantine/core";
import { IconChevronDown } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { type Kept, kept } from "../../live/kept.js";
import type { Channel, Filter, Severity, State } from "../../live/rows.js";
import { Choice, wordsOf } from "../../parts/choice.js";
import { CHANNELS, SEVERITIES, STATES } from "../../parts/states.js";
import { ThreadChoice, UserChoice } from "../../parts/thread_choice.js";
import { ListToolbar } from "../../parts/toolbar.js";

export type Part = "told" | "agent" | "dead" | "kept" | "all";

const PARTS: readonly { readonly value: Part; readonly label: string }[] = [
  { value: "told", label: "Notifications" },
  { value: "agent", label: "For the agent" },
  { value: "dead", label: "Dead letters" },
  { value: "kept", label: "Kept back" },
  { value: "all", label: "Everything" },
];

export interface LedgerFilters {
  readonly part: Part;
  readonly severity: readonly Severity[];
  readonly channel: readonly Channel[];
  readonly state: readonly State[];
  readonly thread_id: string | undefined;
  readonly user_id: string | undefined;
}

const ANY: LedgerFilters = {
  part: "told",
  severity: [],
  channel: [],
  state: [],
  thread_id: undefined,
  user_id: undefined,
};

export const ledgerFilters: Kept<LedgerFilters> = kept(ANY);

/** The ledger opens with them. */
export function showDeadLetters(): void {
  ledgerFilters.set({ ...ANY, part: "dead" });
}

/** What an agent is told, and nobody was pushed. */
const AGENTS: readonly Channel[] = ["agent", "context"];

/** What was told or is to be: without what a rule kept back, which is most of all that happens. */
const NOT_KEPT_BACK = wordsOf(STATES)
  .map(({ word }) => word)
  .filter((state) => state !== "SUPPRESSED");

/** The states of a part, unless some of them are chosen. */
const STATES_OF: Readonly<Record<Part, readonly State[] | undefined>> = {
  told: NOT_KEPT_BACK,
  agent: NOT_KEPT_BACK,
  dead: ["FAILED"],
  kept: ["SUPPRESSED"],
  all: undefined,
};

export function filterOf({ part, severity, channel, state, thread_id, user_id }: LedgerFilters): Filter {
  const channels = channel.length > 0 ? channel : part === "agent" ? AGENTS : undefined;
  const states = state.length > 0 ? state : STATES_OF[part];
  return {
    ...(channels === undefined ? {} : { channel: channels }),
    ...(states === undefined ? {} : { state: states }),
    ...(severity.length === 0 ? {} : { severity }),
    ...(thread_id === undefined ? {} : { thread_id }),
    ...(user_id === undefined ? {} : { user_id }),
  };
}

/** How many filters choose something. */
export function chosenIn({ severity, channel, state, thread_id, user_id }: LedgerFilters): number {
  const lists = [severity, channel, state].filter(({ length }) => length > 0);
  return lists.length + (thread_id === undefined ? 0 : 1) + (user_id === undefined ? 0 : 1);
}

/** Whether what a rule kept back is left out, and nobody has chosen that. */
export function isWithoutKept({ part, state }: LedgerFilters): boolean {
  return (part === "told" || part === "agent") && state.length === 0;
}

/** What was chosen is forgotten; the part stays. */
export function widened({ part }: LedgerFilters): LedgerFilters {
  return { ...ANY, part };
}

/** How wide the toolbar is with everything in a line; with the choice of users; and the parts beside the button. */
const WIDE = 940;
const WIDER = 1_050;
const SMALL = 552;

/** `users`: those that are known, for who may see others' too; null for who may not. */
export function LedgerToolbar({
  users,
  actions,
}: {
  readonly users: readonly string[] | null;
  readonly actions: ReactNode;
}) {
  const [filters, setFilters] = ledgerFilters.use();
  const change = (part: Partial<LedgerFilters>) => setFilters({ ...filters, ...part });
  return (
    <ListToolbar
      part={(isSmall) => (
        <PartChoice isSmall={isSmall} part={filters.part} choose={(part) => change({ part, channel: [], state: [] })} />
      )}
      filters={(isOpen) => <Filters {...{ users, filters, change, isOpen }} />}
      active={chosenIn(filters)}
      clear={() => setFilters(widened(filters))}
      wide={users === null ? WIDE : WIDER}
      small={SMALL}
      actions={actions}
    />
  );
}

function PartChoice({
  isSmall,
  part,
  choose,
}: {
  readonly isSmall: boolean;
  readonly part: Part;
  readonly choose: (part: Part) => void;
}) {
  const common = { size: "xs", data: [...PARTS], value: part, "aria-label": "Part of the ledger" };
  if (!isSmall) return <SegmentedControl {...common} onChange={(value) => choose(value as Part)} />;
  return (
    <Select
      {...common}
      w={140}
      rightSection={<IconChevronDown size={14} aria-hidden />}
      allowDeselect={false}
      onChange={(value) => choose((value ?? part) as Part)}
    />
  );
}

interface FiltersProps {
  readonly users: readonly string[] | null;
  readonly filters: LedgerFilters;
  readonly change: (part: Partial<LedgerFilters>) => void;
  readonly isOpen: boolean;
}

function Filters({ users, filters, change, isOpen }: FiltersProps) {
  const states = wordsOf(STATES).filter(({ word }) => STATES_OF[filters.part]?.includes(word) !== false);
  const channels = wordsOf(CHANNELS).filter(({ word }) => filters.part !== "agent" || AGENTS.includes(word));
  return (
    <>
      {states.length === 1 ? null : (
        <Choice
          name="State"
          options={states}
          chosen={filters.state}
          choose={(state) => change({ state })}
          isOpen={isOpen}
        />
      )}
      <Choice
        name="Channel"
        options={channels}
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
        user_id={filters.user_id}
        thread_id={filters.thread_id}
        choose={(thread_id) => change({ thread_id })}
        isOpen={isOpen}
      />
      {users === null ? null : (
        <UserChoice known={users} user_id={filters.user_id} choose={(user_id) => change({ user_id })} isOpen={isOpen} />
      )}
    </>
  );
}
