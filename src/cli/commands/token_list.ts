import type { TokenView } from "../../domain/token.js";
import { systemClock } from "../../platform/clock.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import { withPlane } from "../plane.js";
import { oneLine } from "../text.js";

export const tokenList = defineCommand({
  name: "token list",
  summary: "list the tokens, without their texts",
  usage: "[--user USER] [options]",
  about: ["Oldest first, also those that are revoked or have expired. With --json one token a line."],
  options: { user: { kind: "text", value: "USER", summary: "only this user's" } },
  examples: ["tidings token list", "tidings token list --user ada --json"],
  async run({ values, words, settings, output }) {
    noWords(words);
    const tokens = await withPlane(settings, "read", (plane) => plane.tokens.list({ user_id: values.user }));
    for (const token of tokens) {
      if (output.json) await output.value(token);
      else {
        const { id, user_id, scopes, name } = token;
        const parts = [
          id,
          oneLine(user_id),
          scopes.join(","),
          ...(name === null ? [] : [oneLine(name)]),
          standing(token),
        ];
        await output.line(parts.join("  "));
      }
    }
    if (tokens.length === 0 && !output.json)
      await output.line("No tokens. The running server has one of its own; see server.json in the data folder.");
    return EXIT.ok;
  },
});

function standing({ revoked_at, expires_at }: TokenView): string {
  if (revoked_at !== null) return `revoked ${revoked_at}`;
  if (expires_at === null) return "good";
  return Date.parse(expires_at) <= systemClock.wall() ? `expired ${expires_at}` : `good until ${expires_at}`;
}
