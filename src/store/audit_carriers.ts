/** Checks that the carriers are what the journal says of them. */
import type { JournalEntry } from "../domain/journal.js";
import { HOST } from "../domain/principal.js";
import type { State } from "../domain/transitions.js";
import { numberInId } from "../platform/ids.js";
import { breathe } from "../platform/timers.js";
import type { CarrierRecord, Store } from "./contract.js";

const PAGE = 250;

type CarrierEntry = Extract<JournalEntry, { type: "carrier" }>;
type Report = (rule: string, subject: string, message: string) => void;

/** Whether this entry is the one that opened its carrier. */
export function opensCarrier(entry: JournalEntry): entry is CarrierEntry {
  return entry.type === "carrier" && numberInId(entry.carrier_id) === entry.seq;
}

/** Answers how many there are: as many as the journal opens. */
export async function auditCarriers(store: Store, report: Report): Promise<number> {
  const { floor_seq } = await store.facts();
  let carriers = 0;
  for (let after = 0; ; ) {
    const page = await store.carriers(after, PAGE);
    for (const carrier of page) {
      carriers += 1;
      after = carrier.seq;
      const say = (message: string) => report("I5", `carrier ${carrier.id}`, message);
      await auditCarrier(store, carrier, floor_seq, say);
    }
    await breathe();
    if (page.length < PAGE) return carriers;
  }
}

async function auditCarrier(
  store: Store,
  carrier: CarrierRecord,
  floor: number,
  say: (message: string) => void,
): Promise<void> {
  const opened = await entryAt(store, carrier.seq);
  if (opened === undefined || !opensCarrier(opened)) return say("no entry of the journal opens it");
  compareOwner(carrier, opened, say);
  const goesOn = carrier.last_seq !== carrier.seq;
  compareItems(carrier, opened, goesOn, say);
  const newest = goesOn ? await entryAt(store, carrier.last_seq) : opened;
  // Of one that is over, the newest entry may be pruned before the one that opened it.
  if (newest === undefined && carrier.last_seq < floor) return;
  if (newest?.type !== "carrier" || newest.carrier_id !== carrier.id)
    return say(`entry ${carrier.last_seq} is not about it`);
  compareOwner(carrier, newest, say);
  if (newest.state !== carrier.state || newest.ended !== carrier.ended)
    say(`is ${stateOf(carrier)}, and the journal says ${stateOf(newest)}`);
  if (goesOn) compareEnd(carrier, newest, say);
}

function stateOf({ state, ended }: Pick<CarrierRecord, "state" | "ended">): string {
  return ended === null ? state : `${state} (${ended})`;
}

function compareOwner(carrier: CarrierRecord, entry: CarrierEntry, say: (message: string) => void): void {
  for (const field of ["user_id", "thread_id", "point"] as const)
    if (carrier[field] !== entry[field])
      say(`its ${field} is ${carrier[field]}, and entry ${entry.seq} says ${entry[field]}`);
}

/** What was collected, with the epochs that fence it. */
function compareItems(
  carrier: CarrierRecord,
  opened: CarrierEntry,
  goesOn: boolean,
  say: (message: string) => void,
): void {
  const collected = opened.changes.filter(({ command }) => command === "collect");
  const told = collected.map(({ notification_id, set }) => {
    const settled = opened.changes.some((one) => one.command === "settle" && one.notification_id === notification_id);
    return `${numberInId(notification_id)} at epoch ${set.lease_epoch}${settled ? " DELIVERED" : ""}`;
  });
  const kept = carrier.items.map(({ number, lease_epoch, state }, index) => {
    // What its end made of it is compared with the entry that ended it.
    const atOnce = goesOn && told[index]?.endsWith("DELIVERED") !== true ? null : state;
    return `${number} at epoch ${lease_epoch}${atOnce === null ? "" : ` ${atOnce}`}`;
  });
  if (kept.join() !== told.join()) say(`holds ${kept.join()}, and the journal says ${told.join()}`);
}

/** What its end made of what was in it. */
function compareEnd(carrier: CarrierRecord, newest: CarrierEntry, say: (message: string) => void): void {
  const reached = new Map<number | undefined, State | undefined>();
  // What is only worded anew, after it was let go, stays where it is.
  for (const { notification_id, path } of newest.changes)
    if (path.length > 0) reached.set(numberInId(notification_id), path.at(-1));
  for (const { number, state } of carrier.items)
    if (reached.has(number) && reached.get(number) !== state)
      say(`left ${number} ${state}, and the journal says ${reached.get(number)}`);
  for (const number of reached.keys())
    if (!carrier.items.some((item) => item.number === number)) say(`ended ${number}, which is not in it`);
}

async function entryAt(store: Store, seq: number): Promise<JournalEntry | undefined> {
  const { entries } = await store.entries(HOST, seq - 1, 1);
  return entries.find((entry) => entry.seq === seq);
}
