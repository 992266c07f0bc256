/** Which keys do what in a view; opened by `?`. */
import { ActionIcon, Group, Kbd, Table, Text, Tooltip } from "@mantine/core";
import { IconKeyboard } from "@tabler/icons-react";
import { Dialog } from "./dialog.js";

export interface Shortcut {
  readonly keys: readonly string[];
  readonly does: string;
}

export const LIST_SHORTCUTS: readonly Shortcut[] = [
  { keys: ["j", "↓"], does: "the next one" },
  { keys: ["k", "↑"], does: "the one before" },
  { keys: ["Enter", "o"], does: "open it" },
  { keys: ["Esc"], does: "close it" },
  { keys: ["Home", "End"], does: "the first, the last" },
];

export function Shortcuts({
  shortcuts,
  opened,
  close,
}: {
  readonly shortcuts: readonly Shortcut[];
  readonly opened: boolean;
  readonly close: () => void;
}) {
  return (
    <Dialog opened={opened} onClose={close} title="Keys">
      <Table withRowBorders={false}>
        <Table.Tbody>
          {[...shortcuts, { keys: ["?"], does: "this help" }].map(({ keys, does }) => (
            <Table.Tr key={does}>
              <Table.Td w={140}>
                <Group gap={4}>
                  {keys.map((key) => (
                    <Kbd key={key}>{key}</Kbd>
                  ))}
                </Group>
              </Table.Td>
              <Table.Td>
                <Text size="sm">{does}</Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Dialog>
  );
}

export function ShortcutsButton({ open }: { readonly open: () => void }) {
  return (
    <Tooltip label="Keys (?)">
      <ActionIcon variant="subtle" color="gray" onClick={open} aria-label="Keys" visibleFrom="sm">
        <IconKeyboard size={18} stroke={1.7} />
      </ActionIcon>
    </Tooltip>
  );
}
