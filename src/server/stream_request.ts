/** What a request for a stream asks for, and whether it may have one more. */
import type { IncomingMessage } from "node:http";
import { InvalidInputError, OverloadedError } from "../domain/errors.js";
import { parseInput } from "../domain/parse.js";
import type { Caller } from "./access.js";
import { type Cursor, cursorOf, cursorSchema } from "./cursor.js";
import type { Hub } from "./hub.js";
import type { ServerLimits } from "./limits.js";
import type { RateLimit } from "./rate.js";
import { type ClientView, viewOf, viewSchema } from "./view.js";

const RETRY_MS = 1_000;

const VIEW = ["conversation", "observe", "opt_out"] as const;
const CURSOR = ["journal_id", "after_seq", "after_part"] as const;

/**
 * From the query: what `initialize` takes (`opt_out` separated by commas), and what `stream/resume` takes. Server-sent
 * events name the cursor by the id of the last one.
 */
export function askedOf(
  { url = "", headers }: Pick<IncomingMessage, "url" | "headers">,
  preset: ClientView,
): { readonly view: ClientView; readonly cursor: Cursor | null } {
  const query = new URLSearchParams(url.includes("?") ? url.slice(url.indexOf("?") + 1) : "");
  const given: Record<string, unknown> = {};
  for (const [name, text] of query) {
    if (!isOneOf(VIEW, name) && !isOneOf(CURSOR, name)) throw new InvalidInputError(name, "is not a known field");
    if (Object.hasOwn(given, name)) throw new InvalidInputError(name, "is given twice");
    given[name] = readValue(name, text);
  }
  const pick = (names: readonly string[]) =>
    Object.fromEntries(names.flatMap((name) => (Object.hasOwn(given, name) ? [[name, given[name]]] : [])));
  const wanted = pick(VIEW);
  const view =
    Object.keys(wanted).length === 0
      ? preset
      : viewOf(parseInput(viewSchema, { conversation: preset.conversation, ...wanted }));
  const last = headers["last-event-id"];
  const asked = pick(CURSOR);
  if (Object.keys(asked).length > 0) return { view, cursor: parseInput(cursorSchema, asked) };
  if (typeof last !== "string" || last === "") return { view, cursor: null };
  const cursor = cursorOf(last);
  if (cursor === undefined) throw new InvalidInputError("last-event-id", "must be the id of an event of this stream");
  return { view, cursor };
}

function readValue(name: string, text: string): unknown {
  if (name === "opt_out") return text.split(",").filter((one) => one !== "");
  if (name === "after_seq" || name === "after_part") return /^\d{1,15}$/.test(text) ? Number(text) : text;
  if (name === "conversation" || name === "observe") return text === "true" ? true : text === "false" ? false : text;
  return text;
}

function isOneOf(names: readonly string[], name: string): boolean {
  return names.includes(name);
}

/** Who may have one more stream. */
export class Admission {
  readonly #hub: Hub;
  readonly #limits: ServerLimits;
  readonly #rate: RateLimit;
  readonly #ready: () => boolean;

  constructor(hub: Hub, limits: ServerLimits, rate: RateLimit, ready: () => boolean) {
    this.#hub = hub;
    this.#limits = limits;
    this.#rate = rate;
    this.#ready = ready;
  }

  /** Throws where no further stream is taken. One that is counts as a call. */
  take(caller: Caller): void {
    const { sockets, socketsPerUser } = this.#limits;
    caller.mustHave("read");
    if (!this.#ready() || this.#hub.size >= sockets)
      throw new OverloadedError("no more connections are taken now", RETRY_MS);
    if (this.#hub.sizeOf(caller.user_id) >= socketsPerUser)
      throw new OverloadedError(`this user has ${socketsPerUser} connections already`, RETRY_MS);
    const waitMs = this.#rate.take(caller.token_id ?? "", 1);
    if (waitMs > 0) throw new OverloadedError("more streams and calls than this token may make; slow down", waitMs);
  }
}
