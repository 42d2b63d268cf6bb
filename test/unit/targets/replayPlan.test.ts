import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parsePipeline } from "../../../src/domain/pipeline/pipeline.ts";
import { buildChain } from "../../../src/domain/run/chain.ts";
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

test("the configuration of accelerate counts by what it says", async () => {
  const launch = ", launch: { kind: accelerate, processes: 2, config: acc.yaml }";
  const before = await frozen("{ from: [a], rows: 9 }", launch);
  assert.deepEqual(before.launch, { kind: "accelerate", processes: 2, config: join(root, "acc.yaml") });
  assert.ok(before.inputs.some(({ path }) => path === join(root, "acc.yaml")));
  writeFileSync(join(root, "acc.yaml"), "gpu_ids: '1'\n");
  assert.notEqual((await frozen("{ from: [a], rows: 9 }", launch)).fingerprint, before.fingerprint);
});
