import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { WeightPlace } from "../../../src/domain/weights/weightPair.ts";
import { FileHasher } from "../../../src/targets/hashFiles.ts";
import { WeightReader } from "../../../src/targets/weightReader.ts";
import { AppError } from "../../../src/util/errors.ts";
import { makeModel } from "../makeWeights.ts";

const repo = fileURLToPath(new URL("../../..", import.meta.url));
const python = process.env["SEESAW_PYTHON"] ?? join(repo, ".venv/bin/python");
const box = mkdtempSync(join(tmpdir(), "seesaw-weights-"));
after(() => rmSync(box, { recursive: true }));

const log = { debug() {}, info() {}, warn() {}, error() {} };
const reader = new WeightReader({ runnerDir: join(repo, "runner"), hasher: new FileHasher(null), log });
const place = (label: string, path: string): WeightPlace => ({ label, stage: null, step: null, path });
const root = join(box, "project");
const [m0, m1] = [place("M0", makeModel(join(box, "m0"))), place("M1", makeModel(join(box, "m1"), 0.1))];
const options = (command = python) => ({ trusted: true, rank: true, python: { explicit: { command, setting: "--python" } } });
const cache = join(root, ".seesaw/cache/weights");
mkdirSync(root);

test("the runner compares, and its answer is kept under the weights' hashes", { timeout: 120_000 }, async () => {
  const drift = await reader.drift(root, { from: m0, to: m1, before: null }, options());
  const moved = drift.modules.filter(({ delta_norm: size }) => size > 0).map(({ layer, module }) => `${layer} ${module}`);
  assert.deepEqual(moved.sort(), ["1 mlp.up_proj", "1 self_attn.q_proj"]);
  const values = Array.from({ length: 128 }, (_, index) => 0.1 * Math.cos(index * 0.7));
  const size = Math.hypot(...values);
  for (const tensor of drift.tensors.filter(({ layer }) => layer === 1)) {
    assert.ok(Math.abs(tensor.delta_norm - size) < 1e-5 && (tensor.effective_rank ?? 0) >= 1 && (tensor.effective_rank ?? 9) < 2.1, JSON.stringify(tensor));
  }
  assert.equal(readdirSync(cache).length, 1);
  // Kept: no Python is needed, and none is started in an untrusted workspace.
  const again = await reader.drift(root, { from: m0, to: m1, before: null }, { ...options("/nowhere/python"), trusted: false });
  assert.deepEqual(again, drift);
});

test("a damaged answer, other weights or another question are computed again", async () => {
  const refuses = (pair: Parameters<WeightReader["drift"]>[1], rank = true): Promise<void> =>
    assert.rejects(reader.drift(root, pair, { ...options("/nowhere/python"), rank }), (error) => AppError.is(error, "no-python"));
  await refuses({ from: m1, to: m0, before: null });
  await refuses({ from: m0, to: m1, before: null }, false);
  await refuses({ from: m0, to: { ...m1, label: "M2" }, before: null });
  makeModel(m1.path, 0.2);
  await refuses({ from: m0, to: m1, before: null });
  makeModel(m1.path, 0.1);
  for (const file of readdirSync(cache)) writeFileSync(join(cache, file), '{"v":1,');
  await refuses({ from: m0, to: m1, before: null });
});

test("the runner's own sentence, and trust, come first", { timeout: 120_000 }, async () => {
  const broken = join(box, "broken");
  mkdirSync(broken);
  writeFileSync(join(broken, "config.json"), "{}");
  writeFileSync(join(broken, "model.safetensors"), "too short");
  await assert.rejects(reader.drift(root, { from: m0, to: place("M7", broken), before: null }, options()), (error) => AppError.is(error, "bad-input") && /M7 cannot be read: .*model\.safetensors/.test(error.message));
  await assert.rejects(reader.drift(root, { from: m0, to: place("M7", broken), before: null }, { ...options(), trusted: false }), (error) => AppError.is(error, "untrusted"));
  await assert.rejects(reader.drift(root, { from: m0, to: place("M8", join(box, "gone")), before: null }, options()), (error) => AppError.is(error, "not-found"));
});
