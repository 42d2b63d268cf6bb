import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { parsePipeline } from "../../../src/domain/pipeline/pipeline.ts";
import type { Pipeline } from "../../../src/domain/pipeline/pipelineModel.ts";
import { askedDevice } from "../../../src/domain/cost/devices.ts";
import { createServices } from "../../../src/services.ts";
import { followRun } from "../../../src/targets/followRun.ts";
import { readModel } from "../../../src/targets/modelReading.ts";
import { readDataFacts } from "../../../src/targets/rowSample.ts";
import { rowLengths } from "../../../src/inference/rowLengths.ts";
import type { RunSpec } from "../../../src/protocol/runSpec.ts";
import { setWords } from "../../../src/util/l10n.ts";
import { silentLog } from "../../../src/util/log.ts";
import { AppError } from "../../../src/util/errors.ts";
import { FakeWorkspace } from "./fakeWorkspace.ts";

const repo = join(import.meta.dirname, "../../..");
const sample = join(repo, "media/sample");
const box = mkdtempSync(join(tmpdir(), "seesaw-cost-"));
const services = createServices({ log: silentLog, extensionDir: repo, storageDir: join(box, "storage") });
after(() => {
  services.dispose();
  rmSync(box, { recursive: true });
});

/** The sample's pipeline in a folder without runs, with other stages. */
function pipelineOf(name: string, stages: string, change: (text: string) => string = (text) => text): Pipeline {
  const root = join(box, name);
  mkdirSync(root, { recursive: true });
  const head = readFileSync(join(sample, "seesaw.yaml"), "utf8").split(/^stages:/m)[0] as string;
  const file = join(root, "seesaw.yaml");
  const text = change(`${head.replaceAll(/: (data|models)\//g, `: ${sample}/$1/`)}stages:\n${stages.replaceAll("data/", `${sample}/data/`)}`);
  const { pipeline, diagnostics } = parsePipeline(text, file);
  assert.ok(pipeline !== null, JSON.stringify(diagnostics));
  return pipeline;
}

test("the sample's stage is priced from headers and rows as the runner will count them", async () => {
  const pipeline = pipelineOf("a", "  - { id: math, recipe: sft, data: data/math.train.jsonl, args: { max_steps: 80, per_device_train_batch_size: 32 } }\n");
  const cost = await services.costs.plan(pipeline, "math");
  assert.equal(cost.model.parameters, 430_752, "what the runner says in run.started");
  assert.equal(cost.model.source, "safetensors");
  assert.deepEqual([cost.data?.rows, cost.data?.by, cost.data?.sampled], [2000, "tokenizer", 200]);
  // The runner trained 98,332 tokens in this stage.
  assert.ok(Math.abs(cost.tokens / 98_332 - 1) < 0.02, `${cost.tokens} tokens`);
  assert.equal(cost.time, null, "no run, no device: no hours are invented");
  const asked = await services.costs.plan(pipeline, "math", { device: askedDevice("24GB") });
  assert.deepEqual([asked.fit, asked.time?.from, asked.settings.mixed], ["yes", "table", true]);
});

test("the question before a start gets a few sentences, in the person's language", async () => {
  const pipeline = pipelineOf("d", "  - { id: math, recipe: sft, data: data/math.train.jsonl, args: { max_steps: 80 } }\n");
  const english = await services.costs.summary(pipeline, "math", AbortSignal.timeout(20_000));
  assert.match(english.join("\n"), /^Memory: .* at the peak, .* Fits in 24 GB\.\nWork: 80 steps, [\d,]+ tokens, \d+ GFLOP\.$/);
  setWords(JSON.parse(readFileSync(join(repo, "l10n/bundle.l10n.zh-cn.json"), "utf8")) as Record<string, string>);
  try {
    assert.match((await services.costs.summary(pipeline, "math", AbortSignal.timeout(20_000))).join("\n"), /^内存：峰值 .*24 GB 即可放下。\n工作量：80 步/);
  } finally {
    setWords(undefined);
  }
  const late = await services.costs.summary(pipeline, "math", AbortSignal.abort());
  assert.match(late.join("\n"), /^Memory: /, "what was not counted in time is not told, the rest is");
  assert.equal(late.length, 1);
});

test("an adapter counts with what it sits on, an expert that is not trained with what its stage says", async () => {
  const base = join(box, "base");
  cpSync(join(sample, "models/m0"), base, { recursive: true });
  const adapter = join(box, "adapter");
  mkdirSync(adapter);
  writeFileSync(join(adapter, "adapter_config.json"), JSON.stringify({ r: 4, target_modules: ["q_proj"], base_model_name_or_path: base }));
  const read = await readModel(adapter);
  assert.deepEqual([read?.facts.parameters, read?.adapter], [430_752, 3 * 4 * (96 + 96)]);
  const stages = "  - { id: e, recipe: experts, data: data/math.train.jsonl, adapter: { r: 2 } }\n  - { id: route, recipe: router, data: data/math.train.jsonl, options: { experts: { math: e } } }\n";
  const cost = await services.costs.plan(pipelineOf("b", stages), "route");
  assert.equal(cost.expertParameters, (2 * 43_776) / 8, "the runner's 43,776 at rank 8");
});

test("weights that are not there, are damaged or quantised leave the config", async () => {
  const folder = join(box, "sharded");
  cpSync(join(sample, "models/m0"), folder, { recursive: true });
  writeFileSync(join(folder, "model.safetensors"), "torn");
  assert.equal((await readModel(folder))?.facts.source, "config");
  assert.equal((await readModel(folder))?.facts.parameters, 430_752);
  assert.equal(await readModel(join(box, "nowhere")), null);
  writeFileSync(join(folder, "config.json"), "{ torn");
  assert.equal(await readModel(folder), null);
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify({ base_model_name_or_path: folder }));
  assert.equal(await readModel(folder), null, "an adapter on itself");
});

test("rows: plain and packed alike, without a tokenizer by bytes, damaged ones and arrays not at all", async () => {
  const rows = Array.from({ length: 500 }, (_, n) => JSON.stringify({ messages: [{ role: "user", content: `What is ${n} + ${n}?` }, { role: "assistant", content: `so ${2 * n}` }] })).join("\n");
  const plain = join(box, "rows.jsonl");
  const packed = join(box, "rows.jsonl.gz");
  writeFileSync(plain, `${rows}\n`);
  writeFileSync(packed, gzipSync(rows));
  const lengths = await rowLengths(join(sample, "models/m0"));
  assert.ok(lengths !== null);
  const facts = await readDataFacts(plain, lengths);
  assert.deepEqual(await readDataFacts(packed, lengths), facts);
  assert.deepEqual([facts?.rows, facts?.sampled, facts?.by], [500, 200, "tokenizer"]);
  assert.ok((facts?.answer ?? 0) > 2 && (facts?.prompt ?? 0) > 5);
  assert.equal((await readDataFacts(plain, null))?.by, "bytes");
  const broken = join(box, "broken.gz");
  writeFileSync(broken, gzipSync(rows).subarray(0, 200));
  for (const [name, text] of [["array.json", "[1]"], ["empty.jsonl", ""], ["parquet.parquet", "PAR1xxxx"]] as const) {
    writeFileSync(join(box, name), text);
    assert.equal(await readDataFacts(join(box, name), lengths), null, name);
  }
  assert.equal(await readDataFacts(broken, lengths), null);
  assert.equal(await readDataFacts(join(box, "nowhere.jsonl"), lengths), null);
  assert.equal((await rowLengths(join(box, "nowhere"))), null);
});

test("prompts without answers, as reinforcement learning has them, are counted too", async () => {
  const lengths = await rowLengths(join(sample, "models/m0"));
  const row = lengths?.(JSON.stringify({ prompt: "What is 27 + 45?", label: "72" }));
  assert.ok(row !== null && row !== undefined && row.prompt > 5, JSON.stringify(row));
  assert.equal(lengths?.("{ torn"), null);
});

test("a model that tells no size is a sentence; a stage that is not there too", async () => {
  const pipeline = pipelineOf("c", "  - { id: math, recipe: sft, data: data/math.train.jsonl }\n");
  await assert.rejects(services.costs.plan({ ...pipeline, base: join(box, "nowhere") }, "math"), (error) => AppError.is(error, "bad-input") && /correct `base`/.test(error.message));
  await assert.rejects(services.costs.plan(pipeline, "mth"), (error) => AppError.is(error, "not-found") && /Did you mean "math"/.test(error.message));
});

test("the price goes into run.json, outside the fingerprint; a start without one goes on", async () => {
  const work = new FakeWorkspace();
  try {
    const { pipeline, diagnostics } = await work.pipeline({ max_steps: 10 });
    const none = await work.services.launcher.startStage(pipeline, diagnostics, "a", { trusted: true });
    const specOf = (dir: string): RunSpec => JSON.parse(readFileSync(join(dir, "run.json"), "utf8")) as RunSpec;
    assert.equal(specOf(none.dir).predicted, null, "its config.json says nothing");
    assert.equal((await followRun(work.services.runs, work.root, none.id, () => {})).state.status, "done");
    for (const name of ["config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]) cpSync(join(sample, "models/m0", name), join(work.root, "base", name));
    const priced = specOf((await work.services.launcher.startStage(pipeline, diagnostics, "a", { trusted: true })).dir);
    assert.ok((priced.predicted?.memory.resident?.expected ?? 0) > 1e6 && (priced.predicted?.memory.device?.expected ?? 0) > 1e6, JSON.stringify(priced.predicted));
    assert.ok((priced.predicted?.tokens ?? 0) > 10);
    assert.equal((await work.services.launcher.outlook(pipeline, "a")).plan.fingerprint, priced.fingerprint);
  } finally {
    work.dispose();
  }
});
