/** What tests of the web app's inbox and ledger need: a page that is being told, and a user with things of their own. */
import type { Locator, Page } from "playwright-core";
import type { NotificationView } from "../../src/domain/notification.js";
import type { Explanation } from "../../src/index.js";
import { type AppOptions, openApp } from "./browser.js";
import type { Server } from "./server.js";

/** A page whose stream has begun: what comes from now on is new to it. */
export async function openLive(server: Server, options: AppOptions = {}): Promise<Page> {
  const page = await openApp(server, options);
  const told = new Promise<void>((resolve) => {
    page.on("websocket", (socket) =>
      socket.on("framereceived", ({ payload }) => {
        if (payload.includes('"method":"inbox/counts"')) resolve();
      }),
    );
  });
  await page.reload();
  await told;
  return page;
}

/** Somebody of their own on a server that others use too. */
export class Person {
  readonly user_id: string;
  readonly token: string;
  readonly #server: Server;
  #count = 0;

  private constructor(server: Server, user_id: string, token: string) {
    this.#server = server;
    this.user_id = user_id;
    this.token = token;
  }

  static async on(server: Server, user_id: string): Promise<Person> {
    const scopes = ["read", "ack", "ingest", "critical", "directive", "agent"] as const;
    const { token } = await server.createToken({ user_id, scopes });
    return new Person(server, user_id, token);
  }

  call<Result = Record<string, unknown>>(method: string, params: object = {}): Promise<Result> {
    return this.#server.call<Result>(method, params, this.token);
  }

  /** Each is by itself, unless it has a key. */
  async notify(content: string, more: object = {}): Promise<string> {
    this.#count += 1;
    const input = { content, target: "user", dedupe_key: `${this.user_id} ${this.#count}`, ...more };
    return (await this.call<{ id: string }>("notification/notify", input)).id;
  }

  /** So many events at once, each with its number in its words. */
  async emit(from: number, count: number): Promise<void> {
    const events = Array.from({ length: count }, (_, index) => ({
      type: "cli.step.finished",
      source: "ci",
      payload: { message: `number ${from + index} of them` },
      dedupe_key: `${this.user_id} step ${from + index}`,
    }));
    const { status, text } = await this.#server.post("/v1/events", events, this.token);
    if (status !== 202) throw new Error(`the events were answered with ${status}: ${text.slice(0, 200)}`);
  }

  read(id: string): Promise<NotificationView> {
    return this.call("notification/read", { id });
  }

  async story(id: string): Promise<Explanation["story"]> {
    return (await this.call<Explanation>("notification/explain", { id })).story;
  }

  counts(): Promise<{ unread: number; unacknowledged: number }> {
    return this.call("inbox/counts");
  }

  async thread(): Promise<string> {
    return (await this.call<{ thread_id: string }>("thread/start")).thread_id;
  }
}

/** The toast that says this. */
export function toast(page: Page, text: string): Locator {
  return page.getByRole("alert").filter({ hasText: text });
}

export function bell(page: Page, unread: number): Locator {
  return page.getByRole("link", { name: unread === 0 ? "Inbox, nothing unread" : `Inbox, ${unread} unread` });
}

export function row(page: Page, list: "Inbox" | "Ledger", text: string): Locator {
  return page.getByRole("grid", { name: list }).getByRole("row").filter({ hasText: text });
}
