/**
 * A browser's tab: a WebSocket client of one user. It looks at every frame as it comes (whose it is, in which order,
 * after which one), remembers what it was shown, and acknowledges it by the same connection.
 */
import { WebSocket } from "ws";
import { LostAnswer, resultOf } from "./http_client.mjs";
import { told } from "./load.mjs";

const LIVE = new Set(["DISPATCHED", "ESCALATED"]);

export class Tab {
  user_id;
  /** Every push, in the order in which it came. */
  frames = [];
  /** What it was ever shown as something that waits. */
  ids = new Set();
  /** What it shows now and nobody has acknowledged, with the revision that is shown. */
  waiting = new Map();
  /** The newest `inbox/counts`; undefined before the first. */
  counts;
  journalId;
  /** Resolves with the code and the reason. */
  closed;
  isClosed = false;
  #socket;
  #oracle;
  #calls = new Map();
  #id = 0;
  #listeners = new Set();

  /** Opens one; resolves when it was told the counts, which come after what waits. */
  static async open({ url, token, user_id, oracle, asBrowser }) {
    const tab = new Tab({ url, token, user_id, oracle, asBrowser });
    const refused = tab.closed.then(({ code, reason }) => {
      throw new LostAnswer(`the WebSocket was closed: ${code} ${reason}`);
    });
    await Promise.race([tab.until(() => tab.counts !== undefined), refused]);
    return tab;
  }

  constructor({ url, token, user_id, oracle, asBrowser }) {
    this.user_id = user_id;
    this.#oracle = oracle;
    const address = `${url.replace("http", "ws")}/ws`;
    // A browser cannot set a header on a WebSocket.
    this.#socket = asBrowser
      ? new WebSocket(address, ["tidings.v1", `bearer.${token}`])
      : new WebSocket(address, { headers: { authorization: `Bearer ${token}` } });
    this.#socket.on("error", () => {});
    this.#socket.on("message", (data) => this.#take(JSON.parse(data)));
    this.closed = new Promise((resolve) => {
      this.#socket.on("close", (code, reason) => {
        this.isClosed = true;
        for (const { reject } of this.#calls.values()) reject(new LostAnswer("the WebSocket was closed"));
        this.#calls.clear();
        resolve({ code, reason: String(reason) });
      });
    });
  }

  call(method, params) {
    if (this.isClosed) return Promise.reject(new LostAnswer("the WebSocket is closed"));
    this.#id += 1;
    const id = this.#id;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  /** Resolves as soon as it is so; looks again after every frame. */
  until(isSo) {
    return new Promise((resolve) => {
      const look = () => {
        if (!isSo()) return;
        this.#listeners.delete(look);
        resolve();
      };
      this.#listeners.add(look);
      look();
    });
  }

  close() {
    this.#socket.close();
  }

  #take(message) {
    if (message.method === undefined) this.#answered(message);
    else if (message.method === "inbox/counts") this.counts = message.params;
    else this.#push(message);
    for (const look of [...this.#listeners]) look();
  }

  #answered(message) {
    const call = this.#calls.get(message.id);
    this.#calls.delete(message.id);
    try {
      call.resolve(resultOf(message, "WebSocket"));
    } catch (error) {
      call.reject(error);
    }
  }

  #push({ method, params }) {
    const { notification, seq, prev_seq, journal_id } = params;
    const { id, user_id, state, revision, count } = notification;
    const last = this.frames.at(-1);
    if (user_id !== this.user_id) this.#oracle.problem(`${id} of ${user_id} was shown to ${this.user_id}`);
    if (prev_seq !== (last?.seq ?? null))
      this.#oracle.problem(`${this.user_id} was shown seq ${seq} after ${prev_seq}, and had ${last?.seq} before it`);
    if (last !== undefined && seq < last.seq)
      this.#oracle.problem(`${this.user_id} was shown seq ${seq} after the newer ${last.seq}`);
    this.journalId ??= journal_id;
    if (journal_id !== this.journalId) this.#oracle.problem(`the journal ${this.journalId} became ${journal_id}`);
    this.frames.push({ seq, id, kind: method, state, revision, count });
    if (LIVE.has(state)) {
      this.ids.add(id);
      this.waiting.set(id, revision);
    } else this.waiting.delete(id);
    this.#oracle.take({ tell: "shown", told: told(notification), seq });
  }
}
