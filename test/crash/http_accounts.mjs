/** Tokens: what the server said of each, and whether it stays so over all its lives. */
import { isMiss } from "../../dist/index.js";
import { Refused } from "./http_client.mjs";
import { Tab } from "./http_tab.mjs";
import { USERS } from "./load.mjs";

/** Who tries without a good token too often has to wait, so only the newest are tried. */
const TRIED = 20;
const REFUSED_MAX = 60;
const CLOSE_MS = 10_000;
const REVOKED_CODE = 1008;

export class Accounts {
  #oracle;
  /** Lasting ones of each user: one to send with, one to look and acknowledge with, one for the agent. */
  #lasting = new Map();
  /** Every one that was answered: its text, and whether it is `good`, `revoking` (asked, not answered) or `revoked`. */
  #made = [];
  #refused = 0;

  constructor(oracle) {
    this.#oracle = oracle;
  }

  /** A server is up: makes the lasting tokens, unless they are there from an earlier life. */
  async enter(admin) {
    this.#refused = 0;
    for (const user_id of USERS) {
      const own = this.#lasting.get(user_id) ?? {};
      this.#lasting.set(user_id, own);
      own.producer ??= await this.create(admin, { user_id, scopes: ["ingest"] });
      own.browser ??= await this.create(admin, { user_id, scopes: ["read", "ack"] });
      own.agent ??= await this.create(admin, { user_id, scopes: ["agent"] });
    }
  }

  /** Reports events. */
  producer(user_id) {
    return this.#lasting.get(user_id).producer.token;
  }

  /** Sees and acknowledges. */
  browser(user_id) {
    return this.#lasting.get(user_id).browser.token;
  }

  /** Collects, and says what became of it. */
  agent(user_id) {
    return this.#lasting.get(user_id).agent.token;
  }

  async create(admin, input) {
    const { token, id, user_id } = await admin.call("token/create", input);
    this.#oracle.take({ tell: "answer", operation: "token_create", told: [] });
    const made = { token, id, user_id, standing: "good" };
    this.#made.push(made);
    return made;
  }

  async revoke(admin, made) {
    made.standing = "revoking";
    const answer = await admin.call("token/revoke", { id: made.id });
    made.standing = "revoked";
    this.#oracle.take({ tell: "answer", operation: "token_revoke", told: [] });
    if (isMiss(answer)) this.#oracle.problem(`the token ${made.id} was made and could not be revoked`);
  }

  /** Whether it opens the door now, for whatever it may do there. */
  async isGood(door, { token }) {
    try {
      await door.with(token).call("runtime/status", {});
      return true;
    } catch (error) {
      if (!(error instanceof Refused) || (error.status !== 401 && error.status !== 403)) throw error;
      this.#refused += 1;
      return error.status === 403;
    }
  }

  /** Whether a try that will be refused may still be made in this life. */
  get mayTry() {
    return this.#refused < REFUSED_MAX;
  }

  /** After a restart: each token by the server's list, and the newest by trying them. */
  async examine(door, oracle = this.#oracle) {
    const { tokens } = await door.admin.call("token/list", {});
    const listed = new Map(tokens.map((token) => [token.id, token]));
    for (const made of this.#made) {
      const found = listed.get(made.id);
      if (found === undefined) oracle.problem(`the token ${made.id} was answered and is not there`);
      else if (made.standing === "revoking") made.standing = found.revoked_at === null ? "good" : "revoked";
      else if ((found.revoked_at === null) !== (made.standing === "good"))
        oracle.problem(`the token ${made.id} was answered ${made.standing} and was revoked at ${found.revoked_at}`);
    }
    for (const standing of ["good", "revoked"]) {
      for (const made of this.#made.filter((one) => one.standing === standing).slice(-TRIED))
        if ((await this.isGood(door, made)) !== (standing === "good"))
          oracle.problem(`the token ${made.id} was answered ${standing}, and is not so after the restart`);
    }
    await this.#examineClosing(door);
  }

  /** A connection that a token has opened does not outlive it. */
  async #examineClosing(door) {
    const made = await this.create(door.admin, { user_id: USERS[0], scopes: ["read"] });
    const oracle = this.#oracle;
    const tab = await Tab.open({ url: door.url, token: made.token, user_id: made.user_id, oracle, asBrowser: true });
    await this.revoke(door.admin, made);
    let late;
    const limit = new Promise((resolve) => {
      late = setTimeout(resolve, CLOSE_MS, { code: "none" });
    });
    const { code } = await Promise.race([tab.closed, limit]);
    clearTimeout(late);
    if (code !== REVOKED_CODE) oracle.problem(`the token ${made.id} was revoked and its WebSocket closed with ${code}`);
  }
}
