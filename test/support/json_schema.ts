/** As much of JSON Schema as `/openrpc.json` uses: whether a value is of a form, and values that are, and are not. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: JsonSchema;
  readonly contains?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
}

const KNOWN = new Set([
  ...["type", "enum", "const", "anyOf", "properties", "required", "additionalProperties", "items", "minItems"],
  ...["maxItems", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum"],
  ...["contains", "default", "$schema", "propertyNames", "description"],
]);

/** Throws at a word that it does not know: nothing of a schema is passed over. */
export function isOfForm(value: unknown, schema: JsonSchema): boolean {
  for (const word of Object.keys(schema)) if (!KNOWN.has(word)) throw new Error(`the schema says ${word}`);
  if (schema.anyOf !== undefined) return schema.anyOf.some((one) => isOfForm(value, one));
  if (schema.enum !== undefined && !schema.enum.includes(value)) return false;
  if ("const" in schema && schema.const !== value) return false;
  const { type } = schema;
  if (Array.isArray(type)) return type.some((one) => isOfForm(value, { ...schema, type: one }));
  switch (type) {
    case undefined:
      return true;
    case "string":
      return isText(value, schema);
    case "boolean":
      return typeof value === "boolean";
    case "integer":
      return Number.isInteger(value) && isWithin(value as number, schema);
    case "number":
      return typeof value === "number" && isWithin(value, schema);
    case "array":
      return Array.isArray(value) && isList(value, schema);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value) && isObject(value, schema);
    case "null":
      return value === null;
    default:
      throw new Error(`the schema says ${type}`);
  }
}

function isText(value: unknown, { minLength = 0, maxLength = Infinity, pattern, format }: JsonSchema): boolean {
  if (typeof value !== "string" || value.length < minLength || value.length > maxLength) return false;
  if (format === "date-time" && Number.isNaN(Date.parse(value))) return false;
  return pattern === undefined || new RegExp(pattern).test(value);
}

function isWithin(value: number, { minimum = -Infinity, maximum = Infinity, exclusiveMinimum }: JsonSchema): boolean {
  return value >= minimum && value <= maximum && (exclusiveMinimum === undefined || value > exclusiveMinimum);
}

function isList(value: readonly unknown[], schema: JsonSchema): boolean {
  const { items = {}, contains, minItems = 0, maxItems = Infinity } = schema;
  if (contains !== undefined && !value.some((one) => isOfForm(one, { type: "object", ...contains }))) return false;
  return value.length >= minItems && value.length <= maxItems && value.every((one) => isOfForm(one, items));
}

function isObject(value: object, { properties = {}, required = [], additionalProperties }: JsonSchema): boolean {
  if (required.some((name) => !Object.hasOwn(value, name))) return false;
  return Object.entries(value).every(([name, one]) => {
    const schema = properties[name];
    return schema === undefined ? additionalProperties !== false : isOfForm(one, schema);
  });
}

/** The plainest value of a form. */
export function plainest(schema: JsonSchema): unknown {
  if (schema.anyOf !== undefined) return plainest(schema.anyOf[0] ?? {});
  if ("const" in schema) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  switch (schema.type) {
    case "string":
      return schema.format === "date-time" ? "2026-01-01T00:00:00Z" : schema.pattern === undefined ? "word" : "cli.a.b";
    case "boolean":
      return false;
    case "integer":
    case "number":
      return schema.minimum ?? 1;
    case "array":
      return Array.from({ length: schema.minItems ?? 0 }, () => plainest(schema.items ?? {}));
    default: {
      const { properties = {}, required = [] } = schema;
      return Object.fromEntries(required.map((name) => [name, plainest(properties[name] ?? {})]));
    }
  }
}

/** Values around the edges of a form, and of other forms. */
export function around({ maxLength, maximum, minimum, anyOf = [] }: JsonSchema): unknown[] {
  return [
    ...[null, true, "", " ", "a\u0007b", "word", 7.5, -1, {}, [], [7]],
    ...(maxLength === undefined ? [] : ["x".repeat(maxLength + 1)]),
    ...(maximum === undefined || maximum > 1e12 ? [] : [maximum + 1]),
    ...(minimum === undefined ? [] : [minimum, minimum - 1]),
    ...anyOf.map(plainest),
  ];
}
