/** Who calls, and what they may do. Every transport asks here; nothing else grants anything. */
import { timingSafeEqual } from "node:crypto";
import { AccessError } from "../domain/errors.js";
import type { EventInput } from "../domain/event.js";
import { LOCAL_USER, type TokenId, type UserId } from "../domain/ids.js";
import type { NotifyInput } from "../domain/notification.js";
import { grantsOf, hasScope, SCOPES, type Scope } from "../domain/token.js";
import { sha256 } from "../platform/secret.js";
import type { Tidings, TidingsView } from "../tidings.js";

interface Identity {
  /** Null for the token that the server made for itself when it started. */
  readonly token_id: TokenId | null;
  readonly user_id: UserId;
  readonly scopes: readonly Scope[];
  readonly expires_at: number | null;
}

/** One token's holder, for one call or one connection. */
export class Caller {
  readonly token_id: TokenId | null;
  readonly user_id: UserId;
  readonly expires_at: number | null;
  readonly admin: boolean;
  readonly #scopes: readonly Scope[];
  readonly #tidings: Tidings;

  constructor(tidings: Tidings, { token_id, user_id, scopes, expires_at }: Identity) {
    this.token_id = token_id;
    this.user_id = user_id;
    this.expires_at = expires_at;
    this.admin = scopes.includes("admin");
    this.#scopes = scopes;
    this.#tidings = tidings;
  }

  /** Made when it is asked for: a client that only listens has no use for it. */
  get #view(): TidingsView {
    return this.admin ? this.#tidings : this.#tidings.as(this.user_id, grantsOf(this.#scopes));
  }

  mustHave(scope: Scope): void {
    if (hasScope(this.#scopes, scope)) return;
    throw new AccessError("forbidden", `this needs a token with the scope ${scope}`);
  }

  /** What the caller sees: admin everything, or as the user that it names; anybody else what is their own. */
  as(user_id: string | undefined): TidingsView {
    this.mustBeOwn(user_id);
    return this.admin && user_id !== undefined ? this.#tidings.as(user_id) : this.#view;
  }

  /** Whose is meant where a call names nobody. */
  userOr(user_id: string | undefined): string {
    this.mustBeOwn(user_id);
    return user_id ?? this.user_id;
  }

  /** Where the caller sends to, and what it sends with its user in it. */
  sending<Input extends EventInput | NotifyInput>(input: Input): { to: TidingsView; input: Input } {
    this.mustBeOwn(input.user_id);
    return { to: this.#view, input: input.user_id === undefined ? { ...input, user_id: this.user_id } : input };
  }

  mustBeOwn(user_id: string | undefined): void {
    if (this.admin || user_id === undefined || user_id === this.user_id) return;
    throw new AccessError("forbidden", "user_id: a token may name only its own user, unless it is admin's");
  }
}

export class Access {
  readonly #tidings: Tidings;
  readonly #own: Buffer;
  /** There are thousands of callers, and few different lists of scopes. */
  readonly #scopes = new Map<string, readonly Scope[]>();

  /** `ownToken` is the one that the server made for itself: admin's, for as long as it runs. */
  constructor(tidings: Tidings, ownToken: string) {
    this.#tidings = tidings;
    this.#own = Buffer.from(sha256(ownToken));
  }

  /** Whoever has started the server, and whoever has its own token: admin's. */
  own(): Caller {
    return new Caller(this.#tidings, { token_id: null, user_id: LOCAL_USER, scopes: ["admin"], expires_at: null });
  }

  async callerOf(token: string | undefined): Promise<Caller> {
    if (token === undefined) throw new AccessError("unauthorized", "send a token: `Authorization: Bearer TOKEN`");
    const digest = sha256(token);
    if (timingSafeEqual(Buffer.from(digest), this.#own)) return this.own();
    const found = await this.#tidings.tokens.verify(digest);
    if (found === undefined)
      throw new AccessError("unauthorized", "the token is unknown, revoked or expired; ask for another one");
    const { id, user_id, scopes, expires_at } = found;
    return new Caller(this.#tidings, { token_id: id, user_id, scopes: this.#shared(scopes), expires_at });
  }

  #shared(scopes: readonly Scope[]): readonly Scope[] {
    const names = SCOPES.filter((scope) => scopes.includes(scope));
    const key = names.join();
    const known = this.#scopes.get(key) ?? names;
    this.#scopes.set(key, known);
    return known;
  }
}
