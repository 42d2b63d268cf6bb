import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunSpec } from "../../../src/protocol/runSpec.ts";
import { loadPipeline, requirePipeline } from "../../../src/targets/pipelineFile.ts";
import { compareFolders } from "./fault.ts";
import type { Lab } from "./lab.ts";
import { repo } from "./leftovers.ts";

/**
 * Runs the sample chain's first two stages, shortened, on the lab's target (a lab that is `real`), as e2e/chain.test.ts does on this
 * machine: the second starts from the checkpoint that the first left there, without its weights coming here.
 */
export async function sampleChain(lab: Lab, seconds = 180): Promise<{ math: string; search: string }> {
  const sample = join(repo, "media/sample/data");
  mkdirSync(join(lab.root, "data"), { recursive: true });
  const head = (name: string, rows: number): void => writeFileSync(join(lab.root, "data", `${name}.jsonl`), `${readFileSync(join(sample, `${name}.jsonl`), "utf8").split("\n").slice(0, rows).join("\n")}\n`);
  for (const skill of ["math", "search"]) {
    head(`${skill}.train`, 200);
    head(`${skill}.probe`, 32);
  }
  const args = "{ max_steps: 6, learning_rate: 1.0e-3, per_device_train_batch_size: 8, logging_steps: 1 }";
  writeFileSync(
    join(lab.root, "seesaw.yaml"),
    `seesaw: 1
name: tiny
base: m0
skills:
  math: { probes: data/math.probe.jsonl, check: { kind: number-after, marker: so } }
  search: { probes: data/search.probe.jsonl, check: { kind: text, after: answer } }
probe: { every: 3, max_new_tokens: 8 }
stages:
  - { id: math, recipe: sft, on: box, data: data/math.train.jsonl, args: ${args} }
  - { id: search, recipe: sft, on: box, data: data/search.train.jsonl, args: ${args}, replay: { buffer: old, ratio: 0.25 } }
buffers:
  old: { from: [math], rows: 20 }
targets:
  box: ${JSON.stringify(lab.box)}
`,
  );
  const loaded = await loadPipeline(join(lab.root, "seesaw.yaml"));
  const pipeline = requirePipeline(loaded);
  await lab.window();
  const stage = async (name: string): Promise<string> => {
    const { id } = await lab.services.launcher.startStage(pipeline, loaded.diagnostics, name, { trusted: true });
    await lab.until(id, "done, with everything copied", ({ state }) => state.status === "done" && lab.mirrorFile(id).complete, seconds);
    assert.equal((await lab.run(id)).state.step, 6);
    compareFolders(lab.there(id).dir, lab.local(id));
    assert.ok(existsSync(join(lab.there(id).dir, "checkpoints/step-000006/model.safetensors")), "the weights are there");
    assert.equal(existsSync(join(lab.local(id), "checkpoints/step-000006/model.safetensors")), false, "and stay there");
    assert.ok(readdirSync(join(lab.local(id), "traces/step-000006")).length > 0, "the traces are here");
    return id;
  };
  const math = await stage("math");
  const search = await stage("search");
  const remote = JSON.parse(readFileSync(join(lab.there(search).dir, "run.json"), "utf8")) as RunSpec;
  assert.equal(remote.start.checkpoint, join(lab.there(math).dir, "checkpoints/step-000006"));
  assert.equal((await lab.run(search)).state.started?.start_label, "M1");
  // Nothing of this machine's folders is in what the target got, but where the pipeline lies (for people).
  const paths = JSON.stringify({ ...remote, pipeline: null, predicted: null });
  assert.ok(!paths.includes(lab.root), "a path of this machine went to the target");
  return { math, search };
}
