/** `npm run bench`: measures Tidings against the machine and its peers. See docs/BENCHMARKS.md. */
import { writeFileSync } from "node:fs";
import { agentCost } from "./agent_sections.mjs";
import { machineFacts } from "./machine.mjs";
import { readOptions } from "./options.mjs";
import { installPeers } from "./peers.mjs";
import { burstAndQuiet, matchingCost, pipelineCost, tokenCounts } from "./pipeline_sections.mjs";
import { report, writeDocs } from "./report.mjs";
import { buildHistory, openingAndMemory, sizeComparison, throughput } from "./sections.mjs";
import { bootAndMemory, emitsOverHttp, emitsToFrames, fanOut } from "./server_sections.mjs";
import { stoppedReader } from "./stopped_sections.mjs";
import { webApp } from "./web_sections.mjs";
import { Workspace } from "./workspace.mjs";

const started = performance.now();

function say(text) {
  const seconds = Math.round((performance.now() - started) / 1_000);
  process.stderr.write(
    `[${String(Math.floor(seconds / 60)).padStart(2)}:${String(seconds % 60).padStart(2, "0")}] ${text}\n`,
  );
}

async function measure(options) {
  const { sections } = options;
  const workspace = new Workspace();
  try {
    say(`working in ${workspace.folder}`);
    const results = { machine: machineFacts(workspace.folder), ...options, sections: [...sections] };
    if (["a", "b", "c"].some((name) => sections.has(name)))
      results.throughput = await throughput(workspace, options, say);
    if (sections.has("d") || sections.has("e")) results.history = await buildHistory(workspace, options, say);
    if (sections.has("d")) results.comparison = await sizeComparison(workspace, options, results.history, say);
    if (sections.has("e")) results.opening = await openingAndMemory(workspace, options, results.history, say);
    if (sections.has("f")) results.http = await emitsOverHttp(workspace, options, say);
    if (sections.has("g")) results.latency = await emitsToFrames(workspace, options, say);
    if (sections.has("h")) results.fanOut = await fanOut(workspace, options, say);
    if (sections.has("i")) results.boot = await bootAndMemory(workspace, options, say);
    if (sections.has("j")) results.matching = await matchingCost(workspace, options, say);
    if (sections.has("k")) results.pipeline = await pipelineCost(workspace, options, say);
    if (sections.has("l")) results.burst = await burstAndQuiet(workspace, options, say);
    if (sections.has("m")) results.tokens = await tokenCounts(workspace, say);
    if (sections.has("n")) results.agent = await agentCost(workspace, options, say);
    if (sections.has("o")) results.stopped = await stoppedReader(workspace, options, say);
    if (sections.has("p")) results.web = await webApp(workspace, options, say);
    return results;
  } finally {
    await workspace.close();
  }
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options !== undefined) {
    if (["c", "f", "k", "m"].some((name) => options.sections.has(name))) installPeers(say);
    const results = await measure(options);
    const text = report(results);
    process.stdout.write(`\n${text}\n`);
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
    if (options.writeDocs) writeDocs(results);
  }
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
