/** Some of a few words, as a filter has them: none chosen means all of them. */
import { Button, Chip, Group, Input, Menu, Text } from "@mantine/core";
import { IconChevronDown } from "@tabler/icons-react";

export interface Option<Word extends string> {
  readonly word: Word;
  /** As the page words it. */
  readonly label: string;
  /** What it means, where the word alone does not say so. */
  readonly about?: string;
}

export function Choice<Word extends string>({
  name,
  options,
  chosen,
  choose,
  isOpen = false,
}: {
  readonly name: string;
  readonly options: readonly Option<Word>[];
  readonly chosen: readonly Word[];
  readonly choose: (words: readonly Word[]) => void;
  /** With its options in sight, and not in a menu. */
  readonly isOpen?: boolean;
}) {
  const toggle = (word: Word) =>
    choose(options.map((one) => one.word).filter((one) => chosen.includes(one) !== (one === word)));
  if (isOpen)
    return (
      <Input.Wrapper label={name} labelElement="div" size="xs">
        <Group gap={6} mt={4} role="group" aria-label={name}>
          {options.map(({ word, label, about }) => (
            <Chip
              key={word}
              size="xs"
              checked={chosen.includes(word)}
              onChange={() => toggle(word)}
              {...(about === undefined ? {} : { title: about })}
            >
              {label}
            </Chip>
          ))}
        </Group>
      </Input.Wrapper>
    );
  const labels = options.filter(({ word }) => chosen.includes(word)).map(({ label }) => label);
  return (
    <Menu closeOnItemClick={false} position="bottom-start" withinPortal>
      <Menu.Target>
        <Button
          size="xs"
          px="sm"
          variant={chosen.length === 0 ? "default" : "light"}
          fw={400}
          rightSection={<IconChevronDown size={14} aria-hidden />}
          aria-label={`${name}: ${labels.length === 0 ? "any" : labels.join(", ")}`}
        >
          {labels.length === 0 ? name : labels.length === 1 ? labels[0] : `${name} (${labels.length})`}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {options.map(({ word, label, about }) => (
          <Menu.CheckboxItem
            key={word}
            checked={chosen.includes(word)}
            onChange={() => toggle(word)}
            aria-label={label}
            {...(about === undefined ? {} : { "aria-description": about })}
          >
            {label}
            {about === undefined ? null : (
              <Text size="xs" c="dimmed" maw={260}>
                {about}
              </Text>
            )}
          </Menu.CheckboxItem>
        ))}
        {chosen.length === 0 ? null : (
          <>
            <Menu.Divider />
            <Menu.Item onClick={() => choose([])}>Any</Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}

interface Named {
  readonly word: string;
  readonly about?: string;
}

export function wordsOf<Word extends string>(
  looks: Readonly<Record<Word, Named>>,
  words: readonly Word[] = Object.keys(looks) as Word[],
): Option<Word>[] {
  return words.map((word) => {
    const { word: label, about } = looks[word];
    return about === undefined ? { word, label } : { word, label, about };
  });
}
