/**
 * The load of one life of the server: producers, browsers and an admin, dozens of requests in flight, until the
 * server ends. Everything that is asked for and everything that is answered is told to the oracle.
 */
import { isMiss } from "../../dist/index.js";
import { BATCHED_TYPES, newChoice } from "./batches.mjs";
import { LostAnswer, Refused } from "./http_client.mjs";
import { newEvent, newNotify, pool, told, USERS, wordsOf } from "./load.mjs";

const CALLERS = 48;
/** Every channel that the subscribers of the server reach; `load.nobody` matches none of them. */
const TYPES = [
  "cli.build.finished",
  "budget.token.exceeded",
  "subagent.task.finished",
  "mcp.server.dropped",
  "tool.call.failure",
  "load.nobody",
  ...BATCHED_TYPES,
];
const POINTS = ["turn_start", "user_message", "after_tool", "after_tool", "turn_end", "immediate"];
const WEIGHTS = {
  emit: 30,
  emitByRpc: 5,
  emitMany: 4,
  resend: 5,
  sendTwice: 2,
  notify: 12,
  ack: 26,
  collect: 8,
  settleCarrier: 5,
  failCarrier: 2,
  renewCarrier: 1,
  settings: 1.5,
  read: 4,
  redrive: 5,
  token: 1.5,
  tab: 1,
};
const PRUNE_OLDER_THAN_MS = [500, 2_000];
const TOO_SLOW_CODE = 1013;
const ORDERLY_CODES = new Set([1000, 1001, 1005, 1006, TOO_SLOW_CODE]);

export class Load {
  #door;
  #accounts;
  #screens;
  #oracle;
  #tally;
  #random;
  #onAnswer;
  #life;
  #also;
  #nextToken;
  #tabs;
  #known;
  #sent;
  #delivered;
  #carriers;
  /** Users whose choice is being written: one at a time, so that the newest answer is the newest choice. */
  #choosing = new Set();
  #ending = false;

  constructor({ door, accounts, screens, oracle, tally, random, life, tabs, also, onAnswer }) {
    this.#door = door;
    this.#accounts = accounts;
    this.#screens = screens;
    this.#oracle = oracle;
    this.#tally = tally;
    this.#random = random;
    this.#onAnswer = onAnswer;
    this.#life = life;
    this.#nextToken = wordsOf(life);
    this.#tabs = tabs;
    this.#known = pool(random);
    this.#sent = pool(random);
    this.#delivered = pool(random);
    this.#carriers = pool(random);
    this.#also = also;
    for (const tab of tabs) this.#watch(tab);
  }

  /** Goes on until nobody asks for anything any more, since the server has ended. */
  async run() {
    await this.#openThreads();
    const callers = Array.from({ length: CALLERS }, () => this.#call());
    await Promise.all([...callers, ...(this.#also === "prune" ? [this.#prune()] : [])]);
  }

  /** The server is about to be told to end: from then on it may refuse. */
  ending() {
    this.#ending = true;
  }

  async #call() {
    for (;;) {
      const operation = this.#random.weighted(WEIGHTS);
      try {
        await this[operation]();
      } catch (error) {
        if (error instanceof LostAnswer) return;
        if (!this.#ending) this.#oracle.problem(`${operation} failed in life ${this.#life}: ${error.stack}`);
        return;
      }
    }
  }

  /** The user's thread of this life. */
  #threadOf = (user_id) => `${user_id}-${this.#life}`;

  /** A thread is opened by its first event, which only admin's token may send. */
  async #openThreads() {
    try {
      for (const user_id of USERS) {
        const { token, event } = this.#nextEvent();
        Object.assign(event, { user_id, thread_id: this.#threadOf(user_id) });
        this.#intend(token, event);
        this.#answeredEmit("emit", token, await this.#door.admin.events(event));
      }
    } catch (error) {
      if (!(error instanceof LostAnswer)) throw error;
    }
  }

  #nextEvent() {
    return newEvent(this.#random, { token: this.#nextToken(), types: TYPES, threadOf: this.#threadOf });
  }

  #producer(user_id) {
    return this.#door.with(this.#accounts.producer(user_id));
  }

  #browser(user_id) {
    return this.#door.with(this.#accounts.browser(user_id));
  }

  #agent(user_id) {
    return this.#door.with(this.#accounts.agent(user_id));
  }

  #intend(token, event) {
    this.#oracle.take({ tell: "intent", token, ...(event.id === undefined ? {} : { event }) });
  }

  #answeredEmit(operation, token, { id, seq, outcome, matches }) {
    const views = matches.map(({ notification }) => notification);
    const fates = matches.map((match) => [match.subscriber_id, match.outcome, match.notification.id]);
    const line = { tell: "answer", operation, token, event: id, seq, outcome, told: views.map(told) };
    this.#oracle.take({ ...line, matches: fates });
    for (const view of views) this.#made(view);
    this.#onAnswer();
  }

  #made({ id, user_id, channel }) {
    this.#known.add({ id, user_id });
    this.#tally.channels[channel] = (this.#tally.channels[channel] ?? 0) + 1;
  }

  #answered(operation, views, more = {}) {
    const hits = views.filter((view) => !isMiss(view));
    this.#oracle.take({ tell: "answer", operation, told: hits.map(told), misses: views.length - hits.length, ...more });
    this.#onAnswer();
  }

  async emit() {
    const { token, event } = this.#nextEvent();
    this.#intend(token, event);
    this.#answeredEmit("emit", token, await this.#producer(event.user_id).events(event));
    if (event.id !== undefined) this.#sent.add({ token, event });
  }

  async emitByRpc() {
    const { token, event } = this.#nextEvent();
    this.#intend(token, event);
    this.#answeredEmit("emitByRpc", token, await this.#producer(event.user_id).call("event/emit", event));
  }

  /** Of one user, or of several, which only admin's token may send in one request. */
  async emitMany() {
    const drawn = Array.from({ length: this.#random.between(2, 20) }, () => this.#nextEvent());
    const [{ event: first }] = drawn;
    const ofOne = this.#random.chance(0.5);
    const events = ofOne ? drawn.filter(({ event }) => event.user_id === first.user_id) : drawn;
    const client = ofOne ? this.#producer(first.user_id) : this.#door.admin;
    for (const { token, event } of events) this.#intend(token, event);
    const answers = await client.events(events.map(({ event }) => event));
    for (const [index, answer] of answers.entries()) {
      if (answer.error !== undefined) throw new Error(`one event of many: ${JSON.stringify(answer.error)}`);
      this.#answeredEmit("emitMany", events[index].token, answer);
    }
  }

  /** The producer does not know that it was answered, and sends again. */
  async resend() {
    const before = this.#sent.look();
    if (before === undefined) return this.emit();
    const { token, event } = before;
    this.#intend(token, event);
    this.#answeredEmit("resend", token, await this.#producer(event.user_id).events(event));
  }

  /** The producer does not wait for its answer, and sends again. */
  async sendTwice() {
    const { token, event } = this.#nextEvent();
    event.id ??= `p-${token}`;
    const client = this.#producer(event.user_id);
    const send = async () => {
      this.#intend(token, event);
      this.#answeredEmit("sendTwice", token, await client.events(event));
    };
    await both(send(), send());
  }

  async notify() {
    const token = this.#nextToken();
    const input = newNotify(this.#random, { token, threadOf: this.#threadOf });
    this.#oracle.take({ tell: "intent", token });
    const { id, seq, state, channel } = await this.#producer(input.user_id).call("notification/notify", input);
    // A notify answers no revision or epoch: 0 promises nothing of them.
    this.#oracle.take({ tell: "answer", operation: "notify", token, seq, told: [[id, state, 0, 0, 0]] });
    this.#made({ id, user_id: input.user_id, channel });
    this.#onAnswer();
  }

  /** What a tab shows, by that tab; now and then by HTTP, and now and then once more, as read. */
  async ack() {
    const tab = this.#random.pick(this.#tabs);
    const again = this.#random.chance(0.1) ? this.#delivered.look() : undefined;
    const [id, revision] = this.#random.pick([...tab.waiting]) ?? [];
    const { user_id, ...ack } = again ?? { id, revision, user_id: tab.user_id };
    if (ack.id === undefined) return this.emit();
    ack.action = this.#random.pick(["rendered", "clicked", "dismissed"]);
    this.#screens.acknowledging(ack.id);
    const bySocket = user_id === tab.user_id && !tab.isClosed && this.#random.chance(0.8);
    const answer = await (bySocket ? tab : this.#browser(user_id)).call("notification/ack", ack).catch((error) => {
      // Its user may have closed the tab meanwhile; if it was the server, the next call will tell.
      if (!bySocket || !(error instanceof LostAnswer)) throw error;
    });
    if (answer === undefined) return;
    this.#answered("ack", [answer]);
    if (!isMiss(answer)) this.#delivered.add({ id: ack.id, revision: ack.revision, user_id });
  }

  /** An agent takes what its thread has for it; another one may hold the thread. */
  async collect() {
    const user_id = this.#random.pick(USERS);
    const auto_settle = this.#random.chance(0.2);
    const params = {
      thread_id: this.#threadOf(user_id),
      point: this.#random.pick(POINTS),
      owner: this.#random.pick(["one agent", "one agent", "another"]),
      lease_ms: this.#random.between(150, 800),
      limit: this.#random.between(1, 12),
      auto_settle,
    };
    const answer = await this.#agent(user_id)
      .call("agent/collect", params)
      .catch((error) => {
        if (!(error instanceof Refused) || error.reason !== "thread_held") throw error;
        return { carrier: null };
      });
    const { carrier } = answer;
    // What is told and needs no answer is settled by the collect itself.
    const stateOf = ({ must_narrate }) => (auto_settle && !must_narrate ? "DELIVERED" : "LOCKED");
    const items = (carrier?.notifications ?? []).map((view) => [view.id, stateOf(view), view.revision, 0, view.count]);
    this.#oracle.take({ tell: "answer", operation: "collect", told: items, misses: carrier === null ? 1 : 0 });
    this.#onAnswer();
    if (carrier !== null) this.#carriers.add({ ...carrier, user_id });
  }

  async settleCarrier() {
    const carrier = this.#carriers.take();
    if (carrier === undefined) return this.collect();
    const ids = carrier.notifications.filter(({ must_narrate }) => must_narrate).map(({ id }) => id);
    const acknowledged_ids = this.#random.chance(0.7) ? ids : [];
    await this.#endCarrier("settleCarrier", "agent/settle", carrier, { acknowledged_ids });
  }

  async failCarrier() {
    const carrier = this.#carriers.take();
    if (carrier === undefined) return this.collect();
    await this.#endCarrier("failCarrier", "agent/fail", carrier, { reason: "the provider was away" });
  }

  async #endCarrier(operation, method, { id, user_id }, more) {
    const answer = await this.#agent(user_id).call(method, { carrier_id: id, ...more });
    const items = isMiss(answer) ? [] : answer.notifications.map((item) => [item.id, item.state, 0, 0, 0]);
    this.#oracle.take({ tell: "answer", operation, told: items, misses: isMiss(answer) ? 1 : 0 });
    this.#onAnswer();
  }

  async renewCarrier() {
    const carrier = this.#carriers.look();
    if (carrier === undefined) return this.collect();
    const lease_ms = this.#random.between(150, 800);
    const answer = await this.#agent(carrier.user_id).call("agent/renew", { carrier_id: carrier.id, lease_ms });
    this.#oracle.take({ tell: "answer", operation: "renewCarrier", told: [], misses: isMiss(answer) ? 1 : 0 });
    this.#onAnswer();
  }

  /** A user switches some subscribers off, and the others on. */
  async settings() {
    const user_id = this.#random.pick(USERS);
    if (this.#choosing.has(user_id)) return this.emit();
    this.#choosing.add(user_id);
    const choice = newChoice(this.#random);
    this.#oracle.take({ tell: "choosing", user_id, choice });
    await this.#browser(user_id).call("settings/update", { disabled_subscribers: choice });
    this.#oracle.take({ tell: "answer", operation: "settings", user_id, choice, told: [] });
    this.#choosing.delete(user_id);
    this.#onAnswer();
  }

  /** Reading is a promise too: what was shown settled stays settled. */
  async read() {
    const item = this.#known.look();
    if (item === undefined) return this.emit();
    this.#answered("read", [await this.#browser(item.user_id).call("notification/read", { id: item.id })]);
  }

  async redrive() {
    const client = this.#browser(this.#random.pick(USERS));
    const { notifications } = await client.call("notification/list", { state: "FAILED", limit: 20 });
    this.#answered("list", notifications);
    if (notifications.length === 0) return;
    const { id } = this.#random.pick(notifications);
    const answer = await client.call("notification/redrive", { id });
    this.#answered("redrive", [answer], isMiss(answer) ? {} : { redriven: id });
  }

  /** One that stays good, or one that is revoked, and then opens nothing. */
  async token() {
    const { admin } = this.#door;
    const accounts = this.#accounts;
    const made = await accounts.create(admin, { user_id: this.#random.pick(USERS), scopes: ["read"] });
    this.#onAnswer();
    if (this.#random.chance(0.4) || !accounts.mayTry) return;
    await accounts.revoke(admin, made);
    this.#onAnswer();
    if (await accounts.isGood(this.#door, made)) this.#oracle.problem(`the token ${made.id} is revoked, and good`);
  }

  /** A user closes a tab and opens another one. */
  async tab() {
    const index = this.#random.between(0, this.#tabs.length - 1);
    const old = this.#tabs[index];
    const { user_id } = old;
    const asBrowser = this.#random.chance(0.5);
    const token = this.#accounts.browser(user_id);
    const tab = await this.#screens.open({ door: this.#door, token, user_id, asBrowser });
    this.#watch(tab);
    this.#tabs[index] = tab;
    old.close();
  }

  /** A tab may be closed by its user, by the server's end, or because it could not follow; never by a defect. */
  #watch(tab) {
    void tab.closed.then(({ code, reason }) => {
      if (!ORDERLY_CODES.has(code)) this.#oracle.problem(`a tab of ${tab.user_id} was closed with ${code}: ${reason}`);
    });
  }

  async #prune() {
    try {
      for (;;) {
        const [least, most] = PRUNE_OLDER_THAN_MS;
        this.#oracle.take({ tell: "pruning" });
        await this.#door.admin.call("runtime/prune", { older_than_ms: this.#random.between(least, most) });
        this.#oracle.take({ tell: "answer", operation: "prune", told: [] });
        this.#onAnswer();
        await new Promise((resolve) => setTimeout(resolve, this.#random.between(20, 200)));
      }
    } catch (error) {
      if (!(error instanceof LostAnswer || this.#ending)) this.#oracle.problem(`prune failed: ${error.stack}`);
    }
  }
}

/** Waits for both, also if one of them fails. */
async function both(one, other) {
  for (const settled of await Promise.allSettled([one, other])) if (settled.status === "rejected") throw settled.reason;
}
