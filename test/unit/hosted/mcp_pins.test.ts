/** Answers of the store that overtake one another. */
import { expect, test } from "vitest";
import { isMiss } from "../../../src/domain/errors.js";
import { listingOf } from "../../../src/mcp/looks.js";
import { Offer } from "../../../src/mcp/offer.js";
import { Pins } from "../../../src/mcp/pins.js";
import { settingsOf } from "../../../src/mcp/settings.js";
import { ToolSet } from "../../../src/runtime/tool_set.js";
import { temporaryFolder } from "../../support/folder.js";
import { openStore } from "../../support/mcp.js";

const look = (description: string) =>
  listingOf([{ name: "read", description, inputSchema: { type: "object" } }], null).tools;

test("an approval that comes late does not take the place of what was seen since", async () => {
  const store = await openStore(await temporaryFolder());
  const pins = new Pins(store, "files", "first_use");
  const offer = new Offer({
    name: "files",
    settings: settingsOf({ command: "true" }),
    registration: new ToolSet([], []).add([]),
    isTaken: () => false,
    run: async () => "",
  });
  await pins.judge(look("Reads"));
  offer.replace((await pins.judge(look("Reads more"))).records, []);
  const approved = await store.approveMcpTool("files", "read", null);
  if (isMiss(approved)) throw new Error(approved.message);
  // The answer to the approval is under way while the tool changes once more.
  pins.approved(approved);
  offer.update(approved);
  offer.replace((await pins.judge(look("Reads all"))).records, []);
  expect(offer.isHeld("read")).toBe(true);
  pins.approved(approved);
  expect(offer.update(approved)).toBe(false);
  expect(offer.isHeld("read")).toBe(true);
  expect((await pins.judge(look("Reads all"))).records.map(({ held }) => held?.description)).toEqual(["Reads all"]);
});
