/** `POST /v1/hooks/NAME`: a signed request becomes an event. The signature is what opens it, and no token. */
import type { IncomingHttpHeaders } from "node:http";
import type { HookRequest, HookText } from "../../config/hook_text.js";
import type { HookConfig } from "../../config/hooks.js";
import { AccessError, ConflictError, InvalidInputError } from "../../domain/errors.js";
import { type EventInput, takePayload } from "../../domain/event.js";
import type { Json, JsonObject } from "../../domain/json.js";
import { LIMITS } from "../../domain/limits.js";
import { SEVERITIES, type Severity } from "../../domain/severity.js";
import type { Clock } from "../../platform/clock.js";
import { timeInId } from "../../platform/ids.js";
import { newSecret } from "../../platform/secret.js";
import type { EmitAnswer, Tidings } from "../../tidings.js";
import { type JsonBounds, JsonShapeError, parseJson } from "../json.js";
import type { ServerLimits } from "../limits.js";
import type { Log } from "../log.js";
import type { Ingest } from "./ingest.js";
import { type Environment, keysOf, withoutSecretLine } from "./secrets.js";
import { type SignedRequest, signaturesIn, type Verified, verify } from "./signatures.js";
import { fitted, lineOf, typeOf } from "./words.js";

/** What the sender is told: nothing of what its event has become. */
export type HookAnswer = Pick<EmitAnswer, "id" | "seq" | "outcome">;

export interface HookParts {
  readonly tidings: Tidings;
  readonly ingest: Ingest;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: JsonBounds & Pick<ServerLimits, "signaturesPerRequest">;
  /** Where the secrets are. */
  readonly env: Environment;
}

/** So many messages that were signed later than we accepted them are remembered. */
const AHEAD_MAX = 10_000;

export class Hooks {
  readonly #parts: HookParts;
  /** Messages that cannot be told from one that is signed anew by their time; the oldest first. */
  readonly #ahead = new Set<string>();
  /** Nobody has it: what names no hook is checked like what does, and takes as long. */
  readonly #nobody = Buffer.from(newSecret());
  /** Whose want of a secret was told: once for each version of the file. */
  readonly #told = new WeakSet<HookConfig>();

  constructor(parts: HookParts) {
    this.#parts = parts;
  }

  /** Tells of those that can take nothing. */
  checkSecrets(): void {
    for (const [name, hook] of this.#parts.tidings.hooks) this.#keysOf(name, hook);
  }

  knows(name: string): boolean {
    return this.#parts.tidings.hooks.has(name);
  }

  /** After the commit. One that is refused has left nothing. */
  async take(name: string, headers: IncomingHttpHeaders, body: Buffer): Promise<HookAnswer> {
    const { tidings, ingest } = this.#parts;
    const hook = tidings.hooks.get(name);
    this.#checkSignatures(headersOf(headers));
    const verified = this.#verified(name, hook, { body, header: headersOf(headers) });
    if (hook === undefined || verified === undefined)
      throw new AccessError("unauthorized", "there is no such hook, or the signature is not that of its sender");
    const input = this.#inputOf(name, hook, verified, { body, headers });
    const to = tidings.as(hook.user_id, { critical: hook.critical, directive: false });
    const { id, seq, outcome } = await ingest.takeOf(name, hook.user_id, to, input);
    const known = this.#isKnown(verified, id);
    if (outcome === "duplicate" && (known || isReplay(verified, id)))
      throw new ConflictError("replayed", `it was accepted before, as event ${id}; nothing was done`);
    return { id, seq, outcome };
  }

  #inputOf(
    name: string,
    hook: HookConfig,
    verified: Verified,
    { body, headers }: { readonly body: Buffer; readonly headers: IncomingHttpHeaders },
  ): EventInput {
    try {
      this.#checkTime(hook, verified);
      const read = jsonOf(body, this.#parts.limits);
      return this.#eventOf(name, hook, verified, { body: read, header: headersOf(headers) });
    } catch (error) {
      if (error instanceof InvalidInputError) this.#parts.ingest.unreadOf(name);
      throw error;
    }
  }

  /** Whether exactly this was taken before, of what was signed later than its event was accepted. It is from now on. */
  #isKnown(verified: Verified, event_id: string): boolean {
    if (isReplay(verified, event_id)) return false;
    const message = `${event_id} ${verified.signed_at}`;
    if (this.#ahead.has(message)) return true;
    this.#ahead.add(message);
    const [oldest] = this.#ahead;
    if (this.#ahead.size > AHEAD_MAX && oldest !== undefined) this.#ahead.delete(oldest);
    return false;
  }

  /** Before anything is known of the hook: it is told to everybody alike. */
  #checkSignatures(header: SignedRequest["header"]): void {
    const { signaturesPerRequest } = this.#parts.limits;
    const count = signaturesIn(header);
    if (count > signaturesPerRequest)
      throw new InvalidInputError(
        "webhook-signature",
        `has ${count} signatures; at most ${signaturesPerRequest} are taken`,
      );
  }

  #verified(name: string, hook: HookConfig | undefined, request: SignedRequest): Verified | undefined {
    if (hook === undefined) {
      verify("github", [this.#nobody], { ...request, header: () => "" });
      return undefined;
    }
    return verify(hook.scheme, this.#keysOf(name, hook), request);
  }

  #keysOf(name: string, hook: HookConfig): Buffer[] {
    const { env, log } = this.#parts;
    const keys = keysOf(hook, env);
    if (keys.length > 0) return keys;
    if (!this.#told.has(hook)) {
      log.say("error", withoutSecretLine(name, hook.secret_env), { hook: name });
      this.#told.add(hook);
    }
    return [this.#nobody];
  }

  #checkTime({ tolerance_secs }: HookConfig, { signed_at }: Verified): void {
    if (tolerance_secs === null || signed_at === null) return;
    const age = Math.round(this.#parts.clock.wall() / 1_000) - signed_at;
    if (Math.abs(age) > tolerance_secs)
      throw new InvalidInputError(
        "webhook-timestamp",
        `is ${Math.abs(age)} s ${age > 0 ? "old" : "ahead"}; at most ${tolerance_secs} s are taken. Check the clocks of both`,
      );
  }

  #eventOf(name: string, hook: HookConfig, { id }: Verified, request: HookRequest): EventInput {
    const type = typeOf(hook.type.read(request), "webhook");
    if (type === null)
      throw new InvalidInputError("type", `${JSON.stringify(hook.type.text)} is empty for this request`);
    const source = lineOf(hook.source.read(request), LIMITS.sourceChars);
    if (source === "")
      throw new InvalidInputError("source", `${JSON.stringify(hook.source.text)} is empty for this request`);
    const word = (text: HookText | null, charsMax: number) => lineOf(text?.read(request) ?? "", charsMax) || undefined;
    return {
      id: fitted(id, LIMITS.idChars),
      type,
      source,
      severity: severityOf(hook.severity?.read(request)),
      subject: word(hook.subject, LIMITS.subjectChars),
      thread_id: hook.thread_id?.read(request) || undefined,
      dedupe_key: word(hook.dedupe_key, LIMITS.dedupeKeyChars),
      timestamp: hook.timestamp?.read(request) || undefined,
      payload: this.#payloadOf(name, hook, request),
    };
  }

  /** What is too large for a payload is left out, and the event says so: its sender could not send it otherwise. */
  #payloadOf(name: string, hook: HookConfig, request: HookRequest): JsonObject {
    try {
      return takePayload(hook.payload === null ? wholeOf(request.body) : mapped(hook.payload, request), "payload");
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      const omitted = `the body is no payload: it ${error.reason}; choose what of it you need in [hooks.${name}.payload]`;
      this.#parts.log.say("warn", `hook ${name}: ${omitted}`, { hook: name });
      return { omitted };
    }
  }
}

/**
 * A sender that had no answer sends the message again, signed anew and later than we accepted it: it is told that it has
 * arrived. What was signed before that was sent already. What was signed later may be that first message, of a sender
 * whose clock is ahead.
 */
function isReplay({ signed_at }: Verified, event_id: string): boolean {
  const accepted_at = timeInId(event_id);
  return signed_at === null || accepted_at === undefined || signed_at * 1_000 <= accepted_at;
}

function headersOf(headers: IncomingHttpHeaders): (name: string) => string | undefined {
  return (name) => {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
    return typeof value === "string" ? value : undefined;
  };
}

function jsonOf(body: Buffer, bounds: JsonBounds): Json {
  try {
    return parseJson(body, bounds) as Json;
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const hint =
      error instanceof JsonShapeError ? "have the sender send less" : "have the sender send application/json";
    throw new InvalidInputError("body", `${error.reason}; ${hint}`);
  }
}

function wholeOf(body: Json): Json {
  return typeof body === "object" && body !== null && !Array.isArray(body) ? body : { body };
}

function mapped(payload: NonNullable<HookConfig["payload"]>, request: HookRequest): Json {
  const values: Record<string, Json> = {};
  for (const [key, text] of payload) {
    const value = typeof text === "object" ? text.value(request) : text;
    if (value !== undefined) values[key] = value;
  }
  return values;
}

/** What is none of our severities is as if nothing were said. */
function severityOf(text: string | undefined): Severity | undefined {
  const word = text?.toLowerCase();
  return SEVERITIES.find((severity) => severity === word);
}
