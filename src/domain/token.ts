/** Who may do what over the wire: a token stands for a user and has scopes. */
import type { TokenId, UserId } from "./ids.js";
import { isoTime } from "./time.js";

/**
 * - `ingest`: report events and notify
 * - `critical`: with `ingest`, at priority critical; without it such a notification is lowered to high, and marked
 * - `directive`: with `ingest`, give an instruction to the agent
 * - `read`: see what is the user's, and be told of it as it changes
 * - `ack`: acknowledge, and send dead letters again
 * - `agent`: collect and settle as an agent
 * - `admin`: all of the above for every user, tokens and upkeep
 */
export const SCOPES = ["ingest", "critical", "directive", "read", "ack", "agent", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** As the store keeps it; its text is nowhere, only a digest of it. */
export interface Token {
  readonly id: TokenId;
  readonly name: string | null;
  readonly user_id: UserId;
  readonly scopes: readonly Scope[];
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
}

/** As the border shows it. */
export interface TokenView {
  id: TokenId;
  name: string | null;
  user_id: UserId;
  scopes: Scope[];
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
}

export function tokenView(token: Token): TokenView {
  const { id, name, user_id, scopes, created_at, expires_at, revoked_at } = token;
  return {
    id,
    name,
    user_id,
    scopes: [...scopes],
    created_at: isoTime(created_at),
    expires_at: expires_at === null ? null : isoTime(expires_at),
    revoked_at: revoked_at === null ? null : isoTime(revoked_at),
  };
}

/** Admin's holds every scope. */
export function hasScope(scopes: readonly Scope[], wanted: Scope): boolean {
  return scopes.includes(wanted) || scopes.includes("admin");
}

/** What the sender of an event or a notification may ask for beyond an ordinary one. */
export interface Grants {
  readonly critical: boolean;
  readonly directive: boolean;
}

/** Of whoever runs in the same process. */
export const ALL_GRANTS: Grants = { critical: true, directive: true };

export function grantsOf(scopes: readonly Scope[]): Grants {
  return { critical: hasScope(scopes, "critical"), directive: hasScope(scopes, "directive") };
}
