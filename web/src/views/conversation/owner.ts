/** Whose conversation is shown: an operator may look into another user's, and changes nothing in it. */
import { createContext, useContext } from "react";

const OwnerContext = createContext<string | null>(null);
export const OwnerProvider = OwnerContext.Provider;

/** The user whose it is; null: one's own. */
export function useOwner(): string | null {
  return useContext(OwnerContext);
}
