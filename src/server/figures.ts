/** `GET /metrics`: how much waits, what has happened since the start, and how it stands, for whoever watches over it. */
import { timingSafeEqual } from "node:crypto";
import { CHANNELS } from "../domain/axes.js";
import { isTerminal, STATES } from "../domain/transitions.js";
import type { Clock } from "../platform/clock.js";
import { sha256 } from "../platform/secret.js";
import type { Tidings } from "../tidings.js";
import type { Ingest } from "./ingest/ingest.js";
import { type Family, type Metrics, metricsText, type Sample } from "./metrics.js";

export interface FiguresParts {
  readonly tidings: Tidings;
  readonly metrics: Metrics;
  readonly ingest: Ingest;
  readonly clock: Clock;
  readonly version: string;
  /** When the server was started, in milliseconds since 1970. */
  readonly started_at: number;
  /** Open connections of clients that are told things. */
  connections(): number;
  /** Those of them that are being told what they have missed. */
  resuming(): number;
  /** Bytes that wait for the one of them that is furthest behind. */
  mostWaiting(): number;
  ready(): boolean;
  /** A token that opens the figures and nothing else; null: only admin's does. */
  readonly token: string | null;
}

const LIVE = STATES.filter((state) => !isTerminal(state));

export class FiguresPage {
  readonly #parts: FiguresParts;
  readonly #token: Buffer | null;

  constructor(parts: FiguresParts) {
    this.#parts = parts;
    this.#token = parts.token === null ? null : Buffer.from(sha256(parts.token));
  }

  /** Whether this token is the one that opens the figures alone. */
  opens(token: string | undefined): boolean {
    return token !== undefined && this.#token !== null && timingSafeEqual(Buffer.from(sha256(token)), this.#token);
  }

  async text(): Promise<string> {
    return metricsText([...(await this.#ofStore()), ...this.#ofAgent(), ...this.#ofServer()]);
  }

  async #ofStore(): Promise<Family[]> {
    const { tidings, clock } = this.#parts;
    const [{ depth, oldest, events, entered, blocks_told, tokens_told, commits }, facts] = await Promise.all([
      tidings.figures(),
      tidings.facts(),
    ]);
    const count = (state: string, channel: string) =>
      depth.find((one) => one.state === state && one.channel === channel)?.count ?? 0;
    const ages = oldest.map(({ channel, created_at }) => ({
      labels: { channel },
      value: Math.max(0, clock.wall() - created_at) / 1_000,
    }));
    return [
      gauge(
        "tidings_depth",
        "Notifications that are not settled, by state and channel.",
        LIVE.flatMap((state) =>
          CHANNELS.map((channel) => ({ labels: { state, channel }, value: count(state, channel) })),
        ),
      ),
      gauge("tidings_oldest_age_seconds", "Age of the oldest notification that is not settled, by channel.", ages),
      gauge("tidings_dead_letters", "Notifications that were shown and never acknowledged.", [
        { value: depth.reduce((sum, one) => sum + (one.state === "FAILED" ? one.count : 0), 0) },
      ]),
      counter(
        "tidings_events_total",
        "Events that were taken in, by outcome.",
        Object.entries(events).map(([outcome, value]) => ({ labels: { outcome }, value })),
      ),
      counter("tidings_escalations_total", "Notifications that went on to the user.", [{ value: entered.ESCALATED }]),
      counter("tidings_dead_letters_total", "Notifications that became dead letters.", [{ value: entered.FAILED }]),
      counter("tidings_delivered_total", "Notifications that were delivered.", [{ value: entered.DELIVERED }]),
      counter("tidings_suppressed_total", "Notifications that were kept back.", [{ value: entered.SUPPRESSED }]),
      counter("tidings_blocks_injected_total", "Blocks that agents were told.", [{ value: blocks_told }]),
      counter("tidings_tokens_injected_total", "Tokens of those blocks, estimated.", [{ value: tokens_told }]),
      {
        name: "tidings_commit_seconds",
        help: "How long a commit took, from its begin to the flush.",
        type: "histogram",
        samples: [
          ...commits.buckets.map(({ ms, count: upTo }) => ({
            suffix: "_bucket",
            labels: { le: String(ms / 1_000) },
            value: upTo,
          })),
          { suffix: "_bucket", labels: { le: "+Inf" }, value: commits.count },
          { suffix: "_sum", value: commits.ms / 1_000 },
          { suffix: "_count", value: commits.count },
        ],
      },
      counter("tidings_operations_total", "Write operations that were committed.", [{ value: commits.operations }]),
      gauge("tidings_database_bytes", "Size of the database.", [{ value: facts.bytes }]),
      gauge("tidings_journal_seq", "The newest entry of the journal.", [{ value: facts.last_seq }]),
    ];
  }

  /** Nothing where none is hosted. */
  #ofAgent(): Family[] {
    const { agentCounters } = this.#parts.tidings;
    if (agentCounters === null) return [];
    const { wakes, forced_turns, model_calls, retries } = agentCounters;
    return [
      counter("tidings_wakes_total", "Turns that the system opened since an agent was to be told something.", [
        { labels: { why: "idle" }, value: wakes },
        { labels: { why: "critical" }, value: forced_turns },
      ]),
      counter("tidings_model_calls_total", "Calls of the model.", [{ value: model_calls }]),
      counter("tidings_model_retries_total", "Calls of the model that were made again.", [{ value: retries }]),
    ];
  }

  #ofServer(): Family[] {
    const { metrics, ingest, version, started_at } = this.#parts;
    return [
      gauge("tidings_clients", "Clients that are connected and told things.", [{ value: this.#parts.connections() }]),
      gauge("tidings_clients_resuming", "Clients that are being told what they have missed.", [
        { value: this.#parts.resuming() },
      ]),
      gauge("tidings_client_waiting_bytes_max", "Bytes that wait for the client that is furthest behind.", [
        { value: this.#parts.mostWaiting() },
      ]),
      gauge("tidings_events_waiting", "Events that wait for their commit.", [{ value: ingest.waiting }]),
      ...metrics.families(),
      gauge("tidings_ready", "1 while new work is taken, 0 while the server goes away.", [
        { value: this.#parts.ready() ? 1 : 0 },
      ]),
      gauge("tidings_info", "Which version runs.", [{ labels: { version }, value: 1 }]),
      gauge("tidings_start_time_seconds", "When the server was started, since 1970.", [{ value: started_at / 1_000 }]),
      gauge("tidings_resident_memory_bytes", "Memory of the process.", [{ value: process.memoryUsage.rss() }]),
    ];
  }
}

function gauge(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, help, type: "gauge", samples };
}

function counter(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, help, type: "counter", samples };
}
