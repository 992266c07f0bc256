/** A WebSocket: the one that is there, or that of the package `ws`. */
import { AccessError, OverloadedError, UnreachableError } from "../domain/errors.js";
import { addressOf, foreignError, frameOf, type Link, type LinkEvents, type Target } from "./link.js";

/** As much of one as both have. */
interface Socket {
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onerror: ((event: { message?: string }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  send(text: string): void;
  close(code?: number): void;
  terminate?(): void;
}

type SocketClass = new (url: string, protocols: string[]) => Socket;

const PROTOCOL = "tidings.v1";
const DONE = 1000;
const POLICY = 1008;
const TOO_SLOW = 1013;

export function openWebSocket(target: Target, events: LinkEvents): Link {
  let socket: Socket | undefined;
  let over = false;
  const finish = (error: Error) => {
    if (over) return;
    over = true;
    events.ended(error);
  };
  const start = (WebSocket: SocketClass) => {
    if (over) return;
    const address = addressOf(target, "/ws");
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const opened = new WebSocket(address.href, [PROTOCOL, `bearer.${target.token}`]);
    socket = opened;
    let isOpen = false;
    opened.onopen = () => {
      isOpen = true;
      if (!over) events.opened();
    };
    opened.onmessage = ({ data }) => {
      if (over) return;
      const incoming = frameOf(String(data));
      if (incoming !== undefined) events.took(incoming);
      else {
        opened.close(DONE);
        finish(foreignError(target.url, "what is no JSON"));
      }
    };
    const unopened = (why = "") =>
      finish(new UnreachableError(`${target.url} does not answer${why === "" ? "" : `: ${why}`}`));
    // Not all of them say more after an error before they are open.
    opened.onerror = ({ message }) => {
      if (!isOpen) unopened(message);
    };
    opened.onclose = ({ code, reason }) => {
      if (isOpen) finish(whyClosed(target.url, code, reason));
      else unopened();
    };
  };
  socketClass().then(start).catch(finish);
  return {
    say: (text) => socket?.send(text),
    end(politely) {
      over = true;
      if (socket === undefined) return;
      socket.onmessage = null;
      if (politely || socket.terminate === undefined) socket.close(DONE);
      else socket.terminate();
    },
  };
}

async function socketClass(): Promise<SocketClass> {
  const { WebSocket } = globalThis as { WebSocket?: SocketClass };
  if (WebSocket !== undefined) return WebSocket;
  // Not in a bundle for browsers, which have one: `imports` of package.json says so.
  return (await import("#ws")).WebSocket as unknown as SocketClass;
}

function whyClosed(url: string, code: number, reason: string): Error {
  const why = reason === "" ? `the connection is gone (${code})` : reason;
  if (code === POLICY) return new AccessError("unauthorized", why);
  if (code === TOO_SLOW) return new OverloadedError(why, 0);
  return new UnreachableError(`${url} tells no more: ${why}`, { why: "lost" });
}
