/** What is watched for, for whom, and in which words it is told. */
import { Container, Drawer, Skeleton, Stack, Text, TextInput } from "@mantine/core";
import { useDocumentVisibility, useInterval } from "@mantine/hooks";
import { IconAdjustmentsOff, IconSearch } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useLocation, useRoute } from "wouter";
import { Empty, Failure } from "../../parts/empty.js";
import { useAnswer } from "../../session/session.js";
import { Detail } from "./detail.js";
import { Problems } from "./problems.js";
import { useSwitch } from "./switches.js";
import { SubscriberTable } from "./table.js";
import type { Subscriber } from "./types.js";

/** Nobody is told of an edited file, or of what was matched for an agent alone. */
const LOOK_MS = 3_000;
const MATCHES = 10;

export default function Subscribers() {
  const list = useAnswer("subscriber/list", { matches: MATCHES });
  const { reload } = list;
  useWhileVisible(reload);
  const turn = useSwitch(reload);
  const [words, setWords] = useState("");
  const [, navigate] = useLocation();
  const [, params] = useRoute("/subscribers/:id");
  const id = params?.id === undefined ? null : decodeURIComponent(params.id);
  if (list.value === undefined)
    return list.state === "failed" ? <Failure error={list.error} retry={reload} /> : <Loading />;
  const { subscribers, problems, without_effect } = list.value;
  const shown = subscribers.filter((one) => isMeant(one, words));
  const chosen = subscribers.find((one) => one.id === id);
  return (
    <Container size="xl" py="md">
      <Stack gap="md">
        {list.state === "failed" ? <Failure error={list.error} retry={reload} /> : null}
        <Problems problems={problems} without_effect={without_effect} />
        <TextInput
          aria-label="Find a subscriber"
          placeholder="Find by name, id or type of event"
          leftSection={<IconSearch size={16} aria-hidden />}
          value={words}
          onChange={(event) => setWords(event.currentTarget.value)}
          maw={360}
        />
        {shown.length === 0 ? (
          <Empty icon={IconAdjustmentsOff} title="No subscriber is called that">
            Find by a part of its name, its id, or a type of event that it takes.
          </Empty>
        ) : (
          <SubscriberTable subscribers={shown} turn={turn} />
        )}
      </Stack>
      <Drawer
        opened={id !== null}
        onClose={() => navigate("/subscribers")}
        position="right"
        // The page does not scroll, its parts do; and the lock would write styles that the policy refuses.
        lockScroll={false}
        size="xl"
        title={
          // It has the focus first, and not the button that closes it.
          <Text fw={600} tabIndex={-1} data-autofocus style={{ outline: "none" }}>
            {chosen?.name ?? id ?? ""}
          </Text>
        }
        closeButtonProps={{ "aria-label": "Close" }}
        // The page has a banner already.
        attributes={{ header: { role: "presentation" } }}
      >
        {chosen === undefined ? (
          <Empty icon={IconAdjustmentsOff} title="There is no such subscriber">
            Its file may have been removed.
          </Empty>
        ) : (
          <Detail key={chosen.id} subscriber={chosen} turn={turn} />
        )}
      </Drawer>
    </Container>
  );
}

function isMeant({ id, name, description, types }: Subscriber, words: string): boolean {
  const wanted = words.trim().toLowerCase();
  return [id, name ?? "", description ?? "", ...(types ?? [])].some((text) => text.toLowerCase().includes(wanted));
}

function useWhileVisible(look: () => void): void {
  const visible = useDocumentVisibility() === "visible";
  const { start, stop } = useInterval(look, LOOK_MS);
  useEffect(() => {
    if (!visible) return;
    start();
    return stop;
  }, [visible, start, stop]);
}

function Loading() {
  return (
    <Container size="xl" py="md">
      <Stack gap="sm">
        {["one", "two", "three", "four", "five", "six"].map((key) => (
          <Skeleton key={key} h={52} />
        ))}
      </Stack>
    </Container>
  );
}
