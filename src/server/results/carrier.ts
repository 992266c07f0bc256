import { z } from "zod";
import type { CarriedView, Carrier, CarrierEndView, LeaseView, SettleAnswer } from "../../agent/carrier.js";
import { CARRIER_STATES } from "../../domain/carrier.js";
import { POINTS } from "../../domain/points.js";
import { INJECTION_POINTS, PRIORITIES } from "../../domain/priority.js";
import { SEVERITIES } from "../../domain/severity.js";
import { STATES } from "../../domain/transitions.js";
import { schemaOf } from "./plain.js";
import { count, id, text, time } from "./words.js";

const lease = schemaOf<LeaseView>()(z.strictObject({ id, owner: text, expires_at: time }));

const carried = schemaOf<CarriedView>()(
  z.strictObject({
    id,
    revision: z.int().min(1),
    count: z.int().min(1),
    kind: text,
    severity: z.enum(SEVERITIES),
    priority: z.enum(PRIORITIES),
    inject_at: z.enum(INJECTION_POINTS),
    content: text,
    form: z.enum(["full", "line"]),
    subscriber_id: id,
    must_narrate: z.boolean(),
    degraded: text.nullable(),
    directive: text.nullable(),
    created_at: time,
    event_ids: z.array(id),
  }),
);

const carrier = schemaOf<Carrier>()(
  z.strictObject({
    id,
    thread_id: id,
    point: z.enum(POINTS),
    state: z.enum(CARRIER_STATES),
    lease: lease.nullable(),
    notifications: z.array(carried),
    more: count,
    block: text,
  }),
);

export const collectResult = z.strictObject({ carrier: carrier.nullable() });
export const renewResult = z.strictObject({ lease });

export const carrierEndResult = schemaOf<CarrierEndView>()(
  z.strictObject({
    carrier_id: id,
    state: z.enum(CARRIER_STATES),
    notifications: z.array(z.strictObject({ id, state: z.enum(STATES), lost: z.literal(true).exactOptional() })),
  }),
);

export const settleResult = schemaOf<SettleAnswer>()(carrierEndResult.extend({ refused_ids: z.array(text) }));
