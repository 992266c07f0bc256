/** What `subscribers enable` and `subscribers disable` share: for whom, and the change of that user's list. */
import type { Plane } from "../client/remote.js";
import { LOCAL_USER } from "../domain/ids.js";
import { EXIT, type ExitCode } from "./exit.js";
import type { Output } from "./output.js";
import { ownUser } from "./plane.js";
import { oneLine } from "./text.js";

export const FOR_USER = {
  kind: "text",
  value: "USER",
  summary: "for whom",
  preset: `the token's user with --server, else ${LOCAL_USER}`,
} as const;

/** The list before and after `change`. */
export async function changeDisabled(
  plane: Plane,
  user: string | undefined,
  change: (disabled: readonly string[], user_id: string) => string[] | Promise<string[]>,
) {
  const user_id = user ?? (await ownUser(plane));
  const before: readonly string[] = (await plane.settings(user_id)).disabled_subscribers;
  const disabled_subscribers = await change(before, user_id);
  return { before, after: await plane.updateSettings({ user_id, disabled_subscribers }) };
}

export async function tellSwitched(
  output: Output,
  id: string,
  said: string,
  after: Awaited<ReturnType<Plane["updateSettings"]>>,
): Promise<ExitCode> {
  if (output.json) await output.value(after);
  else await output.line(`${oneLine(id)} ${said} for ${oneLine(after.user_id)}.`);
  return EXIT.ok;
}
