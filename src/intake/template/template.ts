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
import { Run, Scope } from "./run.js";
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
  /**
   * Throws a `TemplateError` of the kind `limit` or `runtime`. `plain`: the caller has the context from parsed JSON, or made it
   * of such, so that nothing in it is a getter; else every single value is looked at before it is taken.
   */
  render(context: TemplateContext, plain?: boolean): string;
}

const CONTEXT_NAMES = ["event", "events", "count", "subscriber", "now"] as const satisfies (keyof TemplateContext)[];
type ContextSlots = [event: number, events: number, count: number, subscriber: number, now: number];

/** Throws a `TemplateError` with its line: `syntax`, or `limit` if the template itself is too long or too deep. */
export function compileTemplate(source: string, name: string, limits: TemplateLimits = TEMPLATE_LIMITS): Template {
  const scope = new Scope(null);
  const [event, events, count, subscriber, now] = CONTEXT_NAMES.map((key) => scope.give(key)) as ContextSlots;
  const execute = compileStatements(scan(source, name), name, limits, CONTEXT_NAMES, scope);
  const run = new Run(name, limits, scope.size);
  const output = new Output(run);
  const { slots } = run;
  return {
    render(context, plain = false) {
      run.begin(context.now, plain);
      slots[event] = plainValue(context.event);
      slots[events] = plainValue(context.events);
      slots[count] = plainValue(context.count);
      slots[subscriber] = plainValue(context.subscriber);
      slots[now] = plainValue(context.now);
      try {
        execute(run, output);
        return output.end();
      } finally {
        run.clear();
        output.clear();
      }
    },
  };
}
