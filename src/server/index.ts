export { SERVER_LIMITS, type ServerLimits } from "./limits.js";
export { jsonLogLine, LOG_LEVELS, Log, type LogFields, type LogLevel, type LogLine, type LogOptions } from "./log.js";
export { type ServeOptions, TidingsServer } from "./server.js";
