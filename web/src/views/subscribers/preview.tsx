/** What a subscriber would make of an event: of a sample, of one that has come, or of one that is written here. */
import { Alert, JsonInput, SegmentedControl, Select, Skeleton, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconAlertCircle } from "@tabler/icons-react";
import { useRef } from "react";
import type { ParamsOf } from "tidings/client";
import { exactly } from "../../parts/time.js";
import { useAnswer } from "../../session/session.js";
import { Rendered } from "./rendered.js";
import type { Preview, Subscriber } from "./types.js";

/** Which event is looked at. */
export type Source =
  | { readonly from: "sample" }
  | { readonly from: "recent"; readonly event_id: string }
  | { readonly from: "own"; readonly text: string };

const TYPING_MS = 300;

interface Props {
  readonly subscriber: Subscriber;
  readonly source: Source;
  readonly choose: (source: Source) => void;
}

export function PreviewPanel({ subscriber, source, choose }: Props) {
  const [settled] = useDebouncedValue(source, TYPING_MS);
  const asked = paramsOf(subscriber.id, source.from === "own" ? settled : source);
  // What cannot be asked for leaves standing what was there before.
  const last = useRef<ParamsOf<"subscriber/preview">>({ subscriber_id: subscriber.id });
  if (asked !== null) last.current = asked;
  const preview = useAnswer("subscriber/preview", last.current);
  const [newest] = subscriber.last_matches;
  const turnTo = (from: string) => {
    if (from === "sample") choose({ from });
    if (from === "recent" && newest !== undefined) choose({ from, event_id: newest.event_id });
    if (from === "own") choose({ from, text: ownText(preview.value) });
  };
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label="Which event"
        size="xs"
        value={source.from}
        onChange={turnTo}
        data={[
          { value: "sample", label: "A sample" },
          { value: "recent", label: "One that came", disabled: newest === undefined },
          { value: "own", label: "Your own" },
        ]}
      />
      {source.from === "recent" ? (
        <Select
          label="Event"
          size="xs"
          allowDeselect={false}
          value={source.event_id}
          onChange={(event_id) => event_id !== null && choose({ from: "recent", event_id })}
          data={recent(subscriber, source.event_id)}
          comboboxProps={{ withinPortal: true }}
        />
      ) : null}
      {source.from === "own" ? (
        <JsonInput
          label="Event, as event/emit takes it"
          size="xs"
          value={source.text}
          onChange={(text) => choose({ from: "own", text })}
          error={parsed(source.text) === null ? "This is no JSON object." : null}
          autosize
          minRows={6}
          maxRows={16}
          spellCheck={false}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
      ) : null}
      {preview.state === "failed" ? (
        <Alert color="red" icon={<IconAlertCircle />} title="That is no event that can be looked at" p="xs">
          <Text size="sm" className="outside">
            {preview.error.message}
          </Text>
        </Alert>
      ) : preview.value === undefined ? (
        <Skeleton h={120} />
      ) : (
        <Rendered preview={preview.value} />
      )}
    </Stack>
  );
}

function paramsOf(subscriber_id: string, source: Source): ParamsOf<"subscriber/preview"> | null {
  if (source.from === "sample") return { subscriber_id };
  if (source.from === "recent") return { subscriber_id, event_id: source.event_id };
  const event = parsed(source.text);
  // The server says what is wrong with it.
  return event === null ? null : { subscriber_id, event: event as unknown as ParamsOf<"event/emit"> };
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

/** Something to begin with: what was looked at before. */
function ownText(preview: Preview | undefined): string {
  const { type, source, severity, payload, subject, thread_id } = preview?.event ?? {};
  const event = { type, source, severity, payload, subject, thread_id };
  const known = Object.entries(event).filter(([, value]) => value !== null && value !== undefined);
  return JSON.stringify(Object.fromEntries(known), null, 2);
}

function recent({ last_matches }: Subscriber, event_id: string): { value: string; label: string }[] {
  const offered = last_matches.map((one) => ({ value: one.event_id, label: `${one.event_type}, ${exactly(one.at)}` }));
  // One that newer ones have pushed out is still the one that was chosen.
  const known = offered.some(({ value }) => value === event_id);
  return known ? offered : [{ value: event_id, label: event_id }, ...offered];
}
