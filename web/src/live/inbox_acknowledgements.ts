/** What the user has seen and done, told to the server; again if it could not be told, since twice is as once. */
import { createContext, useContext, useEffect, useState } from "react";
import { isMiss, type Methods, OverloadedError, type TidingsClient, UnreachableError } from "tidings/client";

export type Action = Methods["notification/ack"]["params"]["action"];
type Answer = Methods["notification/ack"]["result"];

export interface Seen {
  readonly id: string;
  readonly revision: number;
}

const RETRY_MS = 1_000;

export class Acknowledgements {
  readonly #client: TidingsClient;
  readonly #user_id: string;
  /** What was told to be rendered, by id and revision: once is enough. */
  readonly #rendered = new Set<string>();
  #ended = false;

  constructor(client: TidingsClient, user_id: string) {
    this.#client = client;
    this.#user_id = user_id;
  }

  end(): void {
    this.#ended = true;
  }

  /** It is on the screen. Whether that could be told is nobody's concern but the server's. */
  rendered({ id, revision }: Seen): void {
    const key = `${id} ${revision}`;
    if (this.#rendered.has(key)) return;
    this.#rendered.add(key);
    this.send({ id, revision }, "rendered").catch(() => this.#rendered.delete(key));
  }

  /** Resolves with what it is then; rejects if it is not allowed. */
  async send({ id, revision }: Seen, action: Action): Promise<Answer> {
    for (;;)
      try {
        return await this.#client.call("notification/ack", { id, revision, action, user_id: this.#user_id });
      } catch (error) {
        const isPassing = error instanceof UnreachableError || error instanceof OverloadedError;
        if (!isPassing || this.#ended) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
  }

  /** Of many: how many were done, so many at a time. */
  async sendAll(all: readonly Seen[], action: Action): Promise<number> {
    let done = 0;
    const left = [...all];
    const worker = async () => {
      for (let one = left.pop(); one !== undefined; one = left.pop())
        if (!isMiss(await this.send(one, action))) done += 1;
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return done;
  }
}

const AT_ONCE = 16;

export const AcknowledgementsContext = createContext<Acknowledgements | null>(null);

export function useAcknowledgements(): Acknowledgements {
  const acknowledgements = useContext(AcknowledgementsContext);
  if (acknowledgements === null) throw new Error("outside of the inbox");
  return acknowledgements;
}

/** Whether somebody can see the page, now. */
export function isPageVisible(): boolean {
  return document.visibilityState === "visible";
}

/** Whether somebody can see the page, as it changes. */
export function usePageVisible(): boolean {
  const [isVisible, setVisible] = useState(isPageVisible);
  useEffect(() => {
    const look = () => setVisible(isPageVisible());
    document.addEventListener("visibilitychange", look);
    look();
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return isVisible;
}
