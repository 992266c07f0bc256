/** The schemas of answers are tied to types: what differs does not compile. */
import { expect, test } from "vitest";
import { z } from "zod";
import type { UserId } from "../../domain/ids.js";
import { schemaOf } from "./plain.js";

interface View {
  readonly user_id: UserId;
  readonly state: "on" | "off";
  readonly tags: readonly string[];
  readonly note?: string;
  read(): void;
}

test("a schema of a type takes what the type has, and another schema does not compile", () => {
  const tied = schemaOf<View>()(
    z.strictObject({
      user_id: z.string(),
      state: z.enum(["on", "off"]),
      tags: z.array(z.string()),
      note: z.string().exactOptional(),
    }),
  );
  expect(tied.safeParse({ user_id: "ada", state: "on", tags: [] }).success).toBe(true);
  expect(tied.safeParse({ user_id: "ada", state: "on", tags: [], more: 1 }).success).toBe(false);
  const good = { user_id: z.string(), state: z.enum(["on", "off"]), tags: z.array(z.string()) };
  // @ts-expect-error a field is missing
  schemaOf<View>()(z.strictObject({ user_id: good.user_id, state: good.state }));
  // @ts-expect-error there is a field too many
  schemaOf<View>()(z.strictObject({ ...good, more: z.string() }));
  // @ts-expect-error a word too few
  schemaOf<View>()(z.strictObject({ ...good, state: z.enum(["on"]) }));
  // @ts-expect-error a word too many
  schemaOf<View>()(z.strictObject({ ...good, state: z.enum(["on", "off", "broken"]) }));
  // @ts-expect-error it may be null
  schemaOf<View>()(z.strictObject({ ...good, user_id: z.string().nullable() }));
});
