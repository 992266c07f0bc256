/** How the schemas of answers are tied to the types of what is answered. */
import type { z } from "zod";
import type { JsonObject } from "../../domain/json.js";

/** A type as the wire has it: ids are texts, lists are lists, and nothing is a method. */
export type Plain<T> = T extends string
  ? // Of ids, there are as many as texts.
    Record<never, 1> extends Record<T, 1>
    ? string
    : T
  : T extends number | boolean | null | undefined
    ? T
    : T extends readonly (infer One)[]
      ? Plain<One>[]
      : JsonObject extends T
        ? T
        : { -readonly [Key in keyof T as T[Key] extends (...args: never[]) => unknown ? never : Key]: Plain<T[Key]> };

type Same<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false;

/** What must be read-only of nothing may be so. */
export type Answered<T> = T extends readonly (infer One)[]
  ? readonly Answered<One>[]
  : T extends object
    ? { readonly [Key in keyof T]: Answered<T[Key]> }
    : T;

/** The schema of a type: it does not compile unless what passes it is of the type, and what is of the type passes. */
export function schemaOf<View>() {
  return <Schema extends z.ZodType>(
    schema: Same<z.output<Schema>, Plain<View>> extends true
      ? Schema
      : { not_the_same: [z.output<Schema>, Plain<View>] },
  ): Schema => schema as Schema;
}
