/** Who comes with a good token gets in; others are told how to come by one. */
import { Alert, Button, Center, Code, Loader, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { IconKey, IconPlugConnectedX } from "@tabler/icons-react";
import { type FormEvent, type ReactNode, useCallback, useEffect, useState } from "react";
import { AccessError, TidingsClient } from "tidings/client";
import { type Session, SessionProvider } from "./session.js";
import { forgetToken, keepToken, readToken, takeToken } from "./token.js";

type Stage =
  | { readonly at: "outside"; readonly why: string | null }
  | { readonly at: "connecting" }
  | { readonly at: "inside"; readonly session: Session };

export function Entrance({ children }: { readonly children: ReactNode }) {
  const [token, setToken] = useState(readToken);
  const [stage, setStage] = useState<Stage>({ at: "connecting" });
  const leave = useCallback(() => {
    forgetToken();
    setToken(null);
  }, []);

  // In a page that is open already an address changes nothing but its fragment. It is taken before anybody else looks at it.
  useEffect(() => {
    const look = () => {
      const brought = takeToken();
      if (brought !== null) setToken(brought);
    };
    window.addEventListener("hashchange", look, { capture: true });
    return () => window.removeEventListener("hashchange", look, { capture: true });
  }, []);

  useEffect(() => {
    if (token === null) {
      setStage((stage) => (stage.at === "outside" ? stage : { at: "outside", why: null }));
      return;
    }
    setStage({ at: "connecting" });
    const client = new TidingsClient({ url: location.origin, token, observe: true });
    let over = false;
    const stop = client.onStatus((status, { error }) => {
      const { server } = client;
      if (over) return;
      if (status === "open" && server !== null)
        setStage((stage) =>
          stage.at === "inside" ? stage : { at: "inside", session: { client, user_id: server.user_id, leave } },
        );
      if (status !== "closed") return;
      const refused = error instanceof AccessError;
      const why = refused ? "The server does not know this token (any more)." : (error?.message ?? null);
      setStage({ at: "outside", why });
      setToken(null);
    });
    return () => {
      over = true;
      stop();
      client.close();
    };
  }, [token, leave]);

  if (stage.at === "inside") return <SessionProvider session={stage.session}>{children}</SessionProvider>;
  if (stage.at === "connecting")
    return (
      <Center h="100%">
        <Loader aria-label="Connecting" />
      </Center>
    );
  const enter = (given: string) => {
    keepToken(given);
    setToken(given);
  };
  return <Outside why={stage.why} enter={enter} />;
}

function Outside({ why, enter }: { readonly why: string | null; readonly enter: (token: string) => void }) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() !== "") enter(text.trim());
  };
  return (
    <Center component="main" h="100%" p="md">
      <Stack maw={440} w="100%">
        <Title order={1} size="h2">
          Tidings
        </Title>
        <Text>
          Open the address that <Code>tidings serve</Code> has printed: it brings the token with it. Or paste a token,
          like one of <Code>tidings token create</Code>.
        </Text>
        {why === null ? null : (
          <Alert color="red" icon={<IconPlugConnectedX />} title="Not let in">
            {why}
          </Alert>
        )}
        <form onSubmit={submit}>
          <Stack>
            <PasswordInput
              label="Token"
              leftSection={<IconKey size={16} />}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
              autoComplete="off"
              autoFocus
            />
            <Button type="submit" disabled={text.trim() === ""}>
              Enter
            </Button>
          </Stack>
        </form>
      </Stack>
    </Center>
  );
}
