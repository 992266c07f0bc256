import { LIMITS } from "../../domain/limits.js";

export interface TemplateLimits {
  /** Every node, loop turn, item and piece of text that is read or made costs one or more, by what it takes. */
  readonly steps: number;
  /** Levels of blocks, expressions and values. */
  readonly depth: number;
  readonly outputChars: number;
}

/** A render within them takes a few milliseconds at most. */
export const TEMPLATE_LIMITS: TemplateLimits = { steps: 50_000, depth: 64, outputChars: LIMITS.contentChars };

/** Bounds of the source. A tag is handed to a lexer whose cost grows with the square of its blanks. */
export const SOURCE_LIMITS = { chars: 32_768, tagChars: 2_048, tagTokens: 1_000 } as const;

/** Longest text that an expression may make on the way, as a multiple of the output. */
export const TEXT_FACTOR = 4;
