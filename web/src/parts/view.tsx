/**
 * A view of the page, fetched when it is first wanted, and otherwise when there is nothing else to do. A module that could not
 * be fetched once cannot be fetched again by the same page: so nothing is asked for while the server is away.
 */
import { Alert, Button, Loader, Text } from "@mantine/core";
import { IconAlertCircle, IconPlugConnectedX } from "@tabler/icons-react";
import { type ComponentType, useEffect, useState } from "react";
import { useConnection } from "../session/session.js";
import { Empty } from "./empty.js";

export type LoadView = () => Promise<{ readonly default: ComponentType }>;

type State = { readonly component: ComponentType } | { readonly error: Error } | null;

const IDLE_MS = 3_000;
/** A mark in the browser's own timeline: the first view is there. What is fetched later is fetched ahead. */
const SHOWN = "tidings:shown";

const fetched = new Map<LoadView, ComponentType>();

async function fetchView(load: LoadView): Promise<ComponentType> {
  const { default: component } = await load();
  fetched.set(load, component);
  return component;
}

export function View({ load }: { readonly load: LoadView }) {
  const isOpen = useConnection().status === "open";
  const [state, setState] = useState<State>(() => {
    const component = fetched.get(load);
    return component === undefined ? null : { component };
  });
  const isWanted = state === null && isOpen;
  useEffect(() => {
    if (!isWanted) return;
    let isOver = false;
    fetchView(load).then(
      (component) => isOver || setState({ component }),
      (error: unknown) => isOver || setState({ error: error instanceof Error ? error : new Error(String(error)) }),
    );
    return () => {
      isOver = true;
    };
  }, [load, isWanted]);
  const isShown = state !== null && "component" in state;
  useEffect(() => {
    if (isShown && performance.getEntriesByName(SHOWN).length === 0) performance.mark(SHOWN);
  }, [isShown]);
  if (isShown) return <state.component />;
  if (!isOpen)
    return (
      <Empty icon={IconPlugConnectedX} title="The server is away">
        This opens as soon as it is back.
      </Empty>
    );
  return state === null ? <Loader m="xl" aria-label="Loading" /> : <NotFetched error={state.error} />;
}

function NotFetched({ error }: { readonly error: Error }) {
  return (
    <Alert m="md" color="red" icon={<IconAlertCircle />} title="This part of the page could not be fetched">
      <Text size="sm" mb="xs">
        The rest of the page goes on; to have this part as well, the page has to be loaded again.
      </Text>
      <Button size="compact-sm" variant="default" onClick={() => location.reload()} title={error.message}>
        Load the page again
      </Button>
    </Alert>
  );
}

/** Has every view at hand before it is wanted, so that it opens at once, and also while the server is away. */
export function useViewsAhead(views: readonly LoadView[]): void {
  const isOpen = useConnection().status === "open";
  useEffect(() => {
    if (!isOpen) return;
    let isOver = false;
    const timer = setTimeout(async () => {
      for (const load of views) if (!isOver && !fetched.has(load)) await fetchView(load).catch(() => {});
    }, IDLE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [views, isOpen]);
}
