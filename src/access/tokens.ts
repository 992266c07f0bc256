/** Tokens: made here, shown once, and known afterwards only by their digest. */
import { z } from "zod";
import type { Miss } from "../domain/errors.js";
import { LOCAL_USER, tokenId, userId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { parseInput, wordSchema } from "../domain/parse.js";
import { HOST } from "../domain/principal.js";
import { SCOPES, type Scope, type Token, type TokenView, tokenView } from "../domain/token.js";
import { newSecret, sha256 } from "../platform/secret.js";
import type { Store } from "../store/contract.js";

/** So that a token is recognised as one of ours, also by scanners for secrets. */
const PREFIX = "tdg_";
const PAGE = 1_000;

export const newTokenSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).default(LOCAL_USER),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1, "must name at least one scope")
    .max(SCOPES.length)
    .transform((scopes) => [...new Set(scopes)]),
  name: wordSchema(LIMITS.idChars).optional(),
  ttl_ms: z.int().min(1).max(LIMITS.ttlMsMax).optional(),
});

export interface NewTokenInput {
  /** Whose; default `local`. */
  user_id?: string | undefined;
  scopes: readonly Scope[];
  name?: string | undefined;
  /** Without it the token is good until it is revoked. */
  ttl_ms?: number | undefined;
}

/** The one time that the token's text is seen. */
export type NewTokenAnswer = { token: string } & TokenView;

export function newTokenText(): string {
  return `${PREFIX}${newSecret()}`;
}

/** Upkeep by the host. */
export class Tokens {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async create(input: NewTokenInput): Promise<NewTokenAnswer> {
    const { user_id, scopes, name, ttl_ms } = parseInput(newTokenSchema, input);
    const token = newTokenText();
    const kept = await this.#store.createToken(HOST, {
      user_id: userId(user_id),
      name: name ?? null,
      scopes,
      ttl_ms: ttl_ms ?? null,
      digest: sha256(token),
    });
    return { token, ...tokenView(kept) };
  }

  /** Oldest first, also those that are revoked or have expired. */
  async list(options: { user_id?: string | undefined } = {}): Promise<TokenView[]> {
    const found: TokenView[] = [];
    for (let after: Token["id"] | null = null; ; ) {
      const page: readonly Token[] = await this.#store.tokens(HOST, after, PAGE);
      for (const token of page)
        if (options.user_id === undefined || token.user_id === options.user_id) found.push(tokenView(token));
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return found;
      after = last.id;
    }
  }

  /** From now on it opens nothing, and what it had opened is closed. */
  async revoke(id: string): Promise<TokenView | Miss> {
    const token = await this.#store.revokeToken(HOST, tokenId(parseInput(wordSchema(LIMITS.idChars), id)));
    if (token === undefined) return { miss: "not_found", id, message: `no token ${JSON.stringify(id)}` };
    return tokenView(token);
  }

  /** The token whose text has this digest, if it is good now. */
  async verify(digest: string): Promise<Token | undefined> {
    const token = await this.#store.tokenByDigest(digest);
    if (token === undefined || token.revoked_at !== null) return undefined;
    return token.expires_at !== null && token.expires_at <= this.#store.now() ? undefined : token;
  }
}
