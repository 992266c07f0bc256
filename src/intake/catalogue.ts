/**
 * What is in effect now: the built-in subscribers, those of the operator's folder, those of the program, and the
 * switches of `tidings.toml`. Files that change take effect by themselves, for what is accepted and for what is worded
 * and judged from then on.
 */
import type { Config } from "../config/config.js";
import { ConfigFile } from "../config/file.js";
import { InvalidInputError } from "../domain/errors.js";
import type { Event, NewEvent } from "../domain/event.js";
import { DIRECT_SUBSCRIBER, OVERFLOW_SUBSCRIBER, type SubscriberId } from "../domain/ids.js";
import type { Priority } from "../domain/priority.js";
import { Listeners } from "../platform/listeners.js";
import type { Editor, Row, Words } from "../store/contract.js";
import { MatchIndex } from "./match_index.js";
import { overflowWords } from "./overflow.js";
import { parseSubscriber, type Subscriber, type SubscriberInput, subscriberOf } from "./subscriber.js";
import { type PresentProblem, SubscriberSet } from "./subscribers/set.js";
import { muting, switchesAnythingOff } from "./switches.js";
import { generally } from "./words.js";

/** Of events that Tidings itself has made. */
export const OWN_SOURCE = "tidings";

export interface CatalogueOptions {
  /** The program's own. One with the id of another takes its place. */
  readonly subscribers: readonly SubscriberInput[];
  /** The operator's; null: none. */
  readonly folder: string | null;
  readonly config_file: string | null;
  /** Whether changes of files take effect by themselves. */
  readonly watch: boolean;
  /** Somebody who was told of a change has thrown this. */
  readonly broke?: (error: unknown) => void;
}

/** What is wrong with a file, and what is in effect in spite of it. */
export interface Problem extends PresentProblem {
  readonly about: "subscriber" | "config";
}

export interface CatalogueChange {
  /** Those that were not there before. */
  readonly problems: readonly Problem[];
  /** The keys of the configuration whose values are others now. */
  readonly config_changed: readonly string[];
}

export class Catalogue implements Editor {
  readonly #files: SubscriberSet;
  readonly #config: ConfigFile;
  readonly #own: ReadonlyMap<SubscriberId, Subscriber>;
  readonly #listeners: Listeners<CatalogueChange>;
  #byId: ReadonlyMap<SubscriberId, Subscriber> = new Map();
  #index = new MatchIndex([]);
  #switchesOff = false;

  private constructor(
    files: SubscriberSet,
    config: ConfigFile,
    own: ReadonlyMap<SubscriberId, Subscriber>,
    broke: (error: unknown) => void,
  ) {
    this.#listeners = new Listeners(broke);
    this.#files = files;
    this.#config = config;
    this.#own = own;
    this.#arrange();
    files.onChange(({ problems }) => {
      this.#arrange();
      this.#tell({ problems: problems.map(ofSubscriber), config_changed: [] });
    });
    config.onChange(({ changed, problem }) => {
      this.#arrange();
      this.#tell({ problems: problem === null ? [] : this.#configProblems(), config_changed: changed });
    });
  }

  static async open({
    subscribers,
    folder,
    config_file,
    watch,
    broke = () => {},
  }: CatalogueOptions): Promise<Catalogue> {
    const own = ownSubscribers(subscribers);
    const files = await SubscriberSet.open({ folder: folder ?? undefined, watch });
    const config = await ConfigFile.open({ path: config_file, watch, broke });
    return new Catalogue(files, config, own, broke);
  }

  /** Every subscriber that is in effect, enabled or not. */
  get subscribers(): readonly Subscriber[] {
    return [...this.#byId.values()];
  }

  subscriber(id: SubscriberId): Subscriber | undefined {
    return this.#byId.get(id);
  }

  get config(): Config {
    return this.#config.current;
  }

  get config_file(): string | null {
    return this.#config.path;
  }

  /** What is wrong with the files as they are. */
  get problems(): readonly Problem[] {
    return [...this.#files.problems.map(ofSubscriber), ...this.#configProblems()];
  }

  /** Calls `listener` after each change of a file that changes anything. */
  onChange(listener: (change: CatalogueChange) => void): void {
    this.#listeners.add(listener);
  }

  matching(event: Pick<NewEvent, "type" | "source">): readonly Subscriber[] {
    return this.#index.matching(event);
  }

  words(subscriber_id: SubscriberId, rows: readonly Row[], now: number): Words {
    if (subscriber_id === OVERFLOW_SUBSCRIBER) return overflowWords(rows, now);
    const subscriber = this.#byId.get(subscriber_id);
    return subscriber === undefined
      ? generally(rows, `the subscriber ${subscriber_id} is no longer there`)
      : subscriber.words(rows, now);
  }

  held(
    event: Event,
    subscriber_id: SubscriberId,
    priority: Priority,
    disabled: readonly SubscriberId[],
  ): string | undefined {
    // What is wrong with the switches must not be kept back by them.
    const own = subscriber_id === OVERFLOW_SUBSCRIBER || isOperatorNotice(event, subscriber_id);
    const core = own || this.#byId.get(subscriber_id)?.core === true;
    return muting(this.config, { event, subscriber: { id: subscriber_id, core }, priority, disabled });
  }

  holdsAny(disabled: readonly SubscriberId[]): boolean {
    return this.#switchesOff || disabled.length > 0;
  }

  /** Nothing is watched any more; what is in effect stays so. */
  async close(): Promise<void> {
    this.#listeners.clear();
    await Promise.all([this.#files.close(), this.#config.close()]);
  }

  #arrange(): void {
    const byId = new Map(this.#files.current.map((loaded) => [loaded.id, subscriberOf(loaded)]));
    for (const [id, subscriber] of this.#own) byId.set(id, subscriber);
    this.#byId = byId;
    this.#index = new MatchIndex(byId.values());
    this.#switchesOff = switchesAnythingOff(this.config);
  }

  #tell(change: CatalogueChange): void {
    this.#listeners.tell(change);
  }

  #configProblems(): Problem[] {
    const { problem, current } = this.#config;
    if (problem === null) return [];
    const { file, problems } = problem;
    const instead = current.file === null ? "all_on" : "last_good";
    const about = { subscriber_file: file, subscriber_id: null, instead, about: "config" } as const;
    return problems.map((one) => ({ file, ...one, ...about }));
  }
}

/** Only what Tidings itself notifies of has its name as source: what others do has `direct`. */
function isOperatorNotice({ source }: Event, subscriber_id: SubscriberId): boolean {
  return subscriber_id === DIRECT_SUBSCRIBER && source === OWN_SOURCE;
}

function ofSubscriber(problem: PresentProblem): Problem {
  return { ...problem, about: "subscriber" };
}

function ownSubscribers(inputs: readonly SubscriberInput[]): ReadonlyMap<SubscriberId, Subscriber> {
  const own = new Map<SubscriberId, Subscriber>();
  for (const input of inputs) {
    const subscriber = parseSubscriber(input);
    if (own.has(subscriber.id)) throw new InvalidInputError("subscribers", `two have the id ${subscriber.id}`);
    own.set(subscriber.id, subscriber);
  }
  return own;
}
