/** A client of the server over HTTP, with connections that it keeps. It never sends anything twice by itself. */
import { Agent, request as httpRequest } from "node:http";

/** The connection ended before the answer: nobody knows whether it was done. */
export class LostAnswer extends Error {
  name = "LostAnswer";
}

/** An answer that says that it was not done. */
export class Refused extends Error {
  name = "Refused";

  constructor(status, error) {
    super(`${status} ${error?.code}: ${error?.message}`);
    this.status = status;
    this.reason = error?.reason;
  }
}

const CALLS_PER_BATCH = 100;

/** One server's door: everybody who calls comes through it with a token. */
export class Door {
  url;
  /** With the server's own token. */
  admin;
  #agent = new Agent({ keepAlive: true, maxSockets: 64 });

  constructor({ url, token }) {
    this.url = url;
    this.admin = this.with(token);
  }

  with(token) {
    return new Client(this.url, token, this.#agent);
  }

  close() {
    this.#agent.destroy();
  }
}

class Client {
  #url;
  #token;
  #agent;
  #id = 0;

  constructor(url, token, agent) {
    this.#url = url;
    this.#token = token;
    this.#agent = agent;
  }

  /** `POST /v1/events`: one event or an array. */
  async events(body) {
    const { status, answer } = await this.#post("/v1/events", body);
    if (status !== 202) throw new Refused(status, answer?.error);
    return answer;
  }

  /** A call of `POST /rpc`: its result or miss. */
  async call(method, params) {
    const { status, answer } = await this.#post("/rpc", this.#callOf(method, params));
    return resultOf(answer, status);
  }

  /** The same method for many, in batches; the answers in the order of the parameters. */
  async calls(method, list) {
    const results = [];
    for (let start = 0; start < list.length; start += CALLS_PER_BATCH) {
      const batch = list.slice(start, start + CALLS_PER_BATCH).map((params) => this.#callOf(method, params));
      const { status, answer } = await this.#post("/rpc", batch);
      if (!Array.isArray(answer)) resultOf(answer, status);
      const byId = new Map(answer.map((one) => [one.id, one]));
      for (const { id } of batch) results.push(resultOf(byId.get(id), status));
    }
    return results;
  }

  #callOf(method, params) {
    this.#id += 1;
    return { jsonrpc: "2.0", id: this.#id, method, params };
  }

  #post(path, body) {
    const headers = { authorization: `Bearer ${this.#token}`, "content-type": "application/json" };
    return new Promise((resolve, reject) => {
      const lost = (error) => reject(new LostAnswer(`${path}: ${error?.message ?? "cut"}`));
      const options = { method: "POST", agent: this.#agent, headers };
      const sent = httpRequest(new URL(path, this.#url), options, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part) => {
          text += part;
        });
        response.on("error", lost);
        response.on("close", () => {
          if (response.complete) resolve({ status: response.statusCode, answer: JSON.parse(text) });
          else lost();
        });
      });
      sent.on("error", lost);
      sent.end(JSON.stringify(body));
    });
  }
}

/** The result; or the miss, as the library has it, if nothing was changed. Throws any other error. */
export function resultOf(answer, status) {
  const { error } = answer;
  if (error === undefined) return answer.result;
  const { reason, id, code } = error.data ?? {};
  if (id !== undefined && (code === "not_found" || code === "conflict"))
    return { miss: reason, id, message: error.message };
  throw new Refused(status, { code, reason, message: error.message });
}
