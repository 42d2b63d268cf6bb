import assert from "node:assert/strict";
import { test } from "node:test";
import { capabilityVectors } from "../../../../src/domain/weights/capabilities.ts";
import { capabilityCsv, weightCsv } from "../../../../src/domain/weights/weightCsv.ts";
import { formatMeasure, formatShare, weightGrid } from "../../../../src/domain/weights/weightGrid.ts";
import { weightPair, weightPlaces } from "../../../../src/domain/weights/weightPair.ts";
import { parseWeightDrift, parseWeightsError, type WeightDrift } from "../../../../src/protocol/weights.ts";
import { AppError } from "../../../../src/util/errors.ts";
import { finishedRun, viewOf } from "../../host/finishedRuns.ts";

const numbers = { count: 4, changed: 0.5, norm: 2, delta_norm: 0.2, relative: 0.1, cosine: -0.25 };
const tensor = (layer: number | null, module: string, more: object = {}) => ({ ...numbers, name: `model.${layer}.${module}.weight`, layer, module, shape: [2, 2], ...more });
const tensors = [tensor(null, "embed_tokens"), tensor(1, "mlp.up_proj", { effective_rank: 3 }), tensor(0, "mlp.up_proj"), tensor(0, "self_attn.o_proj"), tensor(0, "mlp.experts.*.up_proj", { effective_rank: 1 }), tensor(0, "mlp.experts.*.up_proj", { effective_rank: 2 })];
const drift = {
  v: 1, a: {}, b: {}, with: null, total: numbers, only_a: [], only_b: [], notes: [], seconds: 1, tensors,
  layers: [{ ...numbers, layer: null }, { ...numbers, layer: 0 }, { ...numbers, layer: 1, relative: 0.3 }],
  modules: tensors.slice(0, 5).map(({ layer, module }) => ({ ...numbers, layer, module })),
} as unknown as WeightDrift;

const first = finishedRun("math", null, { "math.id": [10, 60] });
const second = finishedRun("search", first, { "math.id": [60, 20], "search.id": [0, 50] });
const view = viewOf([first, second]);
const [pipeline, chain] = [view.pipeline, view.chain];
assert.ok(pipeline !== null && chain !== null);

test("the grid has a row a layer, a column a module, and short names that still differ", () => {
  const grid = weightGrid(drift);
  assert.deepEqual(grid.layers.map(({ layer, all }) => [layer, all?.relative]), [[0, 0.1], [1, 0.3]]);
  assert.deepEqual(grid.modules, ["self_attn.o_proj", "mlp.up_proj", "mlp.experts.*.up_proj"], "attention before the MLP, as a layer computes");
  assert.deepEqual(grid.names, ["o_proj", "mlp.up_proj", "*.up_proj"]);
  assert.deepEqual(grid.layers[1]?.cells.map((cell) => cell?.effective_rank ?? null), [null, 3, null]);
  assert.equal(grid.layers[0]?.cells[2]?.effective_rank, 1.5, "experts: the mean of their tensors");
  assert.deepEqual(grid.outer.map(({ module }) => module), ["embed_tokens"]);
});

test("small shares keep two digits that say something", () => {
  assert.deepEqual([0, null, 1, 0.146, 0.0842, 0.0072, 0.00021, 0.0000034].map(formatShare), ["0.0 %", "–", "100.0 %", "14.6 %", "8.4 %", "0.72 %", "0.021 %", "0.00034 %"]);
  assert.deepEqual([formatMeasure(0.31, "cosine"), formatMeasure(-0.04, "cosine"), formatMeasure(null, "cosine"), formatMeasure(12.64, "effective_rank")], ["+0.31", "−0.04", "–", "12.6"]);
});

test("checkpoints are named by label, stage, step or base; the one before gives the cosine", () => {
  const labels = (from?: string, to?: string) => {
    const pair = weightPair(pipeline, chain, from, to);
    return [pair.from.label, pair.to.label, pair.before?.label ?? null];
  };
  assert.deepEqual(labels(), ["M0", "M2", null]);
  assert.deepEqual(labels("math", "M2"), ["M1", "M2", "M0"]);
  assert.deepEqual(labels("base", "search@80"), ["M0", "M2", null]);
  assert.deepEqual(labels("M2", "M0"), ["M2", "M0", "M1"]);
  assert.match(weightPlaces(chain).at(-1)?.path ?? "", /checkpoints\/step-000080$/);
  for (const [names, words] of [[["M9"], /no checkpoint `M9`. There are M0, M1, M2/], [["math@20"], /math has checkpoints at the steps 80/], [["M1", "math"], /are the same checkpoint/]] as const) {
    assert.throws(() => weightPair(pipeline, chain, ...names), (error) => error instanceof AppError && words.test(error.message));
  }
  const none = viewOf([]);
  assert.ok(none.chain !== null && none.pipeline !== null);
  assert.throws(() => weightPair(none.pipeline as never, none.chain as never), /run a stage first/);
});

test("capability vectors have the same coordinates everywhere; a checkpoint without checks has none", () => {
  const vectors = capabilityVectors(pipeline.skills, chain);
  const names = vectors.map(({ values }) => values.map(({ skill, split }) => `${skill}.${split}`).join());
  assert.equal(new Set(names).size, 1);
  const math = vectors.map(({ label, values }) => [label, values.find(({ skill, split }) => skill === "math" && split === "id")?.correct]);
  assert.deepEqual(math.slice(0, 3), [["M0", 10], ["M1", 60], ["M2", 20]]);
  const [header, line] = capabilityCsv(vectors).split("\r\n");
  assert.equal(header, "checkpoint,stage,skill,split,answers,correct,accuracy,low_95,high_95");
  assert.match(line ?? "", /^M0,,math,id,64,10,0\.15625,/);
});

test("one line of CSV a tensor", () => {
  const lines = weightCsv(drift, "M0", "M1").trimEnd().split("\r\n");
  assert.equal(lines.length, 1 + tensors.length);
  assert.equal(lines[2], "M0,M1,model.1.mlp.up_proj.weight,1,mlp.up_proj,2x2,4,0.5,2,0.2,0.1,-0.25,3,");
});

test("the runner's answer is found behind a library's chatter, and its sentence too", () => {
  const text = JSON.stringify(drift);
  assert.deepEqual(parseWeightDrift(`a warning\n${text}\n`), JSON.parse(text));
  assert.deepEqual(parseWeightDrift(JSON.stringify(drift, null, 1)), JSON.parse(text));
  for (const odd of ["", "[]", text.replace('"v":1', '"v":2'), text.slice(0, 80), '{"v":1}']) assert.equal(parseWeightDrift(odd), null);
  assert.equal(parseWeightsError('x\n{"v":1,"error":"bad-checkpoint","message":"It broke."}'), "It broke.");
  assert.equal(parseWeightsError(text), null);
});
