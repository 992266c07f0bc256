/** Nothing to show, or something went wrong: in both cases what to do. */
import { Alert, Button, Center, Stack, Text, ThemeIcon } from "@mantine/core";
import { IconAlertCircle, type TablerIcon } from "@tabler/icons-react";
import type { ReactNode } from "react";

export function Empty({
  icon: Icon,
  title,
  children,
}: {
  readonly icon: TablerIcon;
  readonly title: string;
  readonly children?: ReactNode;
}) {
  return (
    <Center p="xl" mih={240}>
      <Stack align="center" gap="xs" maw={420}>
        <ThemeIcon size={56} radius="xl" variant="light" color="gray">
          <Icon size={28} stroke={1.5} aria-hidden />
        </ThemeIcon>
        <Text fw={600}>{title}</Text>
        <Text size="sm" c="dimmed" ta="center" component="div">
          {children}
        </Text>
      </Stack>
    </Center>
  );
}

/** What was chosen leaves nothing; the way out is beside it. */
export function NothingChosen({ icon, forget }: { readonly icon: TablerIcon; readonly forget: () => void }) {
  return (
    <Empty icon={icon} title="Nothing like that">
      No notification is like what is chosen above.
      <Button mt="md" variant="default" size="xs" onClick={forget} fullWidth>
        Clear filters
      </Button>
    </Empty>
  );
}

export function Failure({ error, retry }: { readonly error: Error; readonly retry: () => void }) {
  return (
    <Alert m="md" color="red" icon={<IconAlertCircle />} title="That could not be read">
      <Text size="sm" mb="xs" className="outside">
        {error.message}
      </Text>
      <Button size="compact-sm" variant="default" onClick={retry}>
        Try again
      </Button>
    </Alert>
  );
}
