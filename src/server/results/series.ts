import { z } from "zod";
import { CHANNELS, type Channel } from "../../domain/axes.js";
import { TALLIED, type Tallied } from "../../domain/series.js";
import { STATES } from "../../domain/transitions.js";
import type { SeriesAnswer } from "../../tidings.js";
import { schemaOf } from "./plain.js";
import { count, text, time } from "./words.js";

function byName<Name extends string, Value extends z.ZodType>(names: readonly Name[], value: Value) {
  return Object.fromEntries(names.map((name) => [name, value])) as Record<Name, Value>;
}

const byChannel = <Value extends z.ZodType>(value: Value) => z.strictObject(byName<Channel, Value>(CHANNELS, value));

export const seriesResult = schemaOf<SeriesAnswer>()(
  z.strictObject({
    from: time,
    to: time,
    step_ms: count,
    since: time,
    seq: count,
    points: z.array(
      z.strictObject({
        at: time,
        ...byName<Tallied, typeof count>(TALLIED, count),
        delivered: count,
        by_channel: byChannel(count),
      }),
    ),
    now: z.strictObject({
      depth: byChannel(z.strictObject(byName(STATES, count.exactOptional()))),
      oldest: byChannel(time.nullable()),
      unread: count,
      unacknowledged: count,
      cap: count,
      dead_letters: count,
    }),
    provider: z
      .strictObject({
        name: text,
        model: text,
        calls: count,
        retries: count,
        failures: count,
        last_failure: z.strictObject({ at: time, kind: text, message: text.nullable() }).nullable(),
        last_answer_at: time.nullable(),
        rate_limited_until: time.nullable(),
      })
      .nullable(),
  }),
);
