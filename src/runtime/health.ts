/** How calls of the model have gone since the agent was started. Kept in memory alone. */
import { cleanText } from "../domain/clean.js";
import { ModelError, type ModelErrorKind } from "../providers/model.js";

const MESSAGE_CHARS = 500;

export interface Failure {
  readonly at: number;
  /** `unknown`: it was no error of the provider's. */
  readonly kind: ModelErrorKind | "unknown";
  readonly message: string;
}

export class ProviderHealth {
  failures = 0;
  last_failure: Failure | null = null;
  last_answer_at: number | null = null;
  /** Until when the provider asked to be left alone, where it has said so. */
  rate_limited_until: number | null = null;

  /** An answer came whole. */
  answered(at: number): void {
    this.last_answer_at = at;
    this.rate_limited_until = null;
  }

  /** It did not; whoever cut it off themselves has not failed. */
  failed(error: unknown, at: number): void {
    const kind = error instanceof ModelError ? error.kind : "unknown";
    if (kind === "aborted") return;
    const message = error instanceof Error ? error.message : String(error);
    this.failures += 1;
    this.last_failure = { at, kind, message: cleanText(message).replace(/\s+/g, " ").slice(0, MESSAGE_CHARS) };
    if (error instanceof ModelError && error.rate_limited && error.retry_after_ms !== undefined)
      this.rate_limited_until = at + error.retry_after_ms;
  }
}
