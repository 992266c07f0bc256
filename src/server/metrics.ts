/** What the server counts, in the text format of Prometheus. No label has a user, a thread or anybody's words in it. */
import { EventCounts } from "./event_counts.js";

export type Labels = Readonly<Record<string, string>>;

/** One figure, and what it is about. */
export interface Sample {
  readonly labels?: Labels;
  /** Of a histogram: `_bucket`, `_sum`, `_count`. */
  readonly suffix?: string;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly Sample[];
}

export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** More sets of labels than so many are counted as one. */
const SERIES_MAX = 1_000;

/** Only grows, since the server was started. */
export class Counter {
  readonly #name: string;
  readonly #help: string;
  readonly #series = new Map<string, { readonly labels: Labels; value: number }>();

  /** Without labels there is one figure, which is there from the start. */
  constructor(name: string, help: string, labelled = false) {
    this.#name = name;
    this.#help = help;
    if (!labelled) this.add({}, 0);
  }

  add(labels: Labels = {}, by = 1): void {
    const key = JSON.stringify(labels);
    const known = this.#series.get(key);
    if (known !== undefined) known.value += by;
    else if (this.#series.size < SERIES_MAX) this.#series.set(key, { labels, value: by });
  }

  family(): Family {
    return { name: this.#name, help: this.#help, type: "counter", samples: [...this.#series.values()] };
  }
}

/** What is counted where it happens. */
export class Metrics {
  readonly requests = new Counter("tidings_http_requests_total", "HTTP requests that are over.", true);
  readonly hooks = new Counter("tidings_hook_requests_total", "Requests to hooks that are configured.", true);
  readonly shed = new Counter("tidings_frames_shed_total", "Pushes that were dropped since their client was slow.");
  readonly slow = new Counter("tidings_clients_closed_slow_total", "Clients that were closed since they were slow.");
  readonly replayed = new Counter(
    "tidings_replayed_entries_total",
    "Entries of the journal that were read for clients that resume.",
  );
  readonly limited = new Counter(
    "tidings_rate_limited_total",
    "Calls, events and whatever else was sent that were refused since their token was over its rate.",
  );
  /** By user, so for `runtime/status` alone: here stands what the store has counted, of the library too. */
  readonly events = new EventCounts();

  families(): Family[] {
    const { requests, hooks, shed, slow, replayed, limited } = this;
    return [requests, hooks, shed, slow, replayed, limited].map((counter) => counter.family());
  }
}

export function metricsText(families: readonly Family[]): string {
  return families.map(familyText).join("");
}

function familyText({ name, help, type, samples }: Family): string {
  const head = `# HELP ${name} ${help.replace(/\\/g, "\\\\").replace(/\n/g, "\\n")}\n# TYPE ${name} ${type}\n`;
  const lines = samples.map(({ labels = {}, suffix = "", value }) => {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${labelText(text)}"`);
    const braces = pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
    return `${name}${suffix}${braces} ${numberText(value)}\n`;
  });
  return head + lines.join("");
}

function labelText(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  return value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value);
}
