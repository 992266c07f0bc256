// Folders are the architecture, and imports point only downward (docs/ARCHITECTURE.md). From the bottom up:
const LAYERS = [
  ["domain"],
  ["platform"],
  ["config"],
  ["store"],
  ["intake"],
  ["delivery"],
  ["access"],
  ["agent"],
  ["providers"],
  ["runtime"],
  ["mcp"],
  ["props"],
  ["facade"],
  ["tidings.ts", "index.ts"],
  ["server"],
  ["client"],
  ["adapters"],
  ["cli"],
];

const pathOf = (names) =>
  `^src/(${names.map((name) => (name.endsWith(".ts") ? name.replace(".", "\\.") : `${name}/`)).join("|")})`;

/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    { name: "no-circular", severity: "error", from: {}, to: { circular: true } },
    ...LAYERS.slice(0, -1).map((layer, index) => ({
      name: `no-upward-from-${layer[0]}`,
      comment: "Imports point downward.",
      severity: "error",
      from: { path: pathOf(layer) },
      to: { path: pathOf(LAYERS.slice(index + 1).flat()) },
    })),
    {
      name: "domain-is-pure",
      comment: "The domain does no I/O.",
      severity: "error",
      from: { path: "^src/domain/" },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "one-store-is-unknown",
      comment: "Nothing above the store knows which one it has, except the facade that opens it and the CLI's restore.",
      severity: "error",
      from: { pathNot: "^src/(store/|tidings\\.ts|cli/commands/restore\\.ts)" },
      to: { path: "^src/store/sqlite/" },
    },
    {
      name: "no-dev-dependency",
      comment: "What is only for development is not imported; an optional peer is for both.",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.(test|suite)\\.ts$" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["npm-peer"] },
    },
    {
      name: "sdks-are-optional",
      comment: "A provider's package is loaded when it is used: types aside, by import() in open.ts alone.",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.(test|suite)\\.ts$" },
      to: {
        path: "node_modules/(openai|@anthropic-ai)/",
        dependencyTypesNot: ["type-only", "dynamic-import"],
      },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      extensions: [".ts", ".js"],
      exportsFields: ["exports"],
      conditionNames: ["import", "node"],
    },
  },
};
