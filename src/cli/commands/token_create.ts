import { LOCAL_USER } from "../../domain/ids.js";
import { SCOPES, type Scope } from "../../domain/token.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, UsageError } from "../exit.js";
import { didYouMean } from "../nearest.js";
import { withPlane } from "../plane.js";

export const tokenCreate = defineCommand({
  name: "token create",
  summary: "make a token for a program or a browser",
  usage: "--scope SCOPES [--user USER] [options]",
  about: [
    "The token stands for one user and opens what its scopes say: ingest (report events, notify), critical (at " +
      "priority critical), directive (instruct the agent), read, ack (acknowledge, redrive), agent (collect and " +
      "settle), admin (everything, of every user). Its text is shown this once; only a digest of it is kept.",
  ],
  options: {
    user: { kind: "text", value: "USER", summary: "whose", preset: LOCAL_USER },
    scope: { kind: "text", value: "SCOPES", summary: "what it opens; by comma" },
    name: { kind: "text", value: "NAME", summary: "what it is for, to be recognised by" },
    "expires-in": {
      kind: "duration",
      value: "AGE",
      summary: "a number and a unit, like 90d",
      preset: "until it is revoked",
    },
  },
  examples: [
    "tidings token create --user ada --scope read,ack --json",
    "tidings token create --scope ingest --name ci",
  ],
  async run({ values, words, settings, output }) {
    noWords(words);
    const scopes = scopesOf(values.scope);
    const created = await withPlane(settings, "write", (plane) =>
      plane.tokens.create({ user_id: values.user, scopes, name: values.name, ttl_ms: values["expires-in"] }),
    );
    if (output.json) await output.value(created);
    else {
      const { token, id, user_id, expires_at } = created;
      await output.line(token);
      const until = expires_at === null ? "until it is revoked" : `until ${expires_at}`;
      output.remark(`For user ${user_id}, scopes ${created.scopes.join(", ")}, ${until}; it is not shown again.`);
      output.remark(`Revoke it: tidings token revoke ${id}${settings.dataFlag}`);
    }
    return EXIT.ok;
  },
});

function scopesOf(text: string | undefined): Scope[] {
  if (text === undefined)
    throw new UsageError(`--scope is missing: one or more of ${SCOPES.join(", ")}, by comma`, "--scope");
  return text.split(",").map((word) => {
    const scope = SCOPES.find((one) => one === word.trim());
    if (scope !== undefined) return scope;
    const hint = didYouMean(word.trim(), SCOPES) || ".";
    throw new UsageError(
      `--scope: ${JSON.stringify(word)} is no scope${hint} There are ${SCOPES.join(", ")}.`,
      "--scope",
    );
  });
}
