import type { TokenView } from "../../domain/token.js";
import { systemClock } from "../../platform/clock.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import type { Output } from "../output.js";
import { withPlane } from "../plane.js";
import { PROGRAM } from "../program.js";
import { ageOf } from "../show.js";
import { ago, oneLine, pad, shortDuration, widthOf } from "../text.js";

export const tokenList = defineCommand({
  usage: "[--user USER] [options]",
  about: [
    "Oldest first, also those that are revoked or have expired. With --json one token a line. The token that a running " +
      "server made for itself is not among them: it is in `server.json` in the data folder.",
  ],
  options: { user: { kind: "text", value: "USER", summary: "only this user's" } },
  examples: ["tidings token list", "tidings token list --user ada --json"],
  async run({ values, words, settings, output }) {
    noWords(words);
    const tokens = await withPlane({ settings, output }, "read", (plane) =>
      plane.tokens.list({ user_id: values.user }),
    );
    if (output.json) for (const token of tokens) await output.value(token);
    else if (tokens.length > 0) await showTable(tokens, output);
    else await output.line(`No tokens. Make one:  ${PROGRAM} token create --scope read,ack${settings.dataFlag}`);
    return EXIT.ok;
  },
});

/** As wide as its words; the name, which may be long, comes last. */
async function showTable(tokens: readonly TokenView[], output: Output): Promise<void> {
  const header = ["ID", "USER", "SCOPES", "STANDING", "NAME"];
  const rows = tokens.map((token) => [
    token.id,
    oneLine(token.user_id),
    token.scopes.join(","),
    standing(token),
    oneLine(token.name ?? ""),
  ]);
  const columns = header.map((_, at) => Math.max(...[header, ...rows].map((row) => widthOf(row[at] ?? ""))));
  const lineOf = (row: readonly string[]) =>
    row
      .map((cell, at) => pad(cell, columns[at] ?? 0))
      .join("  ")
      .trimEnd();
  await output.line(output.style("gray", lineOf(header)));
  for (const row of rows) await output.line(lineOf(row));
}

function standing({ revoked_at, expires_at }: TokenView): string {
  if (revoked_at !== null) return `revoked ${ago(ageOf(revoked_at))}`;
  if (expires_at === null) return "good";
  const leftMs = Date.parse(expires_at) - systemClock.wall();
  if (leftMs <= 0) return `expired ${ago(ageOf(expires_at))}`;
  return leftMs < 1_000 ? "good for a moment" : `good for ${shortDuration(leftMs)}`;
}
