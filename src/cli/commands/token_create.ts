import { LOCAL_USER } from "../../domain/ids.js";
import { SCOPES, type Scope } from "../../domain/token.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, UsageError } from "../exit.js";
import { didYouMean } from "../nearest.js";
import { withPlane } from "../plane.js";
import { PROGRAM } from "../program.js";
import { oneLine } from "../text.js";

const SCOPE_WORDS: Record<Scope, string> = {
  ingest: "report events, and notify",
  critical: "with ingest: at priority critical; without it that is lowered to high",
  directive: "with ingest: give the agent an instruction",
  read: "see what is the user's, and be told of it as it happens",
  ack: "acknowledge, and send dead letters again",
  agent: "collect and settle as an agent",
  admin: "all of these for every user, tokens, and upkeep",
};

export const tokenCreate = defineCommand({
  usage: "--scope SCOPES [--user USER] [options]",
  about: [
    "A token stands for one user and opens what its scopes say. Its text is printed this once; only a digest of it is " +
      "kept. Programs send it as `Authorization: Bearer TOKEN`, the commands take it as --token or TIDINGS_TOKEN, with --server.",
  ],
  terms: { heading: "Scopes", rows: Object.entries(SCOPE_WORDS) },
  options: {
    scope: { kind: "text", value: "SCOPES", summary: "what it opens: one or more scopes, separated by commas" },
    user: { kind: "text", value: "USER", summary: "whose it is", preset: LOCAL_USER },
    name: { kind: "text", value: "NAME", summary: "what it is for, so that you recognise it in the list" },
    "expires-in": {
      kind: "duration",
      value: "AGE",
      summary: "how long it is good: a number and a unit (ms, s, m, h, d), like 90d",
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
    const created = await withPlane({ settings, output }, "write", (plane) =>
      plane.tokens.create({ user_id: values.user, scopes, name: values.name, ttl_ms: values["expires-in"] }),
    );
    if (output.json) await output.value(created);
    else {
      const { token, id, user_id, expires_at } = created;
      await output.line(token);
      const many = created.scopes.length === 1 ? "scope" : "scopes";
      const until = expires_at === null ? "until it is revoked" : `until ${expires_at}`;
      output.remark(`For ${oneLine(user_id)}, ${many} ${created.scopes.join(", ")}, good ${until}.`);
      output.remark("This is the only time that it is shown.");
      output.remark(`Revoke it:  ${PROGRAM} token revoke ${id}${settings.dataFlag}`);
    }
    return EXIT.ok;
  },
});

function scopesOf(text: string | undefined): Scope[] {
  if (text === undefined)
    throw new UsageError(`--scope is missing: one or more of ${SCOPES.join(", ")}, separated by commas`, "--scope");
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
