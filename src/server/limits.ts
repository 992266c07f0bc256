/** What holds for a server where nobody says otherwise. */
export { checkLimits, SERVER_LIMITS, type ServerLimits } from "../config/server_limits.js";

export const DEFAULT_PORT = 4747;
/** This machine only. */
export const DEFAULT_HOST = "127.0.0.1";
