import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parsePipeline } from "../../../src/domain/pipeline/pipeline.ts";
import { buildChain, type ChainRun } from "../../../src/domain/run/chain.ts";
import { emptyRunState } from "../../../src/domain/run/reduceRun.ts";
import type { RunState } from "../../../src/domain/run/runState.ts";
import type { RunSpec } from "../../../src/protocol/runSpec.ts";
import { freezeRun, planStage } from "../../../src/targets/freezeRun.ts";
import { FileHasher } from "../../../src/targets/hashFiles.ts";
import { AppError } from "../../../src/util/errors.ts";

const root = mkdtempSync(join(tmpdir(), "seesaw-replay-"));
after(() => rmSync(root, { recursive: true }));

for (const folder of ["m", "rm"]) {
  mkdirSync(join(root, folder));
  writeFileSync(join(root, folder, "model.safetensors"), folder);
  writeFileSync(join(root, folder, "config.json"), "{}");
}
for (const name of ["d.jsonl", "p.jsonl", "acc.yaml"]) writeFileSync(join(root, name), '{"text":"x"}\n');

/** run.json of a stage of its own that starts from the base and replays from a buffer like this. */
async function frozen(buffer: string, launch = ""): Promise<RunSpec> {
  const text = `seesaw: 1
base: m
skills: { s: { probes: p.jsonl, check: { kind: text } } }
stages:
  - { id: a, recipe: sft, data: d.jsonl }
  - { id: b, recipe: sft, data: d.jsonl, from: base, replay: { buffer: main, ratio: 0.1 }${launch} }
buffers: { main: ${buffer} }
`;
  const { pipeline, diagnostics } = parsePipeline(text, join(root, "seesaw.yaml"));
  assert.deepEqual(diagnostics, []);
  assert.ok(pipeline);
  const planned = await planStage(pipeline, "b", buildChain(pipeline, []), new FileHasher(null));
  return freezeRun(pipeline, planned, { id: "b-1", trusted: true, target: { id: "local", kind: "local", python: "python" }, env: {}, versions: {} });
}

test("a buffer's reward model is frozen and hashed into the stage that replays", async () => {
  const judged = "{ from: [a], rows: 9, quality: { reward_model: ./rm, min: 0.5 } }";
  const before = await frozen(judged);
  assert.deepEqual([before.replay?.quality, before.models?.["./rm"]?.checkpoint], [{ reward_model: "./rm", min: 0.5 }, join(root, "rm")]);
  assert.equal((await frozen(judged)).fingerprint, before.fingerprint);
  writeFileSync(join(root, "rm/model.safetensors"), "other weights");
  assert.notEqual((await frozen(judged)).fingerprint, before.fingerprint, "other scores, other rows");
  const gone = frozen("{ from: [a], rows: 9, quality: { reward_model: ./gone, min: 0.5 } }");
  await assert.rejects(gone, (error) => AppError.is(error, "not-found") && error.message.includes(join(root, "gone")));
});

test("how a buffer chooses is in run.json and decides the fingerprint; what is not said leaves it as it was", async () => {
  const plain = await frozen("{ from: [a], rows: 9 }");
  assert.deepEqual([plain.replay?.diversity, "quotas" in (plain.replay ?? {}), plain.models], [null, false, {}]);
  const texts = ["{ from: [a], rows: 9, diversity: { k_center: true } }", "{ from: [a], rows: 9, diversity: { k_center: { features: hidden } } }", "{ from: [a], rows: 9, diversity: { clusters: 4 } }", "{ from: [a], quotas: { a: 9 } }"];
  const specs = await Promise.all(texts.map((text) => frozen(text)));
  assert.equal(new Set([plain, ...specs].map(({ fingerprint }) => fingerprint)).size, 5);
  assert.deepEqual([specs[1]?.replay?.diversity, specs[3]?.replay?.quotas, specs[3]?.replay?.rows], [{ k_center: { features: "hidden" } }, { a: 9 }, 9]);
});

test("the rows that a buffer takes near ones of are an input, and count by what they say and which lines they are", async () => {
  const near = (lines: string, file = "n.jsonl"): string => `{ from: [a], rows: 9, near: { rows: ${file}, lines: ${lines} } }`;
  for (const name of ["n.jsonl", "same.jsonl"]) writeFileSync(join(root, name), '{"text":"n"}\n');
  const before = await frozen(near("[1, 3]"));
  assert.deepEqual(before.replay?.near, { rows: join(root, "n.jsonl"), lines: [1, 3] });
  assert.ok(before.inputs.some(({ path }) => path === join(root, "n.jsonl")));
  assert.equal((await frozen(near("[3, 1]"))).fingerprint, before.fingerprint, "in any order");
  assert.equal((await frozen(near("[1, 3]", "same.jsonl"))).fingerprint, before.fingerprint, "wherever they are");
  const [other, plain] = [await frozen(near("[1]")), await frozen("{ from: [a], rows: 9 }")];
  writeFileSync(join(root, "n.jsonl"), '{"text":"other"}\n');
  assert.equal(new Set([before, other, plain, await frozen(near("[1, 3]"))].map(({ fingerprint }) => fingerprint)).size, 4);
  assert.ok(!("near" in (plain.replay ?? {})), "a run without it is frozen as before");
});

test("the configuration of accelerate counts by what it says", async () => {
  const launch = ", launch: { kind: accelerate, processes: 2, config: acc.yaml }";
  const before = await frozen("{ from: [a], rows: 9 }", launch);
  assert.deepEqual(before.launch, { kind: "accelerate", processes: 2, config: join(root, "acc.yaml") });
  assert.ok(before.inputs.some(({ path }) => path === join(root, "acc.yaml")));
  writeFileSync(join(root, "acc.yaml"), "gpu_ids: '1'\n");
  assert.notEqual((await frozen("{ from: [a], rows: 9 }", launch)).fingerprint, before.fingerprint);
});

test("what is done about a flag is frozen with every skill, and decides the fingerprint; informing is the rule", async () => {
  const specOf = async (skill: string, flags = ""): Promise<RunSpec> => {
    const { pipeline, diagnostics } = parsePipeline(`seesaw: 1\nbase: m\nskills: { s: { probes: p.jsonl, check: { kind: text }${skill} } }\n${flags}\nstages:\n  - { id: a, recipe: sft, data: d.jsonl }\n`, join(root, "seesaw.yaml"));
    assert.deepEqual(diagnostics, []);
    assert.ok(pipeline);
    return freezeRun(pipeline, await planStage(pipeline, "a", buildChain(pipeline, []), new FileHasher(null)), { id: "a-1", trusted: true, target: { id: "local", kind: "local", python: "python" }, env: {}, versions: {} });
  };
  const plain = await specOf("");
  assert.deepEqual([plain.flags, plain.skills[0]?.on_flag, plain.skills[0]?.decision], [{ alpha: 0.1, tolerance: 2, detector: "limit", tolerance_nats: 0.2, on_flag: "inform" }, "inform", undefined]);
  assert.equal((await specOf(", on_flag: inform")).fingerprint, plain.fingerprint);
  const all = await specOf("", "flags: { on_flag: pause }");
  assert.equal(all.skills[0]?.on_flag, "pause");
  const specs = [plain, all, await specOf(", on_flag: stop"), await specOf(", decision: first-5"), await specOf("", "flags: { detector: nll }"), await specOf("", "flags: { tolerance: 1 }")];
  assert.equal(new Set(specs.map(({ fingerprint }) => fingerprint)).size, 6);
});

test("a fork is frozen with the checkpoint of its step, also of a run that was paused there", async () => {
  const text = "seesaw: 1\nbase: m\nskills: { s: { probes: p.jsonl, check: { kind: text } } }\nstages:\n  - { id: a, recipe: sft, data: d.jsonl }\n  - { id: b, recipe: sft, data: d.jsonl, from: a@20 }\n";
  const { pipeline } = parsePipeline(text, join(root, "seesaw.yaml"));
  assert.ok(pipeline);
  const dir = join(root, "a-1");
  mkdirSync(join(dir, "checkpoints/step-20"), { recursive: true });
  writeFileSync(join(dir, "checkpoints/step-20/model.safetensors"), "at 20");
  writeFileSync(join(dir, "checkpoints/step-20/config.json"), "{}");
  const state: RunState = { ...emptyRunState(), status: "paused", reason: { kind: "paused", flag: "s.id", step: 20 }, checkpoints: [{ step: 20, path: "checkpoints/step-20", kind: "full", final: false, weightsHash: "w20", bytes: 1 }] };
  const spec = { ...(await frozen("{ from: [a], rows: 9 }")), id: "a-1", stage: "a", index: 1 };
  const plan = (runs: ChainRun[]) => planStage(pipeline, "b", buildChain(pipeline, runs), new FileHasher(null));
  const planned = await plan([{ dir, id: "a-1", stage: "a", spec, state }]);
  assert.deepEqual([planned.start, planned.weightsHash], [{ checkpoint: join(dir, "checkpoints/step-20"), label: "M1@20", run: "a-1", step: 20 }, "w20"]);
  await assert.rejects(plan([]), (error) => AppError.is(error, "not-finished") && error.message.includes("run `a` first"));
  await assert.rejects(plan([{ dir, id: "a-1", stage: "a", spec, state: { ...state, checkpoints: [{ ...state.checkpoints[0]!, step: 40 }] } }]), (error) => AppError.is(error, "not-found") && error.message.includes("it has 40. Set save_every of `a`"));
});
