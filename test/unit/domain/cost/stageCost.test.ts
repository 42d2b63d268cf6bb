import assert from "node:assert/strict";
import { test } from "node:test";
import { summaryLines, fitSentence, formatFlops, memoryRows } from "../../../../src/domain/cost/costText.ts";
import { dataFacts } from "../../../../src/domain/cost/dataFacts.ts";
import { askedDevice, fits, known } from "../../../../src/domain/cost/devices.ts";
import { generationSeconds, type Throughput } from "../../../../src/domain/cost/hours.ts";
import { estimateStage } from "../../../../src/domain/cost/stageCost.ts";
import { attentionShare, flopsPerToken, multiplied, workOf } from "../../../../src/domain/cost/work.ts";
import { stageSettings } from "../../../../src/domain/cost/stageSettings.ts";
import { costInput, data, factsOf } from "./models.ts";

const llama = factsOf("llama-3-8b");
const settings = (stage: object) => stageSettings(costInput({ stage }).stage, true);

test("6ND for training, 2ND forward, 4ND and the adapter for LoRA; a looked-up table multiplies nothing", () => {
  const n = multiplied(llama);
  assert.equal(n, llama.parameters - 128256 * 4096);
  assert.equal(multiplied(factsOf("qwen2.5-0.5b")), factsOf("qwen2.5-0.5b").parameters, "a tied table is the head as well");
  assert.equal(flopsPerToken("train", llama, settings({})).flops, 6 * n);
  assert.equal(flopsPerToken("train", llama, settings({})).computed, 8 * n, "checkpointing repeats the forward pass");
  assert.equal(flopsPerToken("forward", llama, null).flops, 2 * n);
  const lora = flopsPerToken("train", llama, settings({ adapter: { r: 8 } }));
  assert.ok(lora.flops > 4 * n && lora.flops < 4.05 * n);
  assert.equal(multiplied(factsOf("mixtral-8x7b")) < 13e9, true, "two of eight experts work");
  assert.ok(attentionShare(llama, 8192) > attentionShare(llama, 1024) && attentionShare(llama, 1024) < 0.05);
});

test("each recipe does its own work", () => {
  const work = (stage: object, teachers: { name: string; facts: typeof llama }[] = []) => workOf({ model: llama, settings: settings(stage), data, steps: 100, teachers, router: null }).map(({ what, model, tokens }) => [what, model, Math.round(tokens.nominal)]);
  assert.deepEqual(work({}), [["train", "student", 200_000]]);
  assert.deepEqual(work({ recipe: "dpo" }), [["train", "student", 400_000], ["forward", "reference", 400_000]]);
  assert.deepEqual(work({ recipe: "grpo" }), [["generate", "student", 102_400], ["train", "student", 182_400]]);
  assert.deepEqual(work({ recipe: "self-distill", options: { samples: 2, max_new_tokens: 100 } }), [["generate", "student", 2_000_000], ["train", "student", 120_000]]);
  const teachers = [{ name: "math", facts: llama }, { name: "code", facts: llama }];
  assert.deepEqual(work({ recipe: "distill" }, teachers), [["generate", "student", 102_400], ["forward", "math", 91_200], ["forward", "code", 91_200], ["train", "student", 182_400]]);
  assert.deepEqual(work({ recipe: "distill", options: { offline: true } }, teachers).map(([what, model]) => `${what} ${model}`), ["generate math", "forward math", "generate code", "forward code", "train student"]);
});

test("steps come from max_steps, or from epochs and rows", () => {
  assert.equal(estimateStage(costInput()).steps, 100);
  assert.equal(estimateStage(costInput({ stage: { args: { num_train_epochs: 2, per_device_train_batch_size: 4 } } })).steps, 5000);
  assert.equal(estimateStage(costInput({ data: null, stage: { args: {} } })).steps, null);
  assert.equal(estimateStage(costInput({ data: null, stage: { args: {} } })).tokens, 0);
});

test("8 billion parameters: full training needs the largest device, LoRA a third of it", () => {
  const full = estimateStage(costInput());
  assert.deepEqual(full.sizes.map(({ fit }) => fit), ["no", "no", "no", "yes"]);
  const lora = estimateStage(costInput({ stage: { adapter: { r: 8 } } }));
  assert.deepEqual(lora.sizes.map(({ fit }) => fit), ["no", "yes", "yes", "yes"]);
  assert.equal(lora.model.trainable, 20_971_520);
  assert.equal(fitSentence(lora), "Fits in 40 GB and more.");
});

test("experts beside a frozen base: none where the base itself does not fit", () => {
  const [small, , large] = estimateStage(costInput()).sizes;
  assert.equal(small?.experts.float32, 0, "32 GB of weights in 24 GB");
  assert.ok((small?.experts.bfloat16 ?? 0) > 50);
  const room = 0.9 * (79.3 * 2 ** 30 - 0.6 * 2 ** 30) - llama.parameters * 4;
  assert.equal(large?.experts.float32, Math.floor(room / (20_971_520 * 4)));
});

test("distillation is priced both ways, whichever is chosen", () => {
  const teachers = [{ name: "math", facts: llama }, { name: "code", facts: llama }];
  for (const offline of [false, true]) {
    const { distill } = estimateStage(costInput({ teachers, stage: { recipe: "distill", options: { top_k: 32, offline } } }));
    assert.ok(distill !== null);
    assert.equal(distill.online.memory.peak - distill.offline.memory.peak, 2 * 2 * llama.parameters);
    // 10,000 answers of 256 tokens (the limit, less than the 300 of the data's own), 32 ids and halves, and the token.
    assert.equal(distill.offline.diskBytes, 10_000 * 256 * (32 * 6 + 4));
    assert.equal(distill.online.diskBytes, 0);
    assert.ok(distill.offline.teacherTokens > distill.online.teacherTokens, "all rows once are more than 400 answers");
  }
  const alone = estimateStage(costInput({ teachers, device: known("NVIDIA A100-SXM4-40GB"), stage: { recipe: "distill" } }));
  assert.equal(alone.memory?.parts.teachers, 2 * llama.parameters, "load: auto takes one at a time where both would fill the device");
});

test("devices by name and by size; what is neither is null", () => {
  assert.equal(known("NVIDIA H200")?.flops, 989e12);
  assert.equal(known("NVIDIA A100-SXM4-80GB")?.memory, 79.3 * 2 ** 30);
  assert.equal(known("NVIDIA A100-SXM4-40GB")?.memory, 39.4 * 2 ** 30);
  assert.equal(known("NVIDIA GeForce RTX 4090")?.bandwidth, 1.01e12);
  assert.equal(known("CPU (4 threads)")?.flops, 120e9);
  assert.equal(known("Apple GPU"), null);
  assert.equal(askedDevice("80GB")?.name, "A100 80GB");
  assert.equal(askedDevice("80")?.name, "A100 80GB");
  assert.match(askedDevice("48 GB")?.name ?? "", /^48 GB \(as fast as A100\)$/);
  assert.equal(askedDevice("cpu")?.cuda, false);
  for (const text of ["", "0", "-3GB", "fast", "80TB"]) assert.equal(askedDevice(text), null, text);
  const a100 = askedDevice("80GB")!;
  assert.deepEqual([60, 78, 90].map((gib) => fits({ peak: gib * 2 ** 30, high: (gib + 5) * 2 ** 30 }, a100)), ["yes", "tight", "no"]);
  assert.equal(fits({ peak: 1, high: 1 }, known("CPU")!), null);
});

test("hours: measured where a run of the recipe is, scaled by size; else assumed, and said so", () => {
  const h200 = known("NVIDIA H200")!;
  const assumed = estimateStage(costInput({ device: h200 })).time;
  assert.equal(assumed?.from, "table");
  assert.match(assumed?.why ?? "", /Assumed: H200 at 35 % of its 989 TFLOP\/s/);
  const flops = 8 * multiplied(llama) * 200_000;
  assert.ok(Math.abs((assumed?.seconds ?? 0) / (flops / (989e12 * 0.35)) - 1) < 1e-9);
  const measured: Throughput = { run: "math-1", recipe: "sft", device: "NVIDIA H200", tokensPerSecond: 1000, flopsPerToken: 6 * multiplied(llama), otherSeconds: 40 };
  const same = estimateStage(costInput({ device: h200, measured })).time;
  assert.deepEqual([same?.from, same?.seconds, same?.otherSeconds], ["measured", 200, 40]);
  const twice = estimateStage(costInput({ device: h200, measured: { ...measured, flopsPerToken: 3 * multiplied(llama) } })).time;
  assert.equal(twice?.seconds, 400, "measured on a model of half the size");
  assert.equal(estimateStage(costInput({ device: h200, measured: { ...measured, recipe: "dpo" } })).time?.from, "table", "another recipe says nothing");
  assert.equal(estimateStage(costInput()).time, null, "no device, no hours");
});

test("generating is bound by what is read: more answers at once cost little", () => {
  const h200 = known("NVIDIA H200")!;
  const of = (together: number) => generationSeconds({ model: llama, together, batches: 1, newTokens: 100, prompt: 100 }, h200);
  assert.ok(of(64) < 2 * of(1));
  assert.ok(of(4096) > 2 * of(64));
});

test("what cannot be told is not told: a command, a merge, a router", () => {
  const command = estimateStage(costInput({ stage: { recipe: "command", args: {} } }));
  assert.deepEqual([command.memory, command.flops, command.sizes], [null, 0, []]);
  assert.match(command.assumptions.join(" "), /your own program/);
  const merge = estimateStage(costInput({ stage: { recipe: "merge", args: {}, options: { models: ["a", "b", "c"] } } }));
  assert.ok(merge.memory !== null && merge.memory.peak < 1.4 * 4 * llama.parameters, "a merge streams: no more than one loaded model");
  const router = estimateStage(costInput({ stage: { recipe: "router", args: {}, options: {} }, experts: [{ name: "a", parameters: 20e6 }, { name: "b", parameters: 20e6 }] }));
  assert.equal(router.memory?.parts.adapters, 160e6);
  assert.equal(router.expertParameters, 20e6);
});

test("a mixture of experts takes the memory of all and the work of a few", () => {
  const cost = estimateStage(costInput({ model: factsOf("qwen3-30b-a3b") }));
  assert.ok((cost.memory?.parts.weights ?? 0) > 120e9);
  assert.ok(cost.flops < 6 * 3.5e9 * 200_000);
  assert.match(cost.assumptions.join(" "), /Of 30\.5 billion parameters 3\.\d work on a token/);
});

test("lengths: the longest row is estimated from its bytes, nothing is made of nothing", () => {
  const rows = [{ tokens: 100, prompt: 40, hasAnswer: true }, { tokens: 200, prompt: 60, hasAnswer: false }];
  assert.deepEqual(dataFacts(rows, { rows: 1000, longestBytes: 4000, sampledBytes: 1200 }, "tokenizer"), { rows: 1000, mean: 150, longest: 1000, prompt: 50, longestPrompt: 300, answer: 60, sampled: 2, by: "tokenizer" });
  assert.equal(dataFacts([], { rows: 0, longestBytes: 0, sampledBytes: 0 }, "bytes"), null);
});

test("the summary for the question before a start has memory, fit, work and time", () => {
  const text = summaryLines(estimateStage(costInput({ device: known("NVIDIA H200"), stage: { adapter: { r: 8 } } }))).join("\n");
  for (const part of [/^Memory: \d+ GB \(\d+ GB to \d+ GB\) at the peak, .*weights 32 GB/, /H200: fits\./, /Work: 100 steps, 200,000 tokens, \d+\.?\d* PFLOP; about .* assumed\./]) assert.match(text, part);
  const parts = memoryRows(estimateStage(costInput()));
  assert.equal(parts[0]?.[0], "optimizer");
  assert.equal(formatFlops(2.5e15), "2.5 PFLOP");
});
