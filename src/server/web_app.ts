/**
 * The web app: the files of `dist/web`, read when the server starts. A page gets a strict policy with each answer: its
 * own files and nothing else, and styles only of whom this answer's nonce was given to.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { TidingsError } from "../domain/errors.js";
import { PACKAGE_ROOT } from "../platform/package_root.js";
import { newNonce } from "../platform/secret.js";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

const PAGE = "/index.html";
/** Stands in the page where the nonce is to be (`html.cspNonce` of the build). */
const NONCE = "TIDINGS_NONCE";
/** The build gives these a name by their content: under one name they are always the same. */
const LASTING = "/assets/";
const YEAR_S = 31_536_000;

interface WebFile {
  readonly type: string;
  readonly plain: Buffer;
  /** As the build has compressed it; null where that would not help. */
  readonly brotli: Buffer | null;
}

export class WebApp {
  readonly #files: ReadonlyMap<string, WebFile>;

  constructor(folder: string = join(PACKAGE_ROOT, "dist", "web")) {
    this.#files = filesIn(folder);
  }

  has(path: string): boolean {
    return path === "/" || this.#files.has(path);
  }

  answer(path: string, request: IncomingMessage, response: ServerResponse): void {
    const name = path === "/" ? PAGE : path;
    const file = this.#files.get(name);
    if (file === undefined) throw new TidingsError("not_found", "the web app is not built: run `npm run build`");
    if (name === PAGE) this.#page(file, response);
    else this.#file(name, file, request, response);
  }

  #page({ type, plain }: WebFile, response: ServerResponse): void {
    const nonce = newNonce();
    const page = Buffer.from(plain.toString().replaceAll(NONCE, nonce));
    response.writeHead(200, {
      ...COMMON,
      "content-type": type,
      "content-length": page.length,
      "cache-control": "no-store",
      "content-security-policy": policyWith(nonce),
    });
    response.end(page);
  }

  #file(name: string, { type, plain, brotli }: WebFile, request: IncomingMessage, response: ServerResponse): void {
    const small = brotli !== null && /\bbr\b/.test(String(request.headers["accept-encoding"] ?? ""));
    const body = small ? brotli : plain;
    response.writeHead(200, {
      ...COMMON,
      "content-type": type,
      "content-length": body.length,
      "cache-control": name.startsWith(LASTING) ? `public, max-age=${YEAR_S}, immutable` : "no-cache",
      vary: "accept-encoding",
      ...(small ? { "content-encoding": "br" } : {}),
    });
    response.end(body);
  }
}

const COMMON = {
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
};

function policyWith(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "font-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function filesIn(folder: string): Map<string, WebFile> {
  const files = new Map<string, WebFile>();
  if (!existsSync(folder)) return files;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = TYPES[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    const compressed = `${path}.br`;
    files.set(`/${path.slice(folder.length + 1).replaceAll("\\", "/")}`, {
      type,
      plain: readFileSync(path),
      brotli: existsSync(compressed) ? readFileSync(compressed) : null,
    });
  }
  return files;
}
