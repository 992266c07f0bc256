/** What the server of documents offers, as it lists it: known to its program, and to the host that declares it. */
export const TITLES = ["handbook", "minutes"] as const;
export type Title = (typeof TITLES)[number];

export const DOCUMENT_TOOLS = [
  {
    name: "read",
    description: "Reads a document: the handbook, or the minutes of the last meeting.",
    inputSchema: {
      type: "object",
      properties: {
        document: { type: "string", enum: [...TITLES] },
        die: {
          type: "boolean",
          description: "Kills the process of the server in the middle of the call, to see what becomes of that.",
        },
      },
      required: ["document"],
      additionalProperties: false,
    },
  },
];
