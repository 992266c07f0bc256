/** The connection to the server, for every part of the page: one, kept open, resumed without a gap. */
import { createContext, type ReactNode, useContext, useEffect, useEffectEvent, useRef, useState } from "react";
import type { Methods, StatusDetail, TidingsClient, Told } from "tidings/client";

export interface Session {
  readonly client: TidingsClient;
  readonly user_id: string;
  readonly leave: () => void;
}

const SessionContext = createContext<Session | null>(null);

export function SessionProvider({ session, children }: { readonly session: Session; readonly children: ReactNode }) {
  return <SessionContext value={session}>{children}</SessionContext>;
}

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("outside of a session");
  return session;
}

export function useClient(): TidingsClient {
  return useSession().client;
}

export interface Connection {
  readonly status: TidingsClient["status"];
  readonly detail: StatusDetail | null;
}

/** How the connection is, as it changes. */
export function useConnection(): Connection {
  const client = useClient();
  const [connection, setConnection] = useState<Connection>({ status: client.status, detail: null });
  useEffect(() => {
    setConnection({ status: client.status, detail: null });
    return client.onStatus((status, detail) => setConnection({ status, detail }));
  }, [client]);
  return connection;
}

/** Whatever the server tells, in order, while the part is shown. */
export function useTold(hear: (told: Told) => void): void {
  const client = useClient();
  const heard = useEffectEvent(hear);
  useEffect(() => client.listen((told) => heard(told)), [client]);
}

/** What could not be read because the server was away is read when it is back. */
export function useWhenBack(isFailed: boolean, again: () => void): void {
  const client = useClient();
  const read = useEffectEvent(again);
  useEffect(() => {
    if (!isFailed) return;
    return client.onStatus((status) => {
      if (status === "open") read();
    });
  }, [client, isFailed]);
}

export type Loaded<Value> =
  | { readonly state: "loading"; readonly value: Value | undefined }
  | { readonly state: "failed"; readonly error: Error; readonly value: Value | undefined }
  | { readonly state: "ready"; readonly value: Value };

/**
 * What a method answers; asked again when the parameters change, on `reload`, and when the server says that the stream
 * could not go on without a gap.
 */
export function useAnswer<Name extends keyof Methods>(
  method: Name,
  params: Methods[Name]["params"],
): Loaded<Methods[Name]["result"]> & { readonly reload: () => void } {
  const client = useClient();
  const [loaded, setLoaded] = useState<Loaded<Methods[Name]["result"]>>({ state: "loading", value: undefined });
  const [round, setRound] = useState(0);
  const reload = useRef(() => setRound((before) => before + 1)).current;
  const key = JSON.stringify(params);
  useTold((told) => {
    if (told.method === "stream/reset") reload();
  });
  useWhenBack(loaded.state === "failed", reload);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the parameters are compared by what is in them
  useEffect(() => {
    let over = false;
    setLoaded(({ value }) => ({ state: "loading", value }));
    client.call(method, params).then(
      (value) => over || setLoaded({ state: "ready", value }),
      (error: unknown) =>
        over ||
        setLoaded(({ value }) => ({
          state: "failed",
          error: error instanceof Error ? error : new Error(String(error)),
          value,
        })),
    );
    return () => {
      over = true;
    };
  }, [client, method, key, round]);
  return { ...loaded, reload };
}
