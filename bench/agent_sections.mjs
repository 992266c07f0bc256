/** Section n: what it costs to tell an agent. */
import { rmSync } from "node:fs";
import { median } from "./statistics.mjs";

/** n: what was measured in a small journal, in a large one, and of calls of the model. */
export async function agentCost(workspace, { runs, sizes }, say) {
  const { small, large, collects, turns } = sizes.agent;
  const folders = [];
  const build = async (name, size) => {
    const data = workspace.newFolder(name);
    folders.push(data);
    const { entries } = await workspace.run("buildConversation", { data, ...size });
    say(`${name}: a journal of ${entries} entries, ${size.said} of them of one conversation`);
    return data;
  };
  try {
    const [few, many] = [await build("few", small), await build("many", large)];
    const measured = { few: [], many: [], calls: [] };
    for (let run = 0; run < runs; run += 1) {
      measured.few.push(await workspace.run("collectCost", { data: few, collects }));
      measured.many.push(await workspace.run("collectCost", { data: many, collects }));
      measured.calls.push(await workspace.runInFolder("modelCalls", { turns }));
      const shown = (name) => `${median(measured[name][run].ms).toFixed(3)} ms`;
      const { commits, ms } = measured.calls[run];
      say(
        `run ${run + 1} of ${runs}: collect ${shown("few")} and ${shown("many")}; a model call ${commits.toFixed(2)} commits, ${ms.toFixed(2)} ms`,
      );
    }
    return measured;
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  }
}
