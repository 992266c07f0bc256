export { BLOCK_EXPLANATION } from "../agent/block/block.js";
export { knownDowngrades } from "./downgrades.js";
export {
  type AssistantMessage,
  type Block,
  type BlockForm,
  type Message,
  type Model,
  ModelError,
  type ModelErrorKind,
  type ModelEvent,
  type ModelReport,
  type ModelRequest,
  type Original,
  type RateLimit,
  type ToolCall,
  type ToolDeclaration,
  type ToolResult,
  type ToolsMessage,
  type Usage,
  type UserMessage,
} from "./model.js";
export { type Environment, type ModelOptions, openModel } from "./open.js";
