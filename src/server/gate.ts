/**
 * Host and Origin, before anything else of a request is looked at: a web page of somebody else, or a name that
 * somebody pointed at this machine, gets no further.
 */
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { AccessError } from "../domain/errors.js";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

export interface GateOptions {
  /** As it is bound. */
  readonly host: string;
  readonly port: number;
  /** `name` or `name:port`, for a proxy in front. */
  readonly allowHosts: readonly string[];
  /** `https://name`, for pages served from elsewhere. */
  readonly allowOrigins: readonly string[];
}

type Asked = Pick<IncomingMessage, "headers" | "rawHeaders" | "url">;

export class Gate {
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;
  /** Bound to every address: whoever names one of them by its number was not led here by a name. */
  readonly #numbersOfPort: string | undefined;

  constructor({ host, port, allowHosts, allowOrigins }: GateOptions) {
    const every = host === "0.0.0.0" || host === "::";
    const names = [...new Set([...LOOPBACK, ...(every ? [] : [hostInUrl(host).toLowerCase()])])];
    const own = names.flatMap((name) => [`${name}:${port}`, ...(port === 80 ? [name] : [])]);
    this.#hosts = new Set([...own, ...allowHosts.map((name) => name.toLowerCase())]);
    this.#origins = new Set([
      ...own.map((name) => `http://${name}`),
      ...allowHosts.flatMap((name) => [`http://${name.toLowerCase()}`, `https://${name.toLowerCase()}`]),
      ...allowOrigins.map((origin) => origin.toLowerCase().replace(/\/$/, "")),
    ]);
    this.#numbersOfPort = every ? String(port) : undefined;
  }

  check(request: Asked): void {
    const host = hostOf(request);
    if (host === undefined || !this.#isKnown(host))
      throw new AccessError("forbidden", "the Host header names another place; see `tidings serve --allow-host`");
    const { origin } = request.headers;
    if (origin !== undefined && !this.#origins.has(origin) && !this.#isOwnNumber(origin, host))
      throw new AccessError(
        "forbidden",
        "a page of this Origin may not speak to it; see `tidings serve --allow-origin`",
      );
  }

  #isKnown(host: string): boolean {
    return this.#hosts.has(host) || this.#isNumber(host);
  }

  #isNumber(host: string): boolean {
    if (this.#numbersOfPort === undefined) return false;
    const [, name, port = "80"] = /^(\[.+\]|[^:]+)(?::([0-9]+))?$/.exec(host) ?? [];
    return port === this.#numbersOfPort && name !== undefined && isIP(name.replace(/^\[|\]$/g, "")) !== 0;
  }

  #isOwnNumber(origin: string, host: string): boolean {
    return this.#isNumber(host) && origin === `http://${host}`;
  }
}

/** In lower case. Undefined where the request names no place, or more than one: nobody can say which of them counts. */
function hostOf({ headers, rawHeaders, url = "" }: Asked): string | undefined {
  const host = headers.host?.toLowerCase();
  let given = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === "host") given += 1;
  const target = ABSOLUTE.exec(url)?.[1]?.toLowerCase();
  return given === 1 && (target === undefined || target === host) ? host : undefined;
}

/** A request may name the whole address, as to a proxy. */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

/** Without the address and what is asked of it. */
export function pathOf({ url = "/" }: Pick<IncomingMessage, "url">): string {
  return url.replace(ABSOLUTE, "").split("?", 1)[0] || "/";
}

export function hostInUrl(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}
