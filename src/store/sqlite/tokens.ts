import type { TokenId, UserId } from "../../domain/ids.js";
import type { Principal } from "../../domain/principal.js";
import type { Scope, Token } from "../../domain/token.js";
import type { Connection, Statement } from "./connection.js";

interface TokenRow {
  id: TokenId;
  name: string | null;
  user_id: UserId;
  scopes: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
}

const COLUMNS = "id, name, user_id, scopes, created_at, expires_at, revoked_at";

/** Tokens, found by the digest of their text. */
export class Tokens {
  readonly #insert: Statement;
  readonly #revoke: Statement;
  readonly #one: Statement;
  readonly #byDigest: Statement;
  readonly #page: Statement;
  readonly #pageOfUser: Statement;

  constructor(connection: Connection) {
    this.#insert = connection.prepare(`INSERT INTO tokens (${COLUMNS}, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
    this.#revoke = connection.prepare("UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL");
    this.#one = connection.prepare(`SELECT ${COLUMNS} FROM tokens WHERE id = ?`);
    this.#byDigest = connection.prepare(`SELECT ${COLUMNS} FROM tokens WHERE digest = ?`);
    this.#page = connection.prepare(`SELECT ${COLUMNS} FROM tokens WHERE id > ? ORDER BY id LIMIT ?`);
    this.#pageOfUser = connection.prepare(
      `SELECT ${COLUMNS} FROM tokens WHERE user_id = ? AND id > ? ORDER BY id LIMIT ?`,
    );
  }

  insert(token: Token, digest: string): void {
    const { id, name, user_id, scopes, created_at, expires_at, revoked_at } = token;
    this.#insert.run(id, name, user_id, scopes.join(","), created_at, expires_at, revoked_at, digest);
  }

  revoke(id: TokenId, at: number): void {
    this.#revoke.run(at, id);
  }

  byId(id: TokenId): Token | undefined {
    return tokenOf(this.#one.get(id));
  }

  byDigest(digest: string): Token | undefined {
    return tokenOf(this.#byDigest.get(digest));
  }

  page(principal: Principal, after: TokenId | null, limit: number): Token[] {
    const rows =
      principal.kind === "host"
        ? this.#page.all(after ?? "", limit)
        : this.#pageOfUser.all(principal.user_id, after ?? "", limit);
    return rows.flatMap((row) => tokenOf(row) ?? []);
  }
}

function tokenOf(row: unknown): Token | undefined {
  if (row === undefined) return undefined;
  const { scopes, ...rest } = row as TokenRow;
  return { ...rest, scopes: scopes.split(",") as Scope[] };
}
