/** Section m: how many tokens the words of the built-in subscribers take, beside the same data as JSON. */
import { decode } from "@toon-format/toon";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { parseEvent } from "../../dist/domain/event.js";
import { Catalogue } from "../../dist/intake/catalogue.js";
import { TOKEN_DATA } from "../token_data.mjs";

const SIZES = [1, 3, 10];
const BEGUN = Date.parse("2026-01-03T15:30:01Z");

/** A measurement for each subscriber and each number of rows. What is decoded from the words is the same data. */
export async function tokens() {
  const catalogue = await Catalogue.open({ subscribers: [], folder: null, config_file: null, watch: false });
  const measured = [];
  for (const [id, events] of Object.entries(TOKEN_DATA))
    for (const rows of SIZES) {
      const { content, degraded } = catalogue.words(id, events.slice(0, rows).map(rowOf), BEGUN + 60_000);
      if (degraded !== null) throw new Error(`${id}: ${degraded}`);
      const data = decode(content);
      const count = (text) => encode(text).length;
      const json = { compact: count(JSON.stringify(data)), indented: count(JSON.stringify(data, null, 2)) };
      measured.push({ id, rows, toon: count(content), ...json });
    }
  await catalogue.close();
  return measured;
}

function rowOf(event, index) {
  const timestamp = new Date(BEGUN + index * 1_700).toISOString();
  return { event: { id: `e${index}`, ...parseEvent(event), timestamp }, count: 1, since: timestamp };
}
