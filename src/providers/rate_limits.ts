/** The limits that a provider sets to calls, from the headers of its responses. */
import { systemClock } from "../platform/clock.js";
import type { RateLimit } from "./model.js";

/** As OpenAI names them, and the servers that are compatible with it. */
const OPENAI = ["requests", "tokens"] as const;
const ANTHROPIC = ["requests", "tokens", "input-tokens", "output-tokens"] as const;

export function rateLimitsOf(headers: Headers): RateLimit[] {
  const now = systemClock.wall();
  const found = [
    ...OPENAI.map((what) => limitOf(headers, what, (part) => `x-ratelimit-${part}-${what}`, now)),
    ...ANTHROPIC.map((what) => limitOf(headers, what, (part) => `anthropic-ratelimit-${what}-${part}`, now)),
  ];
  return found.filter((limit) => limit !== null);
}

type Part = "limit" | "remaining" | "reset";

function limitOf(headers: Headers, what: string, name: (part: Part) => string, now: number): RateLimit | null {
  const limit = count(headers.get(name("limit")));
  const remaining = count(headers.get(name("remaining")));
  if (limit === null || remaining === null) return null;
  return { what: what.replace("-", " "), limit, remaining, reset_at: resetAt(headers.get(name("reset")), now) };
}

function count(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text.trim()) ? Number(text) : null;
}

const UNITS_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
const PIECES = /^(\d{1,9}(\.\d{1,9})?(d|h|m|s|ms))+$/;

/** A moment, or a time from now: `2026-01-03T15:30:00Z`, `6m0s`, `20ms`, and seconds without a unit. */
function resetAt(text: string | null, now: number): number | null {
  const given = text?.trim() ?? "";
  if (/^\d{1,9}(\.\d{1,9})?$/.test(given)) return moment(now + Number(given) * 1_000);
  if (PIECES.test(given)) {
    let ms = 0;
    for (const [, amount, , unit] of given.matchAll(/(\d+(\.\d+)?)(ms|d|h|m|s)/g))
      ms += Number(amount) * (UNITS_MS[unit ?? ""] ?? 0);
    return moment(now + ms);
  }
  return moment(Date.parse(given));
}

/** Null for what no calendar has. */
function moment(ms: number): number | null {
  return Number.isNaN(new Date(ms).getTime()) ? null : Math.ceil(ms);
}
