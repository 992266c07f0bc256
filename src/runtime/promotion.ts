/**
 * What an internal turn does outside is not kept from the user: before it is done, what the turn holds goes to the user, and
 * its story says why.
 */
import { isMiss } from "../domain/errors.js";
import { LIMITS } from "../domain/limits.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { crashPoint } from "../platform/crashpoint.js";
import { sha256 } from "../platform/secret.js";
import type { CommandRequest, Store } from "../store/contract.js";
import type { HeldItem, Holdings } from "./holdings.js";
import { tellTheUser } from "./tell.js";

interface Promotion {
  /** What the user is told of each, given what it says so far. */
  readonly words: (content: string, again: boolean) => string;
  /** For its story. */
  readonly note: string;
  /** What the user is told where nothing is left to promote. */
  readonly otherwise: string;
  /** Which telling it is, if others of the turn are not the same. */
  readonly key: string;
  /** All that the turn holds, or one of it: what is said once is shown once. */
  readonly of: "all" | "one";
}

/** Tools that others notice are about to be run. Resolves when that is on disk. */
export function promoteForTools(store: Store, turn: Turn, holdings: Holdings, tools: readonly string[]): Promise<void> {
  const named = tools.map((tool) => `\`${tool}\``).join(", ");
  return promote(store, turn, holdings, {
    words: (content) => `${content}\n\nThe agent acts on it: ${named}.`,
    note: tools.join(", "),
    otherwise: `The agent acts in a turn of its own: ${named}.`,
    key: "",
    of: "all",
  });
}

/** The agent speaks. Resolves when what it says is on disk. */
export function promoteWithWords(
  store: Store,
  turn: Turn,
  holdings: Holdings,
  { text, call_id }: { readonly text: string; readonly call_id: string },
): Promise<void> {
  return promote(store, turn, holdings, {
    words: (content, again) => (again ? `${content}\n\n${text}` : text),
    note: "tell_user",
    otherwise: text,
    key: sha256(`${call_id}\n${text}`),
    of: "one",
  });
}

async function promote(store: Store, turn: Turn, holdings: Holdings, promotion: Promotion): Promise<void> {
  const one = promotion.of === "one";
  const promoted = one ? holdings.promoted().slice(-1) : holdings.promoted();
  const deciding = one ? holdings.deciding().slice(0, promoted.length > 0 ? 0 : 1) : holdings.deciding();
  const held = deciding.map((item) => ({ item, content: within(promotion.words(item.content, false)) }));
  const before = promoted.map((item) => ({ item, content: within(promotion.words(item.content, true)) }));
  const all = [...held, ...before];
  const answers = await store.commandMany(HOST, [
    ...held.map(({ item, content }) => escalation(item, content, promotion.note)),
    ...before.map(({ item, content }) => addition(item, content, promotion.note)),
  ]);
  let told = 0;
  for (const [index, { item, content }] of all.entries()) {
    const answer = answers[index];
    if (answer === undefined || isMiss(answer)) {
      // The watchdog took it, or the user has done with it.
      holdings.mark(item.id, "over");
      continue;
    }
    holdings.promote(item.id, content);
    told += 1;
  }
  if (told === 0) {
    const { user_id, thread_id, id } = turn;
    const key = `${id}:${promotion.note}:${promotion.key}`.slice(0, LIMITS.dedupeKeyChars);
    await tellTheUser(store, {
      user_id,
      thread_id,
      kind: "agent.told.user",
      severity: "info",
      content: promotion.otherwise,
      key,
    });
  }
  crashPoint("turn.promoted");
}

function escalation({ id, epoch }: HeldItem, content: string, note: string): CommandRequest {
  return { id, operation: "escalate", command: { column: "escalate", reason: "promoted", epoch, note, content } };
}

function addition({ id }: HeldItem, content: string, note: string): CommandRequest {
  return { id, operation: "escalate", command: { column: "dispatch", content, note } };
}

function within(content: string): string {
  return content.slice(0, LIMITS.contentChars).toWellFormed();
}
