/** One conversation as a filter: one of those that were active last, or any by its id. */
import { Autocomplete, CloseButton, Select, Text } from "@mantine/core";
import { IconChevronDown, IconMessages, IconUser } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useKnownThreads } from "./known_threads.js";
import { shortId } from "./words.js";

export function ThreadChoice({
  user_id,
  thread_id,
  choose,
  isOpen = false,
}: {
  readonly user_id: string | undefined;
  readonly thread_id: string | undefined;
  readonly choose: (thread_id: string | undefined) => void;
  /** Among others that are open, beneath each other. */
  readonly isOpen?: boolean;
}) {
  const [search, setSearch] = useState("");
  const known = useKnownThreads(user_id).map((thread) => ({
    value: thread.thread_id as string,
    label: thread.title ?? shortId(thread.thread_id),
  }));
  const isKnown = (text: string) => known.some(({ value, label }) => value === text || label === text);
  // An id that is written counts as well, whoever was active last.
  const others = [thread_id ?? "", search.trim()].filter((text) => text !== "" && !isKnown(text));
  const options = [...known, ...[...new Set(others)].map((value) => ({ value, label: shortId(value) }))];
  return (
    <Select
      size="xs"
      w={isOpen ? "100%" : 150}
      placeholder="Conversation"
      aria-label="Conversation"
      leftSection={<IconMessages size={14} aria-hidden />}
      data={options}
      searchable
      selectFirstOptionOnChange
      filter={({ options: all, search: text }) =>
        all.filter((one) => "value" in one && `${one.label} ${one.value}`.toLowerCase().includes(text.toLowerCase()))
      }
      limit={50}
      searchValue={search}
      onSearchChange={setSearch}
      value={thread_id ?? null}
      onChange={(value) => choose(value ?? undefined)}
      rightSectionPointerEvents={thread_id === undefined ? "none" : "all"}
      rightSection={
        thread_id === undefined ? (
          <Chevron />
        ) : (
          <CloseButton size="xs" aria-label="Any conversation" onClick={() => choose(undefined)} />
        )
      }
      comboboxProps={{ width: 260, position: "bottom-start", withinPortal: !isOpen }}
    />
  );
}

/** As the other filters have it. */
function Chevron() {
  return <IconChevronDown size={14} aria-hidden />;
}

/** A conversation by its name, on a button that leads to it. */
export function Named({ name }: { readonly name: string }) {
  return (
    <Text span inherit truncate lh={1.5}>
      Conversation: <bdi>{name}</bdi>
    </Text>
  );
}

/** One user as a filter. */
export function UserChoice({
  known,
  user_id,
  choose,
  isOpen = false,
}: {
  readonly known: readonly string[];
  readonly user_id: string | undefined;
  readonly choose: (user_id: string | undefined) => void;
  readonly isOpen?: boolean;
}) {
  const icon = <IconUser size={14} aria-hidden />;
  return <WordField name="User" {...{ icon, known, isOpen }} word={user_id} set={choose} />;
}

/** A word that is written, or chosen from those that are known; it counts when it is whole. */
function WordField({
  name,
  icon,
  known,
  word,
  set,
  isOpen,
}: {
  readonly name: string;
  readonly icon: React.ReactNode;
  readonly known: readonly string[];
  readonly word: string | undefined;
  readonly set: (word: string | undefined) => void;
  readonly isOpen: boolean;
}) {
  const [text, setText] = useState(word ?? "");
  useEffect(() => setText(word ?? ""), [word]);
  const apply = (value: string) => set(value.trim() === "" ? undefined : value.trim());
  return (
    <Autocomplete
      size="xs"
      w={isOpen ? "100%" : 110}
      comboboxProps={{ withinPortal: !isOpen }}
      placeholder={name}
      aria-label={name}
      leftSection={icon}
      data={[...known]}
      limit={50}
      value={text}
      onChange={setText}
      onOptionSubmit={apply}
      onBlur={() => apply(text)}
      onKeyDown={(event) => {
        if (event.key === "Enter") apply(text);
      }}
      rightSectionPointerEvents={word === undefined ? "none" : "all"}
      rightSection={
        word === undefined ? (
          <Chevron />
        ) : (
          <CloseButton size="xs" aria-label={`Any ${name.toLowerCase()}`} onClick={() => set(undefined)} />
        )
      }
    />
  );
}
