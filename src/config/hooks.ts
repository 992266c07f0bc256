/** `[hooks.NAME]`: who may report by a signed request, and what event it becomes. */
import { z } from "zod";
import { eventTypeSchema } from "../domain/event.js";
import { LOCAL_USER } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { wordSchema } from "../domain/parse.js";
import { SEVERITIES } from "../domain/severity.js";
import { HookText } from "./hook_text.js";

/** How the request is signed: as Standard Webhooks says, or as GitHub does. */
export const HOOK_SCHEMES = ["standard", "github"] as const;
export type HookScheme = (typeof HOOK_SCHEMES)[number];

export interface HookConfig {
  readonly scheme: HookScheme;
  /** The environment variables that hold the secret; of several, each is good: so that one can take another's place. */
  readonly secret_env: readonly string[];
  /** How far the time of a request may be from ours; null where the scheme has none. */
  readonly tolerance_secs: number | null;
  /** Whose events they are. No text from outside says so. */
  readonly user_id: string;
  /** Whether they may be of priority critical. */
  readonly critical: boolean;
  readonly type: HookText;
  readonly source: HookText;
  readonly severity: HookText | null;
  readonly subject: HookText | null;
  readonly thread_id: HookText | null;
  readonly dedupe_key: HookText | null;
  readonly timestamp: HookText | null;
  /** Null: the whole body. */
  readonly payload: readonly (readonly [string, HookText | number | boolean])[] | null;
}

export type Hooks = ReadonlyMap<string, HookConfig>;

const TOLERANCE_SECS = 300;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const HOOKS_MAX = 100;
const PAYLOAD_KEYS_MAX = 100;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

const textSchema = z.string().transform((text, context): HookText => {
  const parsed = HookText.parse(text);
  if (parsed instanceof HookText) return parsed;
  context.addIssue({ code: "custom", message: parsed.reason });
  return z.NEVER;
});

const variableSchema = z.string().regex(VARIABLE, "must be the name of an environment variable, not the secret itself");

const typeSchema = textSchema.refine(
  (type) => !type.isConstant || eventTypeSchema.safeParse(type.text).success,
  "must be an event type like github.push, or become one, like github.{header.x-github-event}",
);

const sourceSchema = textSchema
  .refine((source) => source.text !== "", "must not be empty")
  .refine(
    (source) => !source.readsHeaders,
    "must not be made of a header: no signature covers those, and a replay would be news under another source",
  );

const severitySchema = textSchema.refine(
  (severity) => !severity.isConstant || (SEVERITIES as readonly string[]).includes(severity.text),
  `must be one of ${SEVERITIES.join(", ")}, or a reference like {body.severity}`,
);

const userSchema = wordSchema(LIMITS.idChars).refine(
  (user) => !/[{}]/.test(user),
  "must be a user's name as it is: nothing that comes from outside says whose it is",
);

const payloadSchema = z
  .record(
    z.string(),
    z.union([textSchema, z.number(), z.boolean()], { error: "must be text, a number, true or false" }),
  )
  .refine((payload) => Object.keys(payload).length <= PAYLOAD_KEYS_MAX, `has more than ${PAYLOAD_KEYS_MAX} keys`);

export const hookSchema = z.strictObject({
  scheme: z.enum(HOOK_SCHEMES),
  secret_env: z.union([variableSchema, z.array(variableSchema).min(1, "must name one").max(10)], {
    error: ({ input }) =>
      input === undefined ? "is required" : "must be the name of an environment variable, or a list of some",
  }),
  tolerance_secs: z.int().min(1).max(3_600).optional(),
  user_id: userSchema.optional(),
  critical: z.boolean().optional(),
  type: typeSchema.optional(),
  source: sourceSchema.optional(),
  severity: severitySchema.optional(),
  subject: textSchema.optional(),
  thread_id: textSchema.optional(),
  dedupe_key: textSchema.optional(),
  timestamp: textSchema.optional(),
  payload: payloadSchema.optional(),
});

export const hooksSchema = z.record(z.string(), hookSchema).superRefine((hooks, context) => {
  if (Object.keys(hooks).length > HOOKS_MAX)
    context.addIssue({ code: "custom", message: `has more than ${HOOKS_MAX} hooks` });
  for (const [name, { scheme, tolerance_secs }] of Object.entries(hooks)) {
    if (!NAME.test(name))
      context.addIssue({ code: "custom", path: [name], message: "must be named by 1 to 64 letters, digits, _ and -" });
    if (scheme === "github" && tolerance_secs !== undefined)
      context.addIssue({
        code: "custom",
        path: [name, "tolerance_secs"],
        message: "has no effect: what GitHub signs has no time. The same body is taken once",
      });
  }
});

const DEFAULT_TYPE: Record<HookScheme, (name: string) => string> = {
  standard: (name) => `webhook.${name}.{body.type}`,
  github: () => "github.{header.x-github-event}",
};

export function hooksOf(tables: z.output<typeof hooksSchema> = {}): Hooks {
  return new Map(
    Object.entries(tables).map(([name, table]): [string, HookConfig] => [
      name,
      {
        scheme: table.scheme,
        secret_env: [table.secret_env].flat(),
        tolerance_secs: table.scheme === "github" ? null : (table.tolerance_secs ?? TOLERANCE_SECS),
        user_id: table.user_id ?? LOCAL_USER,
        critical: table.critical ?? false,
        type: table.type ?? preset(DEFAULT_TYPE[table.scheme](name)),
        source: table.source ?? preset(name),
        severity: table.severity ?? null,
        subject: table.subject ?? null,
        thread_id: table.thread_id ?? null,
        dedupe_key: table.dedupe_key ?? null,
        timestamp: table.timestamp ?? null,
        payload: table.payload === undefined ? null : Object.entries(table.payload),
      },
    ]),
  );
}

function preset(text: string): HookText {
  const parsed = HookText.parse(text);
  if (parsed instanceof HookText) return parsed;
  throw new TypeError(parsed.reason);
}

/** Every key that says something, in full, with its value as text. */
export function* hookValues(hooks: Hooks): Generator<[string, string]> {
  for (const [name, hook] of hooks)
    for (const [key, value] of Object.entries(hook))
      if (value !== null) yield [`hooks.${name}.${key}`, JSON.stringify(value)];
}
