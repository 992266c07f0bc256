/**
 * The kill loop over HTTP: starts the real server on a folder, drives it as its clients do, ends it with SIGKILL (at
 * a random moment, while it opens, or at a named point between two statements) or in order with SIGTERM, starts it
 * again on what is left, and asks it, over HTTP, for everything that it ever promised.
 */

import { Tidings } from "../../dist/index.js";
import { STORE_POINTS } from "../../dist/platform/crashpoint.js";
import { writeSubscribers } from "./batches.mjs";
import { runLives } from "./folder.mjs";
import { Accounts } from "./http_accounts.mjs";
import { Door, LostAnswer } from "./http_client.mjs";
import { Load } from "./http_load.mjs";
import { Screens } from "./http_screens.mjs";
import { run, Server, serverFile, touched } from "./http_server.mjs";
import { USERS } from "./load.mjs";
import { randomFrom } from "./random.mjs";
import { newTally, total } from "./tally.mjs";

export { newTally };

/** A life that lasts longer than this has not met its end, which is a problem of its own. */
const LIFE_MS_MAX = 60_000;
/** Of the events of earlier lives, so many are asked for again by their ids after each kill. */
const EXPLAINED_BEFORE = 200;
/** How an orderly end closes a tab: it goes away, or the tab could not follow and was closed before. */
const CODES_AT_END = [1001, 1013];

/** Nobody can close a thread over HTTP yet. */
const UNREACHED = ["thread.closing"];
export const POINTS = STORE_POINTS.filter((point) => !UNREACHED.includes(point));

const ANY_END = { moment: 5, point: 4, opening: 1, term: 1 };

/** @type {import("./plan.mjs").Rules} */
export const RULES = {
  folders: {
    plain: { share: 5, lives: 10, ends: ANY_END },
    prune: { share: 1.5, lives: 6, ends: ANY_END, also: "prune" },
    // Cut while it is made; once made it is fresh no more.
    fresh: { share: 1, lives: 1, ends: { opening: 1 } },
  },
  answers: 600,
  points: POINTS,
  passages: { "claim.leased": 12, "commit.begun": 40, "commit.before": 40, "commit.after": 40 },
  passagesOtherwise: 150,
  beside: 0.2,
};

/** Puts one folder through its lives, or up to the first problem; adds to the tally. */
export function runFolder(plan, tally, options = {}) {
  return runLives(plan, tally, options, (parts) => new HttpRig(parts));
}

class HttpRig {
  #folder;
  #oracle;
  #tally;
  #also;
  #accounts;
  #screens;
  /** How many events were answered when they were last asked for by their ids. */
  #explained = 0;

  constructor({ folder, oracle, tally, also }) {
    this.#folder = folder;
    this.#oracle = oracle;
    this.#tally = tally;
    this.#also = also;
    this.#accounts = new Accounts(oracle);
    this.#screens = new Screens(oracle, tally);
    writeSubscribers(folder);
  }

  /** One life, from start to its end. A point ends it from inside; everything else does so from here. */
  async live({ life, end, seed }) {
    const stale = serverFile(this.#folder);
    if (stale !== undefined) this.#tally.stale += 1;
    const opening = end.how === "opening" ? touched(this.#folder) : undefined;
    const server = new Server(this.#folder, end.how === "point" ? `${end.point}:${end.passage}` : undefined);
    let overdue = false;
    const limit = setTimeout(() => {
      overdue = true;
      server.signal("SIGKILL");
    }, LIFE_MS_MAX);
    try {
      if (opening !== undefined) {
        await Promise.race([opening, server.ended]);
        setTimeout(() => server.signal("SIGKILL"), end.delayMs);
      }
      const ready = await server.ready;
      if (ready !== undefined && opening === undefined) await this.#serve(server, ready, { life, end, seed });
      return { ...(await server.ended), overdue, opened: ready !== undefined };
    } finally {
      clearTimeout(limit);
      await gone(server);
    }
  }

  /** After every life, with the server stopped: as its end left it, nobody has opened it since. */
  async after({ life, end }) {
    await this.#audit(`after life ${life}`);
    if (end.how === "term") await this.#mustBeClosed();
  }

  /** Whoever ends in order words what is open. */
  async #mustBeClosed() {
    const reader = await Tidings.open({ data: this.#folder, mode: "read" });
    try {
      const { notifications } = await reader.list({ state: "PENDING", limit: 1_000 });
      for (const { id, open_until } of notifications)
        if (open_until !== null) this.#oracle.problem(`the server ended in order, and left the batch ${id} open`);
    } finally {
      await reader.close();
    }
  }

  /** One more server, which is asked for everything and ended in order. */
  async finish(life) {
    const server = new Server(this.#folder);
    try {
      const ready = await server.ready;
      if (ready === undefined) throw new Error(`the server did not start: ${(await server.ended).stderr}`);
      const door = new Door(ready);
      await this.#accounts.enter(door.admin);
      await this.#examine(door, life, Number.POSITIVE_INFINITY);
      door.close();
      server.signal("SIGTERM");
      this.#mustHaveEndedInOrder(await server.ended);
    } finally {
      await gone(server);
    }
    await this.#audit("at the end");
  }

  async #serve(server, ready, { life, end, seed }) {
    const { mode, ...file } = serverFile(this.#folder);
    if (JSON.stringify(file) !== JSON.stringify(ready) || mode !== 0o600)
      this.#oracle.problem(`the server said ${JSON.stringify(ready)} and wrote ${JSON.stringify({ ...file, mode })}`);
    const door = new Door(ready);
    try {
      await this.#accounts.enter(door.admin);
      // A point may be passed while the folder is examined, so the life that ends there is not; the next one is.
      const examined = end.how === "moment" || end.how === "term";
      const tabs = examined ? await this.#examine(door, life) : await this.#openTabs(door);
      if (this.#oracle.problems.length === 0) await this.#load({ server, door, tabs, life, end, seed });
      else server.signal("SIGKILL");
    } catch (error) {
      // How it ended instead is told by its end.
      if (!(error instanceof LostAnswer)) throw error;
    } finally {
      door.close();
    }
  }

  async #load({ server, door, tabs, life, end, seed }) {
    const random = randomFrom(seed);
    let answers = 0;
    let load;
    const finish = () => {
      load.ending();
      server.signal(end.how === "term" ? "SIGTERM" : "SIGKILL");
    };
    const enough = async () => {
      if (end.auditBeside) await this.#audit(`beside life ${life}`, "auditedBeside");
      // With no delay right at the answer: what it promised must be there already.
      if (end.delayMs === 0) finish();
      else setTimeout(finish, end.delayMs);
    };
    const onAnswer = () => {
      answers += 1;
      if (end.how !== "point" && answers === end.answers) void enough();
    };
    const parts = { accounts: this.#accounts, screens: this.#screens, oracle: this.#oracle, also: this.#also };
    load = new Load({ ...parts, tally: this.#tally, door, tabs, life, random, onAnswer });
    const over = load.run();
    const ended = await server.ended;
    await over;
    if (end.how !== "term") {
      // It says nothing there unless something is wrong with it.
      if (ended.stderr !== "") this.#oracle.problem(`the server of life ${life} said: ${ended.stderr}`);
      return;
    }
    this.#mustHaveEndedInOrder(ended);
    for (const tab of tabs) {
      const { code } = await tab.closed;
      if (!CODES_AT_END.includes(code))
        this.#oracle.problem(`the server ended in order, and closed a tab with ${code}`);
    }
  }

  #mustHaveEndedInOrder({ code, signal, stderr }) {
    if (code !== 0) this.#oracle.problem(`SIGTERM: code ${code}, signal ${signal}: ${stderr}`);
    if (serverFile(this.#folder) !== undefined) this.#oracle.problem("the server ended in order and left its file");
  }

  /** Two tabs of one user, one of each other; some say who they are as a browser has to. */
  #openTabs(door) {
    return Promise.all(
      [USERS[0], ...USERS].map((user_id, index) =>
        this.#screens.open({ door, token: this.#accounts.browser(user_id), user_id, asBrowser: index % 2 === 0 }),
      ),
    );
  }

  /** Everything that was ever promised, before anybody else asks for anything. Answers the tabs that came back. */
  async #examine(door, life, explained = this.#oracle.eventsAnswered - this.#explained + EXPLAINED_BEFORE) {
    const { last_seq } = await door.admin.call("runtime/status", {});
    const tabs = await this.#openTabs(door);
    const { onEntry, finish } = this.#screens.comparison();
    const reader = await Tidings.open({ data: this.#folder, mode: "read" });
    let views;
    try {
      views = await this.#oracle.examine(this.#planeOf(door, reader), { life, explained, onEntry });
    } finally {
      await reader.close();
    }
    this.#explained = this.#oracle.eventsAnswered;
    const { floor_seq } = await door.admin.call("runtime/status", {});
    finish(floor_seq);
    for (const tab of tabs) await this.#screens.showAgain(tab, last_seq, views);
    await this.#accounts.examine(door);
    return tabs;
  }

  /** The server as the oracle asks it; the journal, which it does not give out yet, is read beside it. */
  #planeOf({ admin }, reader) {
    return {
      emit: (event) => admin.events(event),
      list: (filter) => admin.call("notification/list", filter),
      facts: () => admin.call("runtime/status", {}),
      explain: (ids) =>
        admin.calls(
          "notification/explain",
          ids.map((id) => ({ id })),
        ),
      journal: () => reader.watch({ after: 0 }),
      settings: (user_id) => admin.call("settings/get", { user_id }),
    };
  }

  async #audit(when, counted = "audited") {
    const { code, stdout, stderr } = await run(["audit", "--json", "--data", this.#folder]);
    // Killed before there was a store: a reader says that a writer must come first.
    if (total(this.#oracle.answers) === 0 && code !== 0 && code !== 1) return;
    if (code === 0 && JSON.parse(stdout).ok) this.#tally[counted] += 1;
    else this.#oracle.problem(`audit ${when}: code ${code}: ${stdout.slice(0, 2_000)}${stderr}`);
  }
}

/** Whatever went wrong before, no server is left behind. */
async function gone(server) {
  server.signal("SIGKILL");
  await server.ended;
}
