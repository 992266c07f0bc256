/** The way of an event or a notification, in words and as the journal has it, from its entries. */
import { type Axes, type Channel, channelOf, mustNarrate } from "../domain/axes.js";
import type { Event } from "../domain/event.js";
import type { EventId, NotificationId, TurnId } from "../domain/ids.js";
import { type Change, type JournalEntry, type MatchOutcome, type MatchRecord, matchesOf } from "../domain/journal.js";
import type { NotificationView, Reason } from "../domain/notification.js";
import type { Principal } from "../domain/principal.js";
import { isoTime } from "../domain/time.js";
import { viewOf } from "../domain/view.js";
import type { Store } from "../store/contract.js";
import { carrierFacts, changeFacts, type Facts, line, type StoryLine } from "./story.js";

export type { StoryLine } from "./story.js";

export interface Explanation {
  id: string;
  kind: "event" | "notification";
  summary: string;
  story: StoryLine[];
  event?: Event;
  /** The notification itself, or those that came of the event. */
  notifications: NotificationView[];
}

export async function explain(store: Store, principal: Principal, id: string): Promise<Explanation | undefined> {
  const stored = await store.get(principal, id as NotificationId);
  if (stored !== undefined) {
    const story = await notificationStory(store, principal, stored.delivery.id);
    const view = viewOf(stored);
    return { id, kind: "notification", summary: summaryOf(view), story, notifications: [view] };
  }
  const entry = await store.eventEntry(principal, id as EventId);
  if (entry === undefined || entry.type !== "event") return undefined;
  return explainEvent(store, principal, entry);
}

async function explainEvent(
  store: Store,
  principal: Principal,
  entry: Extract<JournalEntry, { type: "event" }>,
): Promise<Explanation> {
  const { event } = entry;
  const matches = matchesOf(entry.changes);
  const notifications: NotificationView[] = [];
  const story: StoryLine[] = [line(entry, "event", eventText(event), { event_id: event.id })];
  if (matches.length === 0)
    story.push(line(entry, "match", "No subscriber matched it; it is kept in the journal and told to nobody."));
  for (const match of matches) {
    const stored = await store.get(principal, match.notification_id);
    const text = `Subscriber ${match.subscriber_id}: ${MATCHED[match.outcome]} ${match.notification_id}${keptBackBy(entry, match)}.`;
    story.push(line(entry, "match", text, match));
    if (stored === undefined) continue;
    notifications.push(viewOf(stored));
    const further = await notificationStory(store, principal, match.notification_id);
    story.push(...further.filter((one) => one.seq > entry.seq));
  }
  const outcome =
    matches.length === 0 ? "unmatched" : matches.map((match) => `${match.subscriber_id} ${match.outcome}`).join(", ");
  return {
    id: event.id,
    kind: "event",
    summary: `event ${event.type} from ${event.source}: ${outcome}`,
    story,
    event,
    notifications,
  };
}

const MATCHED: Record<MatchOutcome, string> = {
  queued: "made the notification",
  batched: "added it to a batch for",
  merged: "merged it into",
  filtered: "kept it back by its severity filter, as",
  muted: "is switched off for it; kept back, as",
};

/** Which rule kept it back, if one has. */
function keptBackBy({ changes }: JournalEntry, { outcome, notification_id }: MatchRecord): string {
  if (outcome !== "filtered" && outcome !== "muted") return "";
  const change = changes.find((one) => one.notification_id === notification_id);
  return change === undefined ? "" : noteOf(change);
}

async function notificationStory(store: Store, principal: Principal, id: NotificationId): Promise<StoryLine[]> {
  const entries = (await store.story(principal, id)) ?? [];
  const so: SoFar = { turn_id: null, isNarrated: false };
  const story = entries.flatMap((entry) => {
    learn(so, entry, id);
    return tellEntry(entry, id, so);
  });
  const redriven = await store.redrivenAs(principal, id);
  const last = entries.at(-1);
  if (redriven !== null && last !== undefined)
    story.push(line(last, "redriven", `Redriven later, as ${redriven}.`, { notification_id: redriven }));
  return story;
}

/** What a later line needs of the earlier ones. */
interface SoFar {
  /** The turn of a hosted agent that was told it last. */
  turn_id: TurnId | null;
  /** The agent is to tell the user, and to acknowledge. */
  isNarrated: boolean;
}

function learn(so: SoFar, entry: JournalEntry, id: NotificationId): void {
  if (entry.type === "carrier") so.turn_id = entry.turn_id;
  for (const { notification_id, notification, set, command } of entry.changes) {
    if (notification_id !== id) continue;
    const axes = set.effective ?? notification?.axes;
    if (axes !== undefined) so.isNarrated = mustNarrate(axes);
    if (command === "collect" && entry.type !== "carrier") so.turn_id = null;
  }
}

/** Whether it is settled since the agent said so itself, and not because it was told. */
function isAcknowledged({ command }: Change, entry: JournalEntry, { turn_id, isNarrated }: SoFar): boolean {
  return command === "settle" && (isNarrated || (turn_id !== null && entry.type === "delivery"));
}

function tellEntry(entry: JournalEntry, id: NotificationId, so: SoFar): StoryLine[] {
  const lines: StoryLine[] = [];
  if (entry.type === "event") lines.push(line(entry, "event", eventText(entry.event), { event_id: entry.event.id }));
  if (entry.type === "thread" && entry.state !== "open")
    lines.push(line(entry, "thread", `Thread ${entry.thread_id} was closed.`));
  if (entry.type === "observation")
    lines.push(
      line(entry, "observation", `The agent saw ${entry.subject} (generation ${entry.generation}) by itself.`),
    );
  if (entry.type === "carrier") lines.push(line(entry, "carrier", carrierText(entry), carrierFacts(entry)));
  for (const change of entry.changes) {
    if (change.notification_id !== id) continue;
    const facts = changeFacts(change, entry);
    if (isAcknowledged(change, entry, so)) facts.acknowledged = { turn_id: so.turn_id };
    lines.push(line(entry, change.command, tellChange(change, entry, facts), facts));
  }
  return lines;
}

function eventText(event: Event): string {
  const thread = event.thread_id === null ? "" : `, thread ${event.thread_id}`;
  return `Event ${event.id}: ${event.type} from ${event.source}, severity ${event.severity}, for user ${event.user_id}${thread}.`;
}

/** What became of a carrier; the changes that follow tell what became of what was in it. */
function carrierText({ carrier_id, state, point, ended, note }: Extract<JournalEntry, { type: "carrier" }>): string {
  const name = `Carrier ${carrier_id} (${point})`;
  switch (ended) {
    case null:
      return state === "open" ? `${name} was opened for the agent.` : `${name} was opened and sent to the agent.`;
    case "settled":
      return `${name} was sent: the agent was told.`;
    case "failed":
      return `${name} is void: the agent was not told${note === null ? "" : ` (${note})`}.`;
    case "lease_expired":
      return `${name} is ${state === "void" ? "void" : "over"}: its lease ran out.`;
    case "thread_closed":
      return `${name} is ${state === "void" ? "void" : "over"}: its thread was closed.`;
  }
}

function tellChange(change: Change, entry: JournalEntry, facts: Facts): string {
  const path = change.path.length === 0 ? "" : ` [${change.path.join(", ")}]`;
  return `${sentence(change, entry, facts)}${path}`;
}

function sentence(change: Change, entry: JournalEntry, { acknowledged }: Facts): string {
  const { set } = change;
  switch (change.command) {
    case "create":
      return created(change);
    case "merge": {
      if (set.rows !== undefined)
        return `Event ${change.event_id} is a further row of the batch: ${set.rows} rows now${noteOf(change)}.`;
      const revised = set.revision === undefined ? "the text stays" : `the text changed, revision ${set.revision}`;
      return `Event ${change.event_id} came with the same key and was merged: ${set.count} times now; ${revised}${noteOf(change)}.`;
    }
    case "dispatch":
      if (set.revision !== undefined) return `Worded anew for the user, revision ${set.revision}${noteOf(change)}.`;
      return set.channel === undefined ? "Dispatched." : `Moved to the channel ${set.channel}.`;
    case "collect":
      return `Collected by ${set.lease?.owner} under lease epoch ${set.lease_epoch}.`;
    case "ack":
      if (change.path.length === 0) return `The user ${set.action} it.`;
      return `Acknowledged by the user (${set.action}).`;
    case "settle":
      if (acknowledged === undefined) return "Settled by its holder: the agent was told.";
      return acknowledged.turn_id === null
        ? "Acknowledged by the agent that held it."
        : `Acknowledged by the agent, with the tool acknowledge_notifications, in the turn ${acknowledged.turn_id}.`;
    case "release":
      return `Released, next try ${isoTime(set.not_before ?? 0)}: attempt ${set.attempts}${entry.type === "delivery" && entry.operation === "watchdog" ? ", since its lease ran out" : ""}.`;
    case "escalate": {
      if (set.reason === "promoted")
        return `Brought to the user by the agent itself, on the channel ${set.channel}, lease epoch ${set.lease_epoch}${noteOf(change)}.`;
      const reason = set.reason === "unacknowledged" ? "the agent did not acknowledge it" : why(set.reason);
      return `Taken to the user on the channel ${set.channel}, lease epoch ${set.lease_epoch}: ${reason}${noteOf(change)}.`;
    }
    case "expire":
      return `A dead letter: ${why(set.reason)}.`;
    case "suppress":
      return `Kept back: ${why(set.reason)}${noteOf(change)}.`;
    case "flush": {
      const closed = set.open_until === null ? "The batch was closed and worded" : "Worded anew";
      const revised = set.revision === undefined ? "" : `, revision ${set.revision}`;
      return `${closed}${revised}${degradedOf(change.words?.degraded)}${noteOf(change)}.`;
    }
  }
}

function created(change: Change): string {
  const { notification, set } = change;
  if (notification === undefined) return "Created.";
  const declared = routeOf(notification.axes);
  const effective = set.effective === undefined ? declared : routeOf(set.effective);
  const route = effective === declared ? declared : `${declared}, effectively ${effective}`;
  const links = [
    notification.redrive_of === null ? "" : ` It sends the dead letter ${notification.redrive_of} again.`,
    notification.linked_to === null ? "" : ` An agent holds ${notification.linked_to} with the same key.`,
    set.reason === undefined ? "" : ` Kept back: ${why(set.reason)}${noteOf(change)}.`,
    set.open_until === undefined || set.open_until === null
      ? ""
      : ` Its batch closes at the latest ${isoTime(set.open_until)}, and takes further events before.`,
    notification.degraded === null ? "" : ` In general words: ${notification.degraded}.`,
  ].join("");
  return `Subscriber ${notification.subscriber_id} made this notification, ${route}: deadline ${isoTime(set.deadline ?? 0)}, priority ${set.priority}${set.reason === undefined ? noteOf(change) : ""}.${links}`;
}

const ROUTES: Record<Channel, string> = {
  inbox: "for the user's inbox",
  floor: "for the user in the conversation",
  agent: "for the agent, which decides what to do",
  context: "for the agent as context",
};

/** Where it goes; the three words of it are the notification's own. */
function routeOf(axes: Axes): string {
  return mustNarrate(axes) ? "for the agent, which is to tell the user" : ROUTES[channelOf(axes)];
}

function degradedOf(reason: string | null | undefined): string {
  return reason === undefined || reason === null ? "" : `, in general words, since ${reason}`;
}

function noteOf({ note }: Change): string {
  return note === undefined ? "" : ` (${note})`;
}

const WHY: Record<Reason, string> = {
  filtered: "its severity is below the subscriber's filter",
  muted: "it is switched off",
  superseded: "a newer one took its place",
  observed: "the agent has seen it by itself",
  folded: "it was folded into a summary",
  expired: "nobody wanted it in time",
  deadline: "no agent took it before its deadline",
  lease_expired: "the lease of the agent that held it ran out",
  attempts: "the agent failed too often",
  thread_closed: "its thread was closed",
  promoted: "the agent has brought it up itself",
  unacknowledged: "it was not acknowledged in time",
  stopped: "the user stopped the agent that was to tell it",
  paused: "its thread is paused",
  storm: "the agent was interrupted too often already",
};

function why(reason: Reason | null | undefined): string {
  return reason === null || reason === undefined ? "no reason given" : WHY[reason];
}

function summaryOf(view: NotificationView): string {
  const reason = view.reason === null ? "" : `: ${why(view.reason)}`;
  return `${view.kind} is ${view.state} on the channel ${view.channel}${reason}`;
}
