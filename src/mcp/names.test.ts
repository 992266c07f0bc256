import { describe, expect, it } from "vitest";
import { offeredName } from "./names.js";

const PROVIDERS_TAKE = /^[A-Za-z0-9_-]{1,64}$/;
const free = () => false;

describe("the name of a tool of an MCP server", () => {
  it("is the server's and the tool's", () => {
    expect(offeredName("files", "read_text", free)).toBe("files_read_text");
  });

  it("is one that every provider takes, the same each time, and no other tool's, whatever the server calls it", () => {
    const odd = ["read text", "read.text", "read/text", "läs", "x".repeat(200), `${"x".repeat(199)}y`, "🙂", " "];
    const names = odd.map((tool) => offeredName("files", tool, free));
    for (const name of names) expect(name).toMatch(PROVIDERS_TAKE);
    expect(new Set(names).size).toBe(odd.length);
    expect(odd.map((tool) => offeredName("files", tool, free))).toEqual(names);
  });

  it("gives way to one that somebody else has", () => {
    const name = offeredName("files", "read", (one) => one === "files_read");
    expect(name).toMatch(/^files_read_.{8}$/);
  });
});
