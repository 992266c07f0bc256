/** A part of the page that broke, or could not be loaded, says so in its place: the rest goes on. */
import { Alert, Button, Text } from "@mantine/core";
import { IconAlertCircle } from "@tabler/icons-react";
import { Component, type ReactNode } from "react";

interface Props {
  readonly children: ReactNode;
}

interface State {
  readonly error: Error | null;
}

export class Broken extends Component<Props, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Alert m="md" color="red" icon={<IconAlertCircle />} title="This part of the page could not be shown">
        <Text size="sm" mb="xs" className="outside">
          {error.message}
        </Text>
        <Button size="compact-sm" variant="default" onClick={() => location.reload()}>
          Load the page again
        </Button>
      </Alert>
    );
  }
}
