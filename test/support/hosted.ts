/** A hosted agent on a store of its own, as `Tidings.open` puts them together, with the store's own word on what became of things. */
import { onTestFinished } from "vitest";
import { Watchdog } from "../../src/delivery/watchdog.js";
import type { Item } from "../../src/domain/conversation.js";
import { type EventInput, parseEvent } from "../../src/domain/event.js";
import { LOCAL_USER, type NotificationId, notificationId, threadId } from "../../src/domain/ids.js";
import { type NotifyInput, parseNotify } from "../../src/domain/notification.js";
import { DEFAULT_POLICY, type DeliveryPolicy } from "../../src/domain/policy.js";
import { HOST } from "../../src/domain/principal.js";
import { ALL_GRANTS } from "../../src/domain/token.js";
import type { Turn } from "../../src/domain/turn.js";
import { Catalogue } from "../../src/intake/catalogue.js";
import { Intake } from "../../src/intake/intake.js";
import type { SubscriberInput } from "../../src/intake/subscriber.js";
import { systemClock } from "../../src/platform/clock.js";
import { type Model, openModel } from "../../src/providers/index.js";
import { type AgentOptions, HostedAgent } from "../../src/runtime/agent.js";
import type { Store, Stored } from "../../src/store/contract.js";
import { openSqliteStore } from "../../src/store/sqlite/store.js";
import { eventually, temporaryFolder } from "./folder.js";
import { type ModelServer, modelServer } from "./recorder.js";

export const THREAD = "chat";

export interface HostedOptions extends Partial<Omit<AgentOptions, "model">> {
  model?: Model;
  policy?: Partial<DeliveryPolicy>;
  subscribers?: readonly SubscriberInput[];
  /** The watchdog is the test's to start. */
  unwatched?: boolean;
}

export class Hosted {
  readonly store: Store;
  readonly intake: Intake;
  readonly policy: DeliveryPolicy;
  readonly watchdog: Watchdog;
  readonly errors: unknown[] = [];
  agent!: HostedAgent;

  constructor(store: Store, intake: Intake, policy: DeliveryPolicy, watchdog: Watchdog) {
    this.watchdog = watchdog;
    this.store = store;
    this.intake = intake;
    this.policy = policy;
  }

  /** Another agent on the same store: the one before is gone without a word. */
  async host(options: HostedOptions = {}): Promise<HostedAgent> {
    const { model, policy: _, subscribers: __, unwatched: ___, ...rest } = options;
    const agent = await HostedAgent.start(
      this.store,
      (event) => this.emit(event),
      {
        ...rest,
        model: model ?? (await openModel({ provider: "rehearsal", model: "rehearsal" })),
        onError: (error) => this.errors.push(error),
      },
      this.policy,
    );
    onTestFinished(() => agent.close());
    this.agent = agent;
    return agent;
  }

  emit(event: EventInput) {
    return this.store.accept(HOST, this.intake.forEvent(parseEvent(event), ALL_GRANTS));
  }

  /** To the thread, unless it says otherwise. */
  async notify(input: NotifyInput): Promise<NotificationId> {
    const parsed = parseNotify({ thread_id: THREAD, ...input });
    const accepted = await this.store.accept(HOST, this.intake.forNotify(parsed, ALL_GRANTS));
    return accepted.matches[0]?.stored.notification.id ?? notificationId("none");
  }

  mustNarrate(content: string, more: Partial<NotifyInput> = {}): Promise<NotificationId> {
    return this.notify({ content, target: "user", handler: "agent", ...more });
  }

  decides(content: string, more: Partial<NotifyInput> = {}): Promise<NotificationId> {
    return this.notify({ content, target: "agent", handler: "agent", ...more });
  }

  critical(content: string, more: Partial<NotifyInput> = {}): Promise<NotificationId> {
    return this.notify({ content, severity: "critical", ...more });
  }

  say(content: string, thread_id: string = THREAD): Promise<Turn> {
    return this.agent.startTurn(HOST, { thread_id, content });
  }

  /** A turn from its message to its end. */
  async converse(content: string): Promise<Turn> {
    return this.agent.ended((await this.say(content)).id);
  }

  async stored(id: NotificationId): Promise<Stored> {
    const stored = await this.store.get(HOST, id);
    if (stored === undefined) throw new Error(`no notification ${id}`);
    return stored;
  }

  async state(id: NotificationId): Promise<string> {
    const { delivery } = await this.stored(id);
    return delivery.reason === null ? delivery.state : `${delivery.state} ${delivery.reason}`;
  }

  /** Waits until it is so. */
  becomes(id: NotificationId, wanted: string): Promise<string> {
    return eventually(
      () => this.state(id),
      (state) => state === wanted,
    );
  }

  /** All that was said and done in the thread, in order. */
  async items(thread_id: string = THREAD): Promise<readonly Item[]> {
    const entries = await this.store.conversation(HOST, threadId(thread_id), 0, 10_000);
    return entries.flatMap((entry) => (entry.type === "turn" || entry.type === "carrier" ? entry.items : []));
  }

  /** The turns of the thread, by the entries that made or began them. */
  async turns(thread_id: string = THREAD): Promise<Turn[]> {
    const entries = await this.store.conversation(HOST, threadId(thread_id), 0, 10_000);
    const ids = new Set(entries.flatMap((entry) => (entry.type === "turn" ? [entry.turn_id] : [])));
    const turns = await Promise.all([...ids].map((id) => this.store.turn(HOST, id)));
    return turns.filter((turn) => turn !== undefined);
  }

  /** Waits until nothing runs in the thread, and so many turns were. */
  turnsOver(count: number, thread_id: string = THREAD): Promise<Turn[]> {
    return eventually(
      () => this.turns(thread_id),
      (turns) => turns.length >= count && turns.every(({ state }) => state !== "active" && state !== "queued"),
    );
  }

  async texts(thread_id: string = THREAD): Promise<string[]> {
    return (await this.items(thread_id)).flatMap((item) => (item.type === "chat_response" ? [item.content] : []));
  }

  /** The events of a type, by their payloads. */
  async events(type: string): Promise<readonly Record<string, unknown>[]> {
    const found: Record<string, unknown>[] = [];
    let after = 0;
    for (;;) {
      const page = await this.store.entries(HOST, after, 1_000);
      for (const entry of page.entries)
        if (entry.type === "event" && entry.event.type === type) found.push(entry.event.payload);
      after = page.after;
      if (page.end) return found;
    }
  }

  /** What the user is shown now, by its words. */
  async shown(): Promise<string[]> {
    const { stored } = await this.store.list(HOST, { user_id: LOCAL_USER, unacknowledged: true, limit: 100 });
    return stored.map(({ notification }) => notification.content);
  }
}

export async function hosted(options: HostedOptions = {}): Promise<Hosted> {
  const policy = { ...DEFAULT_POLICY, ...options.policy };
  const subscribers = options.subscribers ?? [];
  const catalogue = await Catalogue.open({ subscribers, folder: null, config_file: null, watch: false });
  const folder = await temporaryFolder();
  const store = await openSqliteStore({
    folder,
    editor: catalogue,
    policy,
    clock: systemClock,
    mode: "write",
    waitMs: 0,
    onFailure: () => {},
  });
  const watchdog = new Watchdog(store, () => {});
  if (options.unwatched !== true) await watchdog.start();
  onTestFinished(async () => {
    await watchdog.stop();
    await store.close();
    await catalogue.close();
  });
  const plane = new Hosted(store, new Intake(catalogue), policy, watchdog);
  await store.startThread(HOST, LOCAL_USER, threadId(THREAD));
  await plane.host(options);
  return plane;
}

/** A real provider's SDK, and a server behind it that answers what it is told to. */
export async function servedModel(
  ...stream: Parameters<typeof modelServer>
): Promise<{ model: Model; server: ModelServer }> {
  const server = await modelServer(...stream);
  const options = { provider: "openai-compatible", model: "gpt-5.1", base_url: `${server.url}/v1` };
  return { model: await openModel(options, {}), server };
}
