import { z } from "zod";
import type { JsonObject } from "../../domain/json.js";

export const id = z.string().min(1);
export const text = z.string();
export const time = z.iso.datetime();
export const count = z.int().min(0);

/** Any JSON object. */
export const jsonObject = z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>;
