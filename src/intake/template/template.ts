/**
 * The closed language in which subscribers word their notifications: Jinja's, with bounds. docs/TEMPLATES.md describes it.
 *
 * A template sees plain JSON by own keys, calls nothing but the listed functions and filters, and cannot loop without
 * end, since loops go over values that exist and everything it does costs steps. What it prints from values stays in its
 * field (`output.ts`).
 */
import type { Json } from "../../domain/json.js";
import { TEMPLATE_LIMITS, type TemplateLimits } from "./limits.js";
import { Output } from "./output.js";
import { Run } from "./run.js";
import { scan } from "./scan.js";
import { compileStatements } from "./statement.js";
import { plainValue } from "./value.js";

export { TemplateError } from "./error.js";
export { TEMPLATE_LIMITS, type TemplateLimits } from "./limits.js";

/** Plain JSON values only. `now` is an ISO time. */
export interface TemplateContext {
  readonly event: Json;
  readonly events: readonly Json[];
  readonly count: number;
  readonly subscriber: Json;
  readonly now: string;
}

export interface Template {
  /** Throws a `TemplateError` of the kind `limit` or `runtime`. */
  render(context: TemplateContext): string;
}

const CONTEXT_NAMES = ["event", "events", "count", "subscriber", "now"] as const satisfies (keyof TemplateContext)[];

/** Throws a `TemplateError` with its line: `syntax`, or `limit` if the template itself is too long or too deep. */
export function compileTemplate(source: string, name: string, limits: TemplateLimits = TEMPLATE_LIMITS): Template {
  const execute = compileStatements(scan(source, name), name, limits, CONTEXT_NAMES);
  return {
    render(context) {
      const run = new Run(name, limits, context.now);
      for (const key of CONTEXT_NAMES) run.scope.set(key, plainValue(context[key]));
      const output = new Output(run);
      execute(run, output);
      return output.end();
    },
  };
}
