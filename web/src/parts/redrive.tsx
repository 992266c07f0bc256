/** A dead letter is sent again, once, as a notification of its own. */
import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconRefresh } from "@tabler/icons-react";
import { useCallback, useState } from "react";
import { isMiss } from "tidings/client";
import { useLocation } from "wouter";
import { useAnswer, useClient } from "../session/session.js";

export function useRedrive(): (id: string) => Promise<void> {
  const client = useClient();
  const [, navigate] = useLocation();
  return useCallback(
    async (id: string) => {
      try {
        const answer = await client.call("notification/redrive", { id });
        if (isMiss(answer)) refused(answer.message);
        else {
          notifications.show({
            color: "green",
            title: "Sent again",
            message: "This is the new one; the old one stays.",
          });
          navigate(`/ledger/${answer.id}`);
        }
      } catch (error) {
        refused(error instanceof Error ? error.message : String(error));
      }
    },
    [client, navigate],
  );
}

function refused(message: string): void {
  notifications.show({ color: "red", title: "It was not sent again", message });
}

export function SendAgain({ id }: { readonly id: string }) {
  const redrive = useRedrive();
  const [isBusy, setBusy] = useState(false);
  const run = () => {
    setBusy(true);
    void redrive(id).finally(() => setBusy(false));
  };
  return (
    <Button size="compact-sm" leftSection={<IconRefresh size={14} aria-hidden />} onClick={run} loading={isBusy}>
      Send again
    </Button>
  );
}

/** Where its story is not at hand: only that says whether it was sent again already. */
export function SendAgainOnce({ id }: { readonly id: string }) {
  const { value } = useAnswer("notification/explain", { id });
  if (value === undefined || isMiss(value) || value.story.some(({ kind }) => kind === "redriven")) return null;
  return <SendAgain id={id} />;
}
