/** Why a template could not be read (`syntax`), ran over a bound (`limit`), or met a value it cannot use (`runtime`). */
export type TemplateErrorKind = "syntax" | "limit" | "runtime";

/** A template that cannot be compiled or rendered. The event behind it is not touched by that. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
  readonly kind: TemplateErrorKind;
  /** The template's own name, as `compileTemplate` was given it. */
  readonly template: string;
  /** The line on which the tag at fault begins, from 1; null if no single line is at fault. */
  readonly line: number | null;
  readonly reason: string;

  constructor(kind: TemplateErrorKind, template: string, line: number | null, reason: string) {
    super(`${template}${line === null ? "" : `:${line}`}: ${reason}`);
    this.kind = kind;
    this.template = template;
    this.line = line;
    this.reason = reason;
  }
}
