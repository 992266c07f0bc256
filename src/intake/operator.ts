/**
 * Tells the operator, in the log and in the inbox, what is wrong with the files, and which keys of the configuration have changed; and
 * everybody who has an open conversation, as far as that concerns them.
 */
import { TidingsError } from "../domain/errors.js";
import { ownId, parseEvent } from "../domain/event.js";
import { DIRECT_SUBSCRIBER, LOCAL_USER, type ThreadId, type UserId } from "../domain/ids.js";
import type { Thread } from "../domain/journal.js";
import type { JsonObject } from "../domain/json.js";
import { LIMITS } from "../domain/limits.js";
import { parseNotify } from "../domain/notification.js";
import { HOST } from "../domain/principal.js";
import { ALL_GRANTS } from "../domain/token.js";
import { newNonce, sha256 } from "../platform/secret.js";
import type { Acceptance, Accepted, Store } from "../store/contract.js";
import { type Catalogue, type CatalogueChange, OWN_SOURCE, type Problem } from "./catalogue.js";
import type { Intake } from "./intake.js";
import { problemLine } from "./subscribers/set.js";

const KINDS = { subscriber: "config.subscriber_broken", config: "config.file_broken" } as const;
/** Of more files than so many at once, the inbox tells how many more there are. */
const TOLD_MAX = 10;

export class Operator {
  readonly #store: Store;
  readonly #intake: Intake;
  readonly #log: (line: string) => void;
  #telling: Promise<void> = Promise.resolve();

  constructor(store: Store, intake: Intake, log: (line: string) => void) {
    this.#store = store;
    this.#intake = intake;
    this.#log = log;
  }

  /** Tells what is wrong now, unless it waits in the inbox already; and from then on what changes. */
  async follow(catalogue: Catalogue): Promise<void> {
    catalogue.onChange((change) => this.#changed(change, catalogue));
    const { problems } = catalogue;
    this.log(problems);
    if (problems.length > 0) this.#tell(async () => this.#notices(brokenFiles(problems), await this.#waiting()));
    await this.#telling;
  }

  /** Only where somebody reads it as it comes. */
  log(problems: readonly Problem[]): void {
    for (const problem of problems) this.#log(problemLine(problem));
  }

  /**
   * Something else that waits for the operator; the same is told once while it is new, and with an id once for ever. Answers whether
   * it is told now.
   */
  async warn(kind: string, content: string, id?: string): Promise<boolean> {
    let isNews = false;
    if (id === undefined) this.#log(content);
    const notice = this.#notice(kind, content.slice(0, LIMITS.contentChars).toWellFormed(), id);
    this.#tell(
      async () => [notice],
      ({ outcome }) => {
        isNews = outcome !== "duplicate";
      },
    );
    await this.#telling;
    if (id !== undefined && isNews) this.#log(content);
    return isNews;
  }

  /** When all is told. */
  async close(): Promise<void> {
    await this.#telling;
  }

  #changed({ problems, config_changed }: CatalogueChange, { config_file, problems: present }: Catalogue): void {
    this.log(problems);
    const files = new Set(problems.map(({ subscriber_file }) => subscriber_file));
    const broken = brokenFiles(present.filter(({ subscriber_file }) => files.has(subscriber_file)));
    this.#tell(async () => [
      ...this.#notices(broken, new Set()),
      ...(config_changed.length === 0 ? [] : await this.#reloads(config_file, config_changed)),
    ]);
  }

  /** For the operator all of it; for the others no paths, no values, and nothing but what takes effect for them. */
  async #reloads(file: string | null, keys: readonly string[]): Promise<Acceptance[]> {
    const changed = keys.filter((key) => !waitsForStart(key));
    const restart = keys.filter(waitsForStart);
    const own = { file, changed: changed.slice(0, CHANGED_MAX) };
    const told = [
      this.#reloaded(LOCAL_USER, restart.length === 0 ? own : { ...own, restart: restart.slice(0, CHANGED_MAX) }),
    ];
    const shared = [...new Set(changed.flatMap(sharedKey))].slice(0, CHANGED_MAX);
    if (shared.length === 0) return told;
    for (const user_id of await this.#users()) told.push(this.#reloaded(user_id, { file: null, changed: shared }));
    return told;
  }

  /** The others who have an open conversation. */
  async #users(): Promise<ReadonlySet<UserId>> {
    const users = new Set<UserId>();
    for (let after: ThreadId | null = null; ; ) {
      const threads: readonly Thread[] = await this.#store.threads(after, PAGE);
      for (const { user_id, state } of threads) if (state === "open" && user_id !== LOCAL_USER) users.add(user_id);
      const last = threads.at(-1);
      if (last === undefined || threads.length < PAGE) return users;
      after = last.id;
    }
  }

  #tell(acceptances: () => Promise<readonly Acceptance[]>, accepted: (answer: Accepted) => void = () => {}): void {
    this.#telling = this.#telling.then(async () => {
      try {
        for (const one of await acceptances()) accepted(await this.#store.accept(HOST, one));
      } catch (error) {
        // It was closed meanwhile, or has failed: whoever has opened it is told so.
        if (!(error instanceof TidingsError)) throw error;
      }
    });
  }

  #notices(broken: readonly BrokenFile[], waiting: ReadonlySet<string>): Acceptance[] {
    const news = broken.filter(({ content }) => !waiting.has(content));
    const told = news.slice(0, TOLD_MAX).map(({ kind, content }) => this.#notice(kind, content));
    const left = news.length - told.length;
    if (left > 0) told.push(this.#notice(KINDS.subscriber, `and ${left} more broken files; see \`tidings doctor\``));
    return told;
  }

  #notice(kind: string, content: string, id: string | null = null): Acceptance {
    const axes = { address: "user", target: "user", handler: "system" } as const;
    const notify = { ...axes, kind, content, severity: "warning", dedupe_key: sha256(content) } as const;
    const { event, drafts } = this.#intake.forNotify(parseNotify(notify), ALL_GRANTS);
    return { event: { ...event, source: OWN_SOURCE, producer_id: id === null ? null : ownId(id) }, drafts };
  }

  #reloaded(user_id: UserId, payload: JsonObject): Acceptance {
    // Each edit is one, also of the same keys.
    const event = { type: "config.reloaded", source: OWN_SOURCE, user_id, payload, dedupe_key: newNonce() };
    return this.#intake.forEvent(parseEvent(event), ALL_GRANTS);
  }

  /** What the operator was told and has not acknowledged. */
  async #waiting(): Promise<ReadonlySet<string>> {
    const filter = { user_id: LOCAL_USER, unacknowledged: true, limit: LIMITS.listLimit };
    const { stored } = await this.#store.list(HOST, filter);
    const own = stored.filter(({ notification }) => notification.subscriber_id === DIRECT_SUBSCRIBER);
    return new Set(own.map(({ notification }) => notification.content));
  }
}

/** Keys of a reloaded file that its event names. */
const CHANGED_MAX = 100;
const PAGE = 500;

/** What is read when the host starts, and not again. */
function waitsForStart(key: string): boolean {
  return /^(agent\.(provider|model|base_url|api_key_env|shell|workspace)|server)(\.|$)/.test(key);
}

/** What all users of the agent have to do with, without what is the operator's in it: its table. */
function sharedKey(key: string): readonly string[] {
  return /^(agent\.budgets\.[^.]+|agent\.loops|mcp\.servers\.[^.]+|conversation\.[^.]+)/.exec(key)?.slice(0, 1) ?? [];
}

interface BrokenFile {
  readonly kind: string;
  /** All that is wrong with it, a line each. */
  readonly content: string;
}

function brokenFiles(problems: readonly Problem[]): BrokenFile[] {
  const lines = new Map<string, { kind: string; lines: string[] }>();
  for (const problem of problems) {
    const { about, subscriber_file } = problem;
    const key = `${about} ${subscriber_file}`;
    const found = lines.get(key) ?? { kind: KINDS[about], lines: [] };
    found.lines.push(problemLine(problem));
    lines.set(key, found);
  }
  return [...lines.values()].map((one) => ({
    kind: one.kind,
    content: one.lines.join("\n").slice(0, LIMITS.contentChars).toWellFormed(),
  }));
}
