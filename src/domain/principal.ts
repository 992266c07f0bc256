import type { UserId } from "./ids.js";

/**
 * On whose behalf an operation runs. `host` is the process itself and sees every user; a `user` principal sees
 * and changes only what is that user's, and what is not answers as if it did not exist.
 */
export type Principal = { readonly kind: "host" } | { readonly kind: "user"; readonly user_id: UserId };

export const HOST: Principal = { kind: "host" };

export function userPrincipal(user_id: UserId): Principal {
  return { kind: "user", user_id };
}

export function mayAct(principal: Principal, owner: UserId): boolean {
  return principal.kind === "host" || principal.user_id === owner;
}
