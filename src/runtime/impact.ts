/** Whether anybody but the agent notices. */
export type Impact = "internal" | "external";
