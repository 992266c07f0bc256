/**
 * A folder of subscribers: every `*.toml` in it, with the templates that they name. What is wrong with a file concerns
 * that file only; the others load.
 */
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KeyLocator, type KeyPath } from "../../config/locate.js";
import { parseToml } from "../../config/toml.js";
import type { Axes } from "../../domain/axes.js";
import { type SubscriberId, subscriberId } from "../../domain/ids.js";
import type { InjectionPoint, Priority } from "../../domain/priority.js";
import type { Severity } from "../../domain/severity.js";
import { PACKAGE_ROOT } from "../../platform/package_root.js";
import { sha256 } from "../../platform/secret.js";
import { compileTemplate, type Template, TemplateError } from "../template/template.js";
import type { DedupeExpression } from "./dedupe.js";
import { isMissing, isNoFolder, readInside } from "./files.js";
import { parseSubscriberFile, SUBSCRIBER_LIMITS, type SubscriberFile } from "./schema.js";

/** The subscribers that come with Tidings; beside `src` and `dist` alike. */
export const BUILT_IN_FOLDER = join(PACKAGE_ROOT, "subscribers");

/** A subscriber, ready to match, to merge and to word. */
export interface LoadedSubscriber {
  readonly id: SubscriberId;
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly enabled: boolean;
  /** Exact types, or a prefix that ends in `.*`. */
  readonly types: readonly string[];
  /** Only events from these; null: from any. */
  readonly sources: readonly string[] | null;
  readonly severity_filter: Severity;
  readonly priority: Priority;
  readonly inject_at: InjectionPoint;
  readonly core: boolean;
  /** A window of 0 is no batching. */
  readonly batch: { readonly window_ms: number; readonly max_size: number };
  /** Without an expression the key is derived from the event; a window of 0 is no deduplication. */
  readonly dedupe: { readonly key: DedupeExpression | null; readonly window_ms: number };
  readonly axes: Axes;
  readonly directive: string | null;
  readonly ttl_ms: number | null;
  readonly wake: "idle" | null;
  readonly max_wait_ms: number;
  /** For one event. */
  readonly template: Template;
  /** For more than one; the same as `template` where the file names none. */
  readonly batch_template: Template;
  /** Whether it comes with Tidings. */
  readonly built_in: boolean;
  /** The file that it comes from. */
  readonly file: string;
  /** Equal for equal texts of the file and its templates. */
  readonly digest: string;
}

/** What is wrong, and where. */
export interface SubscriberProblem {
  /** Where to look: the subscriber's file, or its template if that is what is wrong. */
  readonly file: string;
  readonly line: number | null;
  readonly column: number | null;
  /** The key, like `batching.window_ms`; null if it is about the whole file. */
  readonly key: string | null;
  readonly reason: string;
  /** The file that did not load for it. */
  readonly subscriber_file: string;
  /** Its id, if that much could be read. */
  readonly subscriber_id: string | null;
}

export interface FolderContent {
  readonly loaded: LoadedSubscriber[];
  readonly broken: SubscriberProblem[];
}

/** How many files are read at the same time. */
const READERS = 16;

export interface LoadOptions {
  /** Templates are compiled when they are first used: for files that are known to be good, since it takes a while. */
  readonly trusted?: boolean;
}

/**
 * Everything in the folder, by file name; nothing if there is no such folder. A template that is not in it is looked for
 * among the built-in ones.
 */
export async function loadFolder(folder: string, { trusted = false }: LoadOptions = {}): Promise<FolderContent> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return { loaded: [], broken: [] };
    const reason = isNoFolder(error) ? "is not a folder" : `the folder cannot be read: ${error}`;
    return { loaded: [], broken: [problem(folder, reason)] };
  }
  // Names with a dot in front are those of editors and of half-made copies.
  const files = names.filter((name) => name.endsWith(".toml") && !name.startsWith(".")).sort(byName);
  const content: FolderContent = { loaded: [], broken: [] };
  const reading = new FolderReading(folder, trusted ? compiledLater : compiledOf);
  const within = files.slice(0, SUBSCRIBER_LIMITS.filesMax);
  for (let start = 0; start < within.length; start += READERS) {
    const found = await Promise.all(within.slice(start, start + READERS).map((name) => reading.load(name)));
    for (const one of found) {
      if (Array.isArray(one)) content.broken.push(...one);
      else admit(one, content, reading);
    }
  }
  for (const name of files.slice(within.length))
    content.broken.push(problem(join(folder, name), `is beyond the first ${within.length} files of its folder`));
  return content;
}

/** The first file of an id, by name, has it. */
function admit(found: Found, content: FolderContent, reading: FolderReading): void {
  const { subscriber, text } = found;
  const first = reading.owners.get(subscriber.id);
  if (first === undefined) {
    reading.owners.set(subscriber.id, subscriber.file);
    content.loaded.push(subscriber);
    return;
  }
  const at = new KeyLocator(text).find(["subscriber", "id"]);
  const reason = `${JSON.stringify(subscriber.id)} is the id of ${first} too; two subscribers cannot share one`;
  content.broken.push({ ...problem(subscriber.file, reason, subscriber.id), ...at, key: "subscriber.id" });
}

interface Found {
  readonly subscriber: LoadedSubscriber;
  /** Of its file. */
  readonly text: string;
}

interface CompiledTemplate {
  readonly template: Template;
  readonly text: string;
}

/** One reading of one folder: templates that several files share are compiled once. */
class FolderReading {
  readonly owners = new Map<SubscriberId, string>();
  readonly #folder: string;
  readonly #compile: typeof compiledOf;
  readonly #templates = new Map<string, CompiledTemplate | TemplateError>();

  constructor(folder: string, compile: typeof compiledOf) {
    this.#folder = folder;
    this.#compile = compile;
  }

  async load(name: string): Promise<Found | SubscriberProblem[]> {
    const path = join(this.#folder, name);
    const file = await readInside(this.#folder, name, SUBSCRIBER_LIMITS.fileBytes);
    if ("reason" in file) return [problem(path, file.reason)];
    const toml = parseToml(file.text);
    if ("problem" in toml) return [{ ...problem(path, ""), ...toml.problem }];
    const { content } = toml;
    const id = idIn(content);
    let locator: KeyLocator | undefined;
    const at = (key: KeyPath, reason: string): SubscriberProblem => {
      locator ??= new KeyLocator(file.text);
      return { ...problem(path, reason, id), ...locator.find(key), key: key.join(".") };
    };
    const parsed = parseSubscriberFile(content);
    if ("problems" in parsed) return parsed.problems.map((one) => at(one.path, one.reason));
    const { output } = parsed.file;
    const single = await this.#template(output.template, (reason) => at(["output", "template"], reason));
    const batch =
      output.batch_template === undefined
        ? single
        : await this.#template(output.batch_template, (reason) => at(["output", "batch_template"], reason));
    const wrong = [...new Set([single, batch])].filter((one): one is SubscriberProblem => "reason" in one);
    if ("reason" in single || "reason" in batch) return wrong;
    const digest = sha256(JSON.stringify([file.text, single.text, batch.text]));
    return { subscriber: toLoaded(parsed.file, path, digest, single.template, batch.template), text: file.text };
  }

  async #template(
    name: string,
    refuse: (reason: string) => SubscriberProblem,
  ): Promise<CompiledTemplate | SubscriberProblem> {
    const bytesMax = SUBSCRIBER_LIMITS.templateBytes;
    let file = await readInside(this.#folder, name, bytesMax);
    if ("reason" in file && file.missing) {
      const builtIn = await readInside(BUILT_IN_FOLDER, name, bytesMax);
      if (!("reason" in builtIn && builtIn.missing)) file = builtIn;
    }
    if ("reason" in file) return refuse(`the template ${JSON.stringify(name)} ${file.reason}`);
    let compiled = this.#templates.get(file.path);
    if (compiled === undefined) {
      compiled = this.#compile(file.text, name);
      this.#templates.set(file.path, compiled);
    }
    if (!(compiled instanceof TemplateError)) return compiled;
    const inTemplate = { file: file.path, line: compiled.line, column: null };
    return { ...refuse(compiled.reason), ...inTemplate };
  }
}

function compiledOf(text: string, name: string): CompiledTemplate | TemplateError {
  try {
    return { template: compileTemplate(text, name), text };
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
}

function compiledLater(text: string, name: string): CompiledTemplate {
  let compiled: Template | undefined;
  const render: Template["render"] = (context, plain) => {
    compiled ??= compileTemplate(text, name);
    return compiled.render(context, plain);
  };
  return { template: { render }, text };
}

function toLoaded(
  { subscriber, events, batching, output, routing }: SubscriberFile,
  file: string,
  digest: string,
  template: Template,
  batch_template: Template,
): LoadedSubscriber {
  const { address, target, handler } = routing;
  return {
    ...subscriber,
    id: subscriberId(subscriber.id),
    types: [...new Set(events.types)],
    sources: events.sources === undefined ? null : [...new Set(events.sources)],
    severity_filter: events.severity_filter,
    priority: output.priority,
    inject_at: output.inject_at,
    core: output.core,
    batch: { window_ms: batching.window_ms, max_size: batching.max_size },
    dedupe: { key: batching.dedupe_key ?? null, window_ms: batching.dedupe_window_ms },
    axes: { address, target, handler },
    directive: routing.directive ?? null,
    ttl_ms: routing.ttl_ms ?? null,
    wake: output.wake ?? null,
    max_wait_ms: output.max_wait_ms,
    template,
    batch_template,
    built_in: dirname(file) === BUILT_IN_FOLDER,
    file,
    digest,
  };
}

function problem(file: string, reason: string, id: string | null = null): SubscriberProblem {
  return { file, line: null, column: null, key: null, reason, subscriber_file: file, subscriber_id: id };
}

function idIn(content: unknown): string | null {
  const parsed = content as { subscriber?: { id?: unknown } };
  const id = parsed.subscriber?.id;
  return typeof id === "string" ? id : null;
}

function byName(one: string, other: string): number {
  return one < other ? -1 : 1;
}
