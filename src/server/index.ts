export { SERVER_LIMITS, type ServerLimits } from "./limits.js";
export { type ServeOptions, TidingsServer } from "./server.js";
