/** A conversation with a hosted agent whose tools run in the background, by the library's own door. */
import { execFileSync } from "node:child_process";
import type { AgentInput, OpenOptions, ThreadItem, Tidings } from "../../src/index.js";
import { eventually, openTidings } from "./folder.js";

type Call = Extract<ThreadItem, { type: "tool_call" }>;

export class Talk {
  readonly tidings: Tidings;
  readonly thread_id: string;

  constructor(tidings: Tidings, thread_id: string) {
    this.tidings = tidings;
    this.thread_id = thread_id;
  }

  static async open(agent: AgentInput, options: OpenOptions = {}): Promise<Talk> {
    const tidings = await openTidings({ ...options, agent: { provider: "rehearsal", ...agent } });
    const { thread_id } = await tidings.startThread({ thread_id: "chat" });
    return new Talk(tidings, thread_id);
  }

  /** A turn from its message to its end. */
  async say(...lines: string[]) {
    const turn = await this.tidings.thread(this.thread_id).say(lines.join("\n"));
    return this.tidings.turns.ended(turn.turn_id);
  }

  async items(): Promise<ThreadItem[]> {
    return (await this.tidings.thread(this.thread_id).read({ observe: true, internal: true })).items;
  }

  async calls(): Promise<Call[]> {
    return (await this.items()).filter((item) => item.type === "tool_call");
  }

  /** What the call with this number from the end was answered, the last being 1. */
  async answer(fromEnd = 1): Promise<{ failed: boolean; [key: string]: unknown }> {
    const call = (await this.calls()).at(-fromEnd);
    return { ...JSON.parse(call?.content.output ?? "null"), failed: call?.status === "failed" };
  }

  /** What the agent was told, in order. */
  async told(): Promise<string[]> {
    const items = await this.items();
    return items.flatMap((item) => (item.type === "observation" && item.status === "sent" ? [item.content.text] : []));
  }

  /** The notifications of handles, as `kind STATE reason`, oldest first. */
  async handled(): Promise<string[]> {
    const { notifications } = await this.tidings.list({ thread_id: this.thread_id });
    return notifications
      .filter(({ kind }) => /^tool\.(stopped|waiting|failed)$/.test(kind))
      .map(({ kind, state, reason }) => `${kind} ${state}${reason === null ? "" : ` ${reason}`}`)
      .reverse();
  }

  /** Waits until there are these. */
  becomes(...wanted: string[]): Promise<string[]> {
    return eventually(
      () => this.handled(),
      (handled) => handled.join() === wanted.join(),
    );
  }

  /** Waits until nothing runs and so many turns were. */
  async turnsOver(count: number): Promise<void> {
    await eventually(
      async () => (await this.items()).filter((item) => item.type === "message" && item.role === "assistant").length,
      (answers) => answers >= count,
    );
    await eventually(
      async () => (await this.tidings.thread(this.thread_id).turns()).length,
      (live) => live === 0,
    );
  }
}

/** A line that makes the rehearsal model call a tool. */
export function call(name: string, input: Record<string, unknown>): string {
  return `call ${name} ${JSON.stringify(input)}`;
}

export function spawn(handle: string, input: Record<string, unknown>, tool = "shell"): string {
  return call(tool, { action: "spawn", handle, input });
}

export function act(action: "fetch" | "apply" | "abort", handle: string, more: Record<string, unknown> = {}): string {
  const { tool = "shell", ...rest } = more;
  return call(String(tool), { action, handle, ...rest });
}

let sleeps = 0;

/** A command that sleeps for minutes, and is like no other. */
export function longSleep(): string {
  sleeps += 1;
  return `sleep 3${process.pid}.${sleeps}`;
}

/** How many processes run with this in their command line. What is dead and not yet buried does not count. */
export function running(marker: string): number {
  const lines = execFileSync("ps", ["-eo", "stat=,args="], { encoding: "utf8" }).split("\n");
  return lines.filter((line) => line.includes(marker) && !line.startsWith("Z") && !line.includes("ps -eo")).length;
}

export async function noneRuns(marker: string): Promise<void> {
  await eventually(
    async () => running(marker),
    (count) => count === 0,
  );
}
