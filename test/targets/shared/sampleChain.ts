import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { RunSpec } from "../../../src/protocol/runSpec.ts";
import { loadPipeline, requirePipeline } from "../../../src/targets/pipelineFile.ts";
import { compareFolders } from "./fault.ts";
import { python, type Lab } from "./lab.ts";
import { localChain, scoresOf, type ScoredProbe } from "./localChain.ts";
import { probeRows, sampleStages, stepsOf, writeSample, type SampleStage } from "./sampleFile.ts";

/** Two machines of one kind give the same numbers, but for the order in which libraries add; the README promises as much for scores without Python. */
const tolerance = 1e-4;

/**
 * Trains all four stages of the sample chain on the lab's target (a lab that is `real`), each from the checkpoint that the one
 * before left there, and holds what came back against the target's files and against the same chain of this machine. Gives the
 * runs' ids.
 */
export async function sampleChain(lab: Lab, seconds = 300): Promise<Record<SampleStage, string>> {
  const here = await localChain(python);
  writeSample(lab.root, lab.box);
  const loaded = await loadPipeline(join(lab.root, "seesaw.yaml"));
  const pipeline = requirePipeline(loaded);
  await lab.window();
  const ids: Partial<Record<SampleStage, string>> = {};
  let before: string | null = null;
  for (const [at, stage] of sampleStages.entries()) {
    const { id } = await lab.services.launcher.startStage(pipeline, loaded.diagnostics, stage, { trusted: true });
    const run = await lab.until(id, `${stage} over`, ({ state }) => state.reason !== null && lab.mirrorFile(id).complete, seconds);
    assert.deepEqual(run.state.reason, { kind: "done" }, lab.there(id).log.slice(-2000));
    assert.deepEqual([run.state.step, run.state.started?.start_label], [stepsOf(stage), `M${at}`]);
    assert.deepEqual(run.state.missingSeqs, []);
    compareFolders(lab.there(id).dir, lab.local(id));
    const weights = `checkpoints/step-${String(stepsOf(stage)).padStart(6, "0")}`;
    assert.ok(existsSync(join(lab.there(id).dir, weights, "model.safetensors")), "the weights are there");
    assert.deepEqual(readdirSync(join(lab.local(id), weights)), ["seesaw.json"], "and stay there");
    const remote = JSON.parse(readFileSync(join(lab.there(id).dir, "run.json"), "utf8")) as RunSpec;
    if (before !== null) assert.equal(remote.start.checkpoint, before, "it starts where the one before left off, without its weights coming here");
    before = join(lab.there(id).dir, weights);
    // Nothing of this machine's folders is in what the target got, but where the pipeline lies (for people).
    assert.ok(!JSON.stringify({ ...remote, pipeline: null, predicted: null }).includes(lab.root), "a path of this machine went to the target");
    ids[stage] = id;
  }
  const runs = ids as Record<SampleStage, string>;
  await assertWhole(lab, here, runs);
  return runs;
}

/** Chain, scores, draws of replayed rows and traces are those of this machine's chain. */
async function assertWhole(lab: Lab, here: string, runs: Record<SampleStage, string>): Promise<void> {
  const [there, local] = [await scoresOf(lab.root), await scoresOf(here)];
  assert.deepEqual(there.checkpoints, ["M0 base ready", "M1 math ready", "M2 search ready", "M3 tool ready", "M4 format ready"]);
  assert.deepEqual(local.checkpoints, there.checkpoints);
  assert.equal(there.probes.length, sampleStages.length * 2 * probeRows);
  assert.deepEqual(there.probes.map(({ prompt }) => prompt), local.probes.map(({ prompt }) => prompt));
  let most = 0;
  for (const [at, { prompt, cells }] of there.probes.entries()) {
    const same = local.probes[at]?.cells ?? [];
    assert.deepEqual(cells.map(({ label, correct }) => [label, correct]), same.map(({ label, correct }) => [label, correct]), prompt);
    for (const [index, { label, nll }] of cells.entries()) {
      const other = same[index]?.nll ?? NaN;
      assert.ok(nll !== null && Math.abs(nll - other) <= tolerance, `${prompt} at ${label}: ${nll} nats there, ${other} here`);
      most = Math.max(most, Math.abs(nll - other));
    }
  }
  console.log(`${String(lab.box["kind"])}: ${there.probes.length} probes at ${there.checkpoints.length} checkpoints, at most ${most} nats from this machine's own`);
  // It means something: every stage learned its skill, so an untrained or a mixed-up checkpoint would show.
  for (const [at, stage] of sampleStages.entries()) {
    const gain = meanNll(there.probes, stage, at) - meanNll(there.probes, stage, at + 1);
    assert.ok(gain > 1, `${stage} gained ${gain} nats in its own stage`);
  }
  const folders = newestRuns(here);
  for (const stage of sampleStages) {
    const [copy, own] = [lab.local(runs[stage]), folders[stage] ?? ""];
    assert.deepEqual(files(join(copy, "traces")), files(join(own, "traces")), `${stage}: points at which it was scored`);
    if (stage === "math") continue;
    for (const name of ["ledger.jsonl", "buffer.json"]) assert.ok(statSync(join(copy, name)).size > 0, `${stage}: ${name}`);
    assert.deepEqual(readFileSync(join(copy, "ledger.jsonl"), "utf8"), readFileSync(join(own, "ledger.jsonl"), "utf8"), `${stage}: the same rows were replayed`);
  }
}

function meanNll(probes: readonly ScoredProbe[], skill: SampleStage, checkpoint: number): number {
  const own = probes.filter(({ prompt }) => prompt.startsWith(`${skill}.id:`)).map(({ cells }) => cells[checkpoint]?.nll ?? NaN);
  return own.reduce((sum, nll) => sum + nll, 0) / own.length;
}

function newestRuns(root: string): Partial<Record<string, string>> {
  const names = readdirSync(join(root, ".seesaw", "runs")).filter((name) => existsSync(join(root, ".seesaw", "runs", name, "run.json"))).sort();
  return Object.fromEntries(names.map((name) => [name.slice(0, name.indexOf("-")), join(root, ".seesaw", "runs", name)]));
}

function files(dir: string): string[] {
  return readdirSync(dir, { recursive: true }).map(String).sort();
}
