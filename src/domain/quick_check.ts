import { z } from "zod";
import type { JsonObject } from "./json.js";

export type FieldCheck = (value: unknown) => boolean;

/**
 * Whether a schema would take an object, told without asking it: it takes all that passes this, and is asked about the rest.
 * Undefined for a schema that is more than fields with known checks.
 */
export function quickCheck(
  schema: z.ZodType,
  known: ReadonlyMap<unknown, FieldCheck>,
): ((value: JsonObject) => boolean) | undefined {
  if (!(schema instanceof z.ZodObject) || (schema.def.checks?.length ?? 0) > 0) return undefined;
  const fields: { readonly name: string; readonly isFit: FieldCheck }[] = [];
  for (const [name, field] of Object.entries(schema.shape)) {
    const isFit = field instanceof z.ZodOptional ? optional(known.get(field.unwrap())) : known.get(field);
    if (isFit === undefined) return undefined;
    fields.push({ name, isFit });
  }
  return (value) => {
    for (const { name, isFit } of fields) if (!isFit(value[name])) return false;
    return true;
  };
}

function optional(isFit: FieldCheck | undefined): FieldCheck | undefined {
  return isFit === undefined ? undefined : (value) => value === undefined || isFit(value);
}
