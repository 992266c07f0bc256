import { NotFoundError } from "../../domain/errors.js";
import { type TokenId, tokenId } from "../../domain/ids.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import type { Token } from "../../domain/token.js";
import type { NewToken } from "../contract.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";

export function createToken(core: Core, transaction: Transaction, principal: Principal, wanted: NewToken): Token {
  const { user_id, name, scopes, ttl_ms, digest } = wanted;
  if (!mayAct(principal, user_id)) throw new NotFoundError("user", user_id);
  const { at } = transaction;
  const token: Token = {
    id: tokenId(core.ids.random(at)),
    name,
    user_id,
    scopes,
    created_at: at,
    expires_at: ttl_ms === null ? null : at + ttl_ms,
    revoked_at: null,
  };
  journal(core, transaction, token, "created");
  core.tokens.insert(token, digest);
  return token;
}

export function revokeToken(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  id: TokenId,
): Token | undefined {
  const token = core.tokens.byId(id);
  if (token === undefined || !mayAct(principal, token.user_id)) return undefined;
  if (token.revoked_at !== null) return token;
  journal(core, transaction, token, "revoked");
  core.tokens.revoke(id, transaction.at);
  return { ...token, revoked_at: transaction.at };
}

function journal(core: Core, transaction: Transaction, token: Token, action: "created" | "revoked"): void {
  const { id: token_id, scopes, user_id } = token;
  core.journal.append(transaction, user_id, null, { type: "token", action, token_id, scopes, changes: [] });
}
