/** Tables that models are told, as a list says them. */
import { expect, test } from "vitest";
import { readable } from "../../web/src/parts/readable.js";

test("a table is its name, its first row in words, and how many more there are", () => {
  const table =
    'mcp_servers[2]{server,event,detail,ts}:\n  files,mcp_down,"closed, at once",15:30:05\n  mail,mcp_up,null,15:31';
  const words = "MCP servers: files, mcp_down, closed, at once, and 1 more";
  expect(readable(table)).toBe(words);
  // Also from what a list has of it, on one line.
  expect(readable(table.replace(/\s+/g, " "))).toBe(words);
  expect(readable("tools[1]{tool,error}:\n  shell,exited with code 2")).toBe("Tools: shell, exited with code 2");
  expect(readable("tools[2]{tool,error}: shell,timeout read,failed")).toBe("Tools: shell, timeout, and 1 more");
});

test("other text is as it is, without the time that stands beside it anyway", () => {
  for (const text of ["The build is red", "a[1]: b", "x[2]{a,b} c", "<b>[1]{a}: x</b>", ""])
    expect(readable(text)).toBe(text);
  expect(readable('mcp_down: files since: "2026-01-03T15:30:05.000Z"')).toBe("mcp_down: files");
});

test("what a template calls it is left to models where a sentence follows", () => {
  expect(readable("mcp_down: MCP server files has disconnected")).toBe("MCP server files has disconnected");
  for (const text of ["mcp_down: files", "Note: it is late", "api: it is down", "see foo_bar: it is late"])
    expect(readable(text)).toBe(text);
});

test("what is cut off in a row ends there", () => {
  expect(readable("tools[3]{tool,error}: shell,time…")).toBe("Tools: shell, time…, and 2 more");
  expect(readable("tools[3]{tool,error}: sh")).toBe("Tools: sh, and 2 more");
});
