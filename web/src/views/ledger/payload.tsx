/** An event behind a notification, whole; asked for when somebody wants to see it. */
import { Button, Loader, Text } from "@mantine/core";
import { useState } from "react";
import { isMiss } from "tidings/client";
import { Json } from "../../parts/json.js";
import { useAnswer } from "../../session/session.js";

export function EventPayload({ event_id }: { readonly event_id: string }) {
  const [isWanted, setWanted] = useState(false);
  if (isWanted) return <Payload event_id={event_id} />;
  return (
    <Button size="compact-xs" variant="default" mt={4} onClick={() => setWanted(true)}>
      Show the event
    </Button>
  );
}

function Payload({ event_id }: { readonly event_id: string }) {
  const { state, value } = useAnswer("notification/explain", { id: event_id });
  if (value === undefined) return state === "failed" ? <Gone /> : <Loader size="xs" aria-label="Loading" />;
  if (isMiss(value) || value.event === undefined) return <Gone />;
  return <Json name="The event" value={value.event} />;
}

function Gone() {
  return (
    <Text size="xs" c="dimmed">
      The event could not be read; it may have been removed with old history.
    </Text>
  );
}
