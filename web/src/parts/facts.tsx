/** What is known of something, by name; what is null is left out. */
import { Table } from "@mantine/core";
import type { ReactNode } from "react";

export function Facts({ facts }: { readonly facts: readonly (readonly [string, ReactNode])[] }) {
  return (
    <Table withRowBorders={false} verticalSpacing={3} fz="sm" layout="fixed">
      <Table.Tbody>
        {facts.map(([name, value]) =>
          value === null ? null : (
            <Table.Tr key={name}>
              <Table.Th fw={400} c="dimmed" w={150} px={0} style={{ verticalAlign: "top" }}>
                {name}
              </Table.Th>
              <Table.Td px={0}>
                <span className="outside">{value}</span>
              </Table.Td>
            </Table.Tr>
          ),
        )}
      </Table.Tbody>
    </Table>
  );
}
