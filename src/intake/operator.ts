/** Tells the operator, in the log and in the inbox, what is wrong with the files; and everybody that one has changed. */
import { TidingsError } from "../domain/errors.js";
import { parseEvent } from "../domain/event.js";
import { DIRECT_SUBSCRIBER, LOCAL_USER } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { parseNotify } from "../domain/notification.js";
import { HOST } from "../domain/principal.js";
import { ALL_GRANTS } from "../domain/token.js";
import { sha256 } from "../platform/secret.js";
import type { Acceptance, Store } from "../store/contract.js";
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
      ...(config_changed.length === 0 ? [] : [this.#reloaded(config_file, config_changed)]),
    ]);
  }

  #tell(acceptances: () => Promise<readonly Acceptance[]>): void {
    this.#telling = this.#telling.then(async () => {
      try {
        for (const one of await acceptances()) await this.#store.accept(HOST, one);
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

  #notice(kind: string, content: string): Acceptance {
    const axes = { address: "user", target: "user", handler: "system" } as const;
    const notify = { ...axes, kind, content, severity: "warning", dedupe_key: sha256(content) } as const;
    const { event, drafts } = this.#intake.forNotify(parseNotify(notify), ALL_GRANTS);
    return { event: { ...event, source: OWN_SOURCE }, drafts };
  }

  #reloaded(file: string | null, changed: readonly string[]): Acceptance {
    const event = {
      type: "config.reloaded",
      source: OWN_SOURCE,
      payload: { file, changed: changed.slice(0, CHANGED_MAX) },
    };
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
