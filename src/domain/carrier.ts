/** The conversation entry in which notifications reach an agent. */

/** `open`: collected, and not yet told. `sent`: the agent was told. `void`: it was not, and what was in it is let go. */
export const CARRIER_STATES = ["open", "sent", "void"] as const;
export type CarrierState = (typeof CARRIER_STATES)[number];

/** How the hold on what is in it ended: by its holder, or because its lease ran out or its thread was closed. */
export const CARRIER_ENDS = ["settled", "failed", "lease_expired", "thread_closed"] as const;
export type CarrierEnd = (typeof CARRIER_ENDS)[number];
