/** The prop that fails: a command in the background, with all that a command of `shell` has. */
import { z } from "zod";
import { shellTool } from "../runtime/handles/shell/shell.js";
import type { StatefulTool } from "../runtime/handles/stateful_tool.js";
import { programOf } from "./programs.js";

const LIMITS = { time_limit_secs: 30, processes_max: 16 };

export function nightlyBuildTool(): StatefulTool {
  const { command, args, folder, environment } = programOf("nightly_build");
  const shell = shellTool({ folder, environment, ...LIMITS });
  return {
    name: "nightly_build",
    description: "Runs the nightly build of a rehearsal: a command that prints a few lines and fails after a second.",
    input: z.strictObject({}),
    impact: "internal",
    actions: ["abort"],
    spawn: (_input, handle) => shell.spawn({ argv: [command, ...args] }, handle),
    close: async () => shell.close?.(),
  };
}
