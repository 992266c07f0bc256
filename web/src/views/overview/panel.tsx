/** A picture, and the same in a table for whoever cannot or does not want to look at it. */
import { ActionIcon, Box, Group, Paper, ScrollArea, Table, Text, Title, Tooltip } from "@mantine/core";
import { IconChartBar, IconTable } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

export interface Figures {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly [string, ...(string | number)[]])[];
  /** The last row. */
  readonly total?: readonly [string, ...(string | number)[]];
}

const HEIGHT_MAX = 220;

interface Props {
  readonly title: string;
  /** What the picture shows, in a sentence. */
  readonly summary: string;
  /** What stands beside the title. */
  readonly aside?: ReactNode;
  readonly figures: Figures;
  /** How high the picture is; without it, as high as what is in it. */
  readonly height?: number;
  readonly children: ReactNode;
}

export function Panel({ title, summary, aside, figures, height, children }: Props) {
  const [table, setTable] = useState(false);
  const other = table ? "as a picture" : "as a table";
  return (
    <Paper component="section" withBorder p="md" aria-label={title} miw={0}>
      <Group justify="space-between" wrap="nowrap" mb="sm" align="flex-start">
        <Box miw={0}>
          <Title order={2} size="sm">
            {title}
          </Title>
          {aside === undefined ? null : (
            <Text size="xs" c="dimmed">
              {aside}
            </Text>
          )}
        </Box>
        <Tooltip label={`Show ${other}`}>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`${title}: ${other}`}
            onClick={() => setTable((before) => !before)}
          >
            {table ? <IconChartBar size={18} stroke={1.7} /> : <IconTable size={18} stroke={1.7} />}
          </ActionIcon>
        </Tooltip>
      </Group>
      {table ? (
        <FigureTable title={title} figures={figures} {...(height === undefined ? {} : { height })} />
      ) : (
        <Box role="img" aria-label={summary} {...(height === undefined ? {} : { mih: height })}>
          {children}
        </Box>
      )}
    </Paper>
  );
}

function FigureTable({
  title,
  figures: { columns, rows, total },
  height,
}: {
  readonly title: string;
  readonly figures: Figures;
  readonly height?: number;
}) {
  return (
    <ScrollArea.Autosize
      mah={height ?? HEIGHT_MAX}
      mih={height ?? 0}
      type="auto"
      viewportProps={{ tabIndex: 0, "aria-label": `${title}, in numbers`, role: "region" }}
    >
      <Table stickyHeader fz="sm" verticalSpacing={4} aria-label={title}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column, index) => (
              <Table.Th key={column} scope="col" ta={index === 0 ? "left" : "right"}>
                {column}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(([name, ...values]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" fw={400}>
                {name}
              </Table.Th>
              <Cells columns={columns} values={values} />
            </Table.Tr>
          ))}
        </Table.Tbody>
        {total === undefined ? null : (
          <Table.Tfoot>
            <Table.Tr fw={600}>
              <Table.Th scope="row">{total[0]}</Table.Th>
              <Cells columns={columns} values={total.slice(1)} />
            </Table.Tr>
          </Table.Tfoot>
        )}
      </Table>
    </ScrollArea.Autosize>
  );
}

function Cells({
  columns,
  values,
}: {
  readonly columns: readonly string[];
  readonly values: readonly (string | number)[];
}) {
  return values.map((value, index) => (
    <Table.Td key={columns[index + 1]} ta="right">
      {value}
    </Table.Td>
  ));
}
