/** Something with a name, which can be folded away. */
import { Group, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import type { ReactNode } from "react";

export function Fold({
  name,
  folded,
  actions,
  children,
}: {
  readonly name: string;
  /** Whether it is so at first. */
  readonly folded: boolean;
  /** What can be done with what is shown. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const [isOpen, { toggle }] = useDisclosure(!folded);
  const Sign = isOpen ? IconChevronDown : IconChevronRight;
  return (
    <div>
      <Group gap="xs" justify="space-between" wrap="nowrap" mb={isOpen ? 4 : 0}>
        <UnstyledButton onClick={toggle} aria-expanded={isOpen}>
          <Group gap={4} wrap="nowrap">
            <Sign size={15} aria-hidden />
            <Text span size="sm" fw={500} className="outside">
              {name}
            </Text>
          </Group>
        </UnstyledButton>
        {isOpen ? actions : null}
      </Group>
      {isOpen ? children : null}
    </div>
  );
}
