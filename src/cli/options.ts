/** How options are described, and the types of what they become. */
import type { JsonObject } from "../domain/json.js";

interface Described {
  readonly summary: string;
  /** What holds without it, for the help. */
  readonly preset?: string;
  /** The environment variable that it wins over. */
  readonly env?: string;
}

/** How an option is written, and what it becomes. */
export type Option = Described &
  (
    | { readonly kind: "flag"; readonly short?: string }
    | { readonly kind: "text"; readonly value: string }
    | { readonly kind: "choice"; readonly value: string; readonly choices: readonly string[] }
    | { readonly kind: "integer"; readonly value: string; readonly min: number; readonly max?: number }
    /** A number and a unit: `30d`; in milliseconds. */
    | { readonly kind: "duration"; readonly value: string }
    | { readonly kind: "json"; readonly value: string }
  );

/** By their names, without the dashes. */
export type Options = Readonly<Record<string, Option>>;

type ValueOf<O extends Option> = O extends { kind: "flag" }
  ? boolean
  : O extends { kind: "choice"; choices: readonly (infer Choice)[] }
    ? Choice | undefined
    : O extends { kind: "integer" | "duration" }
      ? number | undefined
      : O extends { kind: "json" }
        ? JsonObject | undefined
        : string | undefined;

export type Values<O extends Options> = { readonly [Name in keyof O]: ValueOf<O[Name]> };
