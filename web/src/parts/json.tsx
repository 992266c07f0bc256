/** A value as it came, whole; as text. */
import { Code, CopyButton, Group, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import classes from "./json.module.css";

export function Json({
  name,
  value,
  folded = false,
}: {
  readonly name: string;
  readonly value: unknown;
  readonly folded?: boolean;
}) {
  return <Verbatim name={name} text={JSON.stringify(value, null, 2)} folded={folded} />;
}

/** A text that may be long and comes from elsewhere; it can be folded and copied. */
export function Verbatim({
  name,
  text,
  folded = false,
}: {
  readonly name: string;
  readonly text: string;
  readonly folded?: boolean;
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
        {isOpen ? (
          <CopyButton value={text}>
            {({ copied, copy }) => (
              <UnstyledButton onClick={copy} fz="xs" c="dimmed" aria-label={`Copy ${name}`}>
                {copied ? "Copied" : "Copy"}
              </UnstyledButton>
            )}
          </CopyButton>
        ) : null}
      </Group>
      {isOpen ? (
        <Code block className={`outside ${classes["text"]}`} tabIndex={0} role="region" aria-label={name}>
          {text}
        </Code>
      ) : null}
    </div>
  );
}
