/** Tables are written for models; a list says the first row of one in words. */
const TABLE = /^([\w.-]+)\[(\d+)\]\{([\w.,-]+)\}:\s+(.*)$/s;
/** What a template calls it, for models: the sentence after it says the same. */
const KEY = /^[a-z]+(?:_[a-z]+)+: (?=\S+ \S)/;
const SINCE = /\s+(?:since|ts): "\d{4}-[^"]*(?:"|$)/g;
const CELL = /"((?:[^"\\]|\\.)*)"|([^,]*)/y;
/** When it was stands beside it anyway. */
const TIMES: ReadonlySet<string> = new Set(["ts", "time", "timestamp"]);

/** `mcp_servers[2]{server,event,ts}: files,down,15:30 …` as `MCP servers: files, down, and 1 more`; other text as it is, without its key. */
export function readable(line: string): string {
  const [, name = "", count = "", fields = "", rest = ""] = TABLE.exec(line) ?? [];
  if (name === "") return line.replace(SINCE, "").replace(KEY, "");
  const names = fields.split(",");
  const cells = cellsOf(rest, names.length, Number(count) > 1);
  const words = cells.filter((cell, index) => cell !== "" && cell !== "null" && !TIMES.has(names[index] ?? ""));
  const more = Number(count) > 1 ? [`and ${Number(count) - 1} more`] : [];
  return `${titleOf(name)}: ${[...words, ...more].join(", ")}`;
}

/** Of the first row. The rows after it begin with white space, which may be all that is left of the end of a line. */
function cellsOf(rest: string, count: number, hasMore: boolean): string[] {
  const cells: string[] = [];
  const cell = new RegExp(CELL);
  while (cells.length < count && cell.lastIndex <= rest.length) {
    const found = cell.exec(rest);
    if (found === null) break;
    const [, quoted, plain = ""] = found;
    const isLast = cells.length === count - 1;
    cells.push(quoted ?? (isLast && hasMore ? plain.trim().split(/\s/)[0] : plain.trim()) ?? "");
    cell.lastIndex += 1;
  }
  return cells;
}

function titleOf(name: string): string {
  const words = name.replaceAll("_", " ").replace(/\bmcp\b/, "MCP");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
