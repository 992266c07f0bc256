/** A hosted agent with a workspace of its own: real files, and what the journal says of them. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentInput, OpenOptions, Tidings } from "../../src/index.js";
import { call, Talk } from "./background.js";
import { eventually, temporaryFolder } from "./folder.js";

export interface Desk {
  readonly folder: string;
  readonly talk: Talk;
  /** Where a file is. */
  at(path: string): string;
  /** Writes as anybody would. */
  put(path: string, content: string | Uint8Array): Promise<void>;
  /** The agent reads these, each by a call of its own, in one turn. */
  read(...paths: string[]): Promise<void>;
  /** Waits until these were announced, in this order, and answers all. */
  announced(...wanted: string[]): Promise<string[]>;
}

export async function desk(agent: AgentInput = {}, options: OpenOptions & { folder?: string } = {}): Promise<Desk> {
  const { folder = await temporaryFolder(), ...open } = options;
  const talk = await Talk.open({ ...agent, workspace: { folder, ...(agent.workspace as object) } }, open);
  const at = (path: string) => join(folder, path);
  return {
    folder,
    talk,
    at,
    put: (path, content) => writeFile(at(path), content),
    read: async (...paths) => {
      await talk.say(...paths.map((path) => call("read_file", { path })));
    },
    announced: (...wanted) =>
      eventually(
        () => changes(talk.tidings),
        (found) => found.join() === wanted.join(),
      ),
  };
}

/** The events about files, oldest first: `PATH CHANGE`; those of other threads than `chat` with their thread. */
export async function changes(tidings: Tidings): Promise<string[]> {
  const last = await tidings.lastSeq();
  const found: string[] = [];
  for await (const entry of tidings.watch({ after: 0 })) {
    if (entry.type === "event" && entry.event.type === "workspace.file.changed") {
      const { payload, thread_id } = entry.event;
      found.push(`${thread_id === "chat" ? "" : `${thread_id} `}${payload["path"]} ${payload["change"]}`);
    }
    if (entry.seq >= last) break;
  }
  return found;
}

/** The notifications about files, oldest first: their state, and the reason if there is one. */
export async function states(tidings: Tidings, thread_id = "chat"): Promise<string[]> {
  const { notifications } = await tidings.list({ thread_id });
  return notifications
    .filter(({ kind }) => kind === "workspace.file.changed")
    .map(({ state, reason }) => (reason === null ? state : `${state} ${reason}`))
    .reverse();
}
