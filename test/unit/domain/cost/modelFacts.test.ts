import assert from "node:assert/strict";
import { test } from "node:test";
import { adapterParameters, expectedTensors, modelFacts } from "../../../../src/domain/cost/modelFacts.ts";
import { readModelShape } from "../../../../src/domain/cost/modelShape.ts";
import { configs, factsOf, shapeOf } from "./models.ts";

const near = (value: number, wanted: number, tolerance: number): void => assert.ok(Math.abs(value / wanted - 1) < tolerance, `${value} is not ${wanted}`);

test("parameters computed from config.json are the published ones", () => {
  assert.equal(factsOf("llama-2-7b").parameters, 6_738_415_616);
  assert.equal(factsOf("llama-3-8b").parameters, 8_030_261_248);
  near(factsOf("qwen2.5-0.5b").parameters, 494_032_768, 1e-3); // biases are not counted
  near(factsOf("pythia-1b").parameters, 1_011_781_632, 2e-3);
  near(factsOf("gpt2").parameters, 124_439_808, 2e-3);
});

test("a mixture of experts holds all of them and uses a few", () => {
  const mixtral = factsOf("mixtral-8x7b");
  near(mixtral.parameters, 46.7e9, 0.005);
  near(mixtral.active, 12.9e9, 0.01);
  const qwen = factsOf("qwen3-30b-a3b");
  near(qwen.parameters, 30.5e9, 0.01);
  near(qwen.active, 3.3e9, 0.03);
  assert.equal(factsOf("llama-3-8b").active, factsOf("llama-3-8b").parameters);
});

test("LoRA: the published number for q and v, a pattern, and all linear layers", () => {
  const llama = factsOf("llama-2-7b");
  assert.equal(adapterParameters(llama, 8, ["q_proj", "v_proj"]), 4_194_304);
  assert.equal(adapterParameters(llama, 8, "all-linear"), 19_988_480);
  assert.equal(adapterParameters(llama, 8, undefined), 19_988_480);
  assert.equal(adapterParameters(llama, 16, ".*(q|v)_proj"), 2 * 4_194_304);
  assert.equal(adapterParameters(llama, 8, ["proj"]), 0, "a name has to end with a whole part");
});

test("a vision model's language model is under text_config; what tells nothing is null", () => {
  const { tie_word_embeddings: _, ...text } = configs["llama-3-8b"];
  assert.equal(readModelShape({ model_type: "llava", text_config: text })?.layers, 32);
  assert.equal(readModelShape({}), null);
  assert.equal(readModelShape({ hidden_size: 8, num_hidden_layers: "many" }), null);
});

test("tensors of a checkpoint decide over its config: tying, and what is there", () => {
  const shape = { ...shapeOf("qwen2.5-0.5b"), tied: true };
  const untied = modelFacts(shape, [...expectedTensors(shape), { name: "lm_head.weight", shape: [151936, 896] }]);
  assert.equal(untied.shape.tied, false);
  assert.equal(untied.head, 151936 * 896);
  assert.equal(untied.source, "safetensors");
  assert.equal(modelFacts(shape, null).head, 0);
});
