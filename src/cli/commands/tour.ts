import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, isMiss, type Miss } from "../../domain/errors.js";
import type { NotificationView } from "../../domain/notification.js";
import type { State } from "../../domain/transitions.js";
import { systemClock } from "../../platform/clock.js";
import { pause } from "../../platform/timers.js";
import { Tidings } from "../../tidings.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import type { Output } from "../output.js";
import { PROGRAM } from "../program.js";
import { mark, stateWord, times } from "../show.js";
import { oneLine, pad, wrap } from "../text.js";
import { showStory } from "./explain.js";

const AGENT_WAIT_MS = 700;
const LETTER_WAIT_MS = 900;
const POLL_MS = 40;
const PATIENCE_MS = 10_000;
const WIDEST = 96;
/** As a shell counts it: 128 and the number of the signal. */
const INTERRUPTED = 130;

export const tour = defineCommand({
  usage: "[--json]",
  about: ["Everything it shows really happens, on a data folder of its own that is removed afterwards."],
  options: {},
  examples: ["tidings tour", "npm start"],
  async run({ words, output }) {
    noWords(words);
    const folder = mkdtempSync(join(tmpdir(), "tidings-tour-"));
    const remove = () => rmSync(folder, { recursive: true, force: true });
    // Also if the reader of our words goes away, or the user has seen enough.
    process.once("exit", remove);
    process.once("SIGINT", () => process.exit(INTERRUPTED));
    const guide = new Guide(output);
    const start = systemClock.monotonic();
    const tidings = await Tidings.open({ data: join(folder, "data") });
    try {
      await guide.open(folder);
      await anEvent(tidings, guide);
      await theSameAgain(tidings, guide);
      const letter = await tidings.notify({
        content: "The certificate of api.example.com expires tomorrow",
        severity: "warning",
        target: "user",
        ttl_ms: LETTER_WAIT_MS,
      });
      const escalated = await anAgentThatIsAway(tidings, guide);
      await theWholeStory(tidings, guide, escalated);
      await aDeadLetter(tidings, guide, letter.id);
      await theProof(tidings, guide);
    } finally {
      await tidings.close();
      remove();
    }
    await guide.close(systemClock.monotonic() - start);
    return EXIT.ok;
  },
});

async function anEvent(tidings: Tidings, guide: Guide): Promise<void> {
  await guide.chapter(
    "Something happens",
    "A build ends while nobody is looking. Its event is on disk before the producer gets its answer, and a subscriber " +
      "turns it into a notification in the user's inbox.",
  );
  const answer = await tidings.emit({
    type: "cli.build.finished",
    source: "ci",
    payload: { message: "main is green, 412 tests passed" },
  });
  const [match] = answer.matches;
  assert(match !== undefined, "a cli event has a subscriber");
  await guide.show(match.notification);
}

async function theSameAgain(tidings: Tidings, guide: Guide): Promise<void> {
  await guide.chapter(
    "It happens again, and again",
    "Three events with one key are one notification. Its third text is a new revision, so an acknowledgement of the " +
      "first text, which the user saw, does not settle the text that the user has not seen.",
  );
  const disk = { type: "cli.disk.low", source: "monitor", severity: "warning", dedupe_key: "disk:/var" } as const;
  await tidings.emit({ ...disk, payload: { message: "/var is 91% full" } });
  await tidings.emit({ ...disk, payload: { message: "/var is 91% full" } });
  const last = await tidings.emit({ ...disk, payload: { message: "/var is 97% full" } });
  const merged = last.matches[0]?.notification;
  assert(merged !== undefined && merged.count === 3, "three events with one key merge");
  await guide.show(merged);
  await guide.miss(await tidings.ack({ id: merged.id, revision: 1, action: "rendered" }));
  await guide.done(await tidings.ack({ id: merged.id, revision: merged.revision, action: "clicked" }));
}

async function anAgentThatIsAway(tidings: Tidings, guide: Guide): Promise<NotificationView> {
  await guide.chapter(
    "One for the agent",
    "Some things the agent should put in its own words. One agent takes its item under a lease and settles it. The " +
      "other item is taken by nobody, so the watchdog takes it to the user instead.",
  );
  const routing = { target: "user", handler: "agent", severity: "error" } as const;
  const left = await tidings.notify({ content: "The deploy of api failed", ...routing, ttl_ms: AGENT_WAIT_MS });
  const taken = await tidings.notify({ content: "Two tests are flaky since Tuesday", ...routing });
  const claim = await tidings.deliveries.claim({ ids: [taken.id], owner: "demo-agent" });
  const [held] = claim.notifications;
  assert(held !== undefined, "a pending agent item can be claimed");
  await guide.show(held);
  const [settled] = await tidings.deliveries.settle([{ id: held.id, epoch: held.lease_epoch }]);
  assert(settled !== undefined, "a held item can be settled");
  await guide.done(settled);
  const waiting = await tidings.read(left.id);
  if (!isMiss(waiting)) await guide.show(waiting);
  const escalated = await reached(tidings, left.id, "ESCALATED");
  await guide.show(escalated);
  const seen = await tidings.ack({ id: left.id, revision: escalated.revision, action: "clicked" });
  await guide.done(seen);
  return escalated;
}

async function theWholeStory(tidings: Tidings, guide: Guide, notification: NotificationView): Promise<void> {
  await guide.chapter("Why did I get this?", "`tidings explain` tells the whole way of anything, from the journal:");
  const explanation = await tidings.explain(notification.id);
  assert(!isMiss(explanation), "what is in the ledger can be explained");
  await guide.tell(explanation.story);
}

async function aDeadLetter(tidings: Tidings, guide: Guide, id: string): Promise<void> {
  await guide.chapter(
    "Nobody looked",
    "What is shown and never acknowledged becomes a dead letter. It stays on record, and can be sent again, once: as a " +
      "new notification that names it.",
  );
  await guide.show(await reached(tidings, id, "FAILED"));
  const again = await tidings.redrive(id);
  assert(!isMiss(again), "a dead letter can be redriven");
  await guide.show(again);
  await guide.miss(await tidings.redrive(id));
  await guide.done(await tidings.ack({ id: again.id, revision: again.revision, action: "dismissed" }));
}

async function theProof(tidings: Tidings, guide: Guide): Promise<void> {
  await guide.chapter("And nothing was lost", "`tidings audit` replays the journal and compares it with the ledger:");
  const report = await tidings.audit();
  assert(report.ok, `the tour left ${report.problems.length} problems behind`);
  const { entries, events, notifications } = report.checked;
  await guide.verdict(`${entries} journal entries, ${events} events, ${notifications} notifications: sound.`);
}

/** Waits until the watchdog has acted. */
async function reached(tidings: Tidings, id: string, state: State): Promise<NotificationView> {
  for (let waited = 0; waited < PATIENCE_MS; waited += POLL_MS) {
    const found = await tidings.read(id);
    if (!isMiss(found) && found.state === state) return found;
    await pause(POLL_MS);
  }
  throw new Error(`notification ${id} did not become ${state} within ${PATIENCE_MS} ms`);
}

const NEXT: readonly (readonly [string, string])[] = [
  ['emit cli.hello --message "It works"', "an event, to your inbox"],
  ["inbox", "what you have not read"],
  ["ledger", "everything, and where it stands"],
  ["--help", "all commands"],
];

interface Chapter {
  title: string;
  shown: { id: string; state: State; channel: string; content: string; count: number }[];
}

/** Speaks: in words, or as one JSON value at the end. */
class Guide {
  readonly #output: Output;
  readonly #width: number;
  readonly #chapters: Chapter[] = [];

  constructor(output: Output) {
    this.#output = output;
    this.#width = Math.min(output.width, WIDEST);
  }

  async open(folder: string): Promise<void> {
    const output = this.#output;
    await this.#line(output.style("bold", "Tidings: the notification plane for AI agents"));
    await this.#line(output.style("gray", `A short tour, on ${folder}, which is removed at the end.`));
  }

  async chapter(title: string, words: string): Promise<void> {
    this.#chapters.push({ title, shown: [] });
    await this.#line();
    await this.#line(this.#output.style(["bold", "cyan"], `${this.#chapters.length}  ${title}`));
    for (const line of wrap(words, this.#width - 3)) await this.#line(`   ${line}`);
    await this.#line();
  }

  /** A notification and where it is. */
  async show(notification: NotificationView): Promise<void> {
    const output = this.#output;
    const { id, state, channel, content, count, severity, reason } = notification;
    this.#chapters.at(-1)?.shown.push({ id, state, channel, content, count });
    const where = reason === null ? channel : `${channel}: ${reason}`;
    const often = times(notification);
    const text = often === "" ? oneLine(content) : `${oneLine(content)} ${output.style("bold", often)}`;
    await this.#line(
      `   ${mark(severity, output)} ${stateWord(state, output, 10)} ${text} ${output.style("gray", `· ${where}`)}`,
    );
  }

  async done(answer: NotificationView | Miss): Promise<void> {
    assert(!isMiss(answer), "an item of the tour is acknowledged once");
    const { id, state, channel, content, count, action } = answer;
    this.#chapters.at(-1)?.shown.push({ id, state, channel, content, count });
    const how = action === null ? "settled by the agent" : `${action} by the user`;
    await this.#line(`     ${stateWord(state, this.#output, 10)} ${this.#output.style("gray", how)}`);
  }

  /** Nothing changed, as it should be. */
  async miss(answer: NotificationView | Miss): Promise<void> {
    assert(isMiss(answer), "the tour expected a miss here");
    const [first = "", ...rest] = wrap(answer.message, this.#width - 16);
    await this.#line(`     ${this.#output.style("yellow", "refused   ")} ${first}`);
    for (const line of rest) await this.#line(`                ${line}`);
  }

  async tell(story: Parameters<typeof showStory>[0]): Promise<void> {
    if (!this.#output.json) await showStory(story, this.#output, 3);
  }

  async verdict(text: string): Promise<void> {
    await this.#line(`   ${this.#output.style("green", "✔")} ${text}`);
  }

  async close(tookMs: number): Promise<void> {
    const output = this.#output;
    if (output.json) {
      await output.value({ ok: true, took_ms: Math.round(tookMs), chapters: this.#chapters });
      return;
    }
    await this.#line();
    await this.#line(output.style("bold", "Try it yourself"));
    for (const [command, words] of NEXT)
      await this.#line(`   ${output.style("cyan", pad(`${PROGRAM} ${command}`, PROGRAM.length + 39))} ${words}`);
    await this.#line();
    await this.#line(output.style("gray", `That was ${(tookMs / 1000).toFixed(1)} s of real work.`));
  }

  async #line(text = ""): Promise<void> {
    if (!this.#output.json) await this.#output.line(text);
  }
}
