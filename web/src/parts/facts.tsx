/** What is known of something, by name; what is null is left out. */
import { Table } from "@mantine/core";
import type { ReactNode } from "react";
import { Fold } from "./fold.js";

type Fact = readonly [string, ReactNode];

export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
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

/** What is for whoever looks into how it works, and ids. */
export function Details({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <Fold name="Details" folded>
      <Facts facts={facts} />
    </Fold>
  );
}
