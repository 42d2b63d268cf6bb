import assert from "node:assert/strict";
import { test } from "node:test";
import type { Output } from "../../../src/cli/output.ts";
import { weightsText } from "../../../src/cli/weights.ts";
import type { WeightPair } from "../../../src/domain/weights/weightPair.ts";
import type { WeightDrift } from "../../../src/protocol/weights.ts";

const out = { paint: (_style: unknown, text: string) => text, width: 120 } as Output;
const numbers = (relative: number, cosine: number | null = null) => ({ count: 8, changed: 0.5, norm: 1, delta_norm: relative, relative, cosine });
const tensor = (layer: number | null, module: string, relative: number, rank: number | null) => ({ ...numbers(relative), name: `${layer}.${module}`, layer, module, shape: [2, 4], effective_rank: rank });
const tensors = [tensor(null, "embed_tokens", 0.02, null), tensor(0, "self_attn.q_proj", 0.0843, 7.26), tensor(1, "self_attn.q_proj", 0.00021, 1)];
const drift = {
  v: 1, a: {}, b: {}, with: {}, total: numbers(0.05, -0.4), tensors, only_a: [], only_b: ["lm_head.weight"], notes: ["A note."], seconds: 1,
  layers: [{ ...numbers(0.02), layer: null }, { ...numbers(0.0843, 0.3), layer: 0 }, { ...numbers(0.00021), layer: 1 }],
  modules: tensors.map(({ layer, module, relative }) => ({ ...numbers(relative), layer, module })),
} as unknown as WeightDrift;
const place = (label: string) => ({ label, stage: null, step: 0, path: label });
const pair: WeightPair = { from: place("M1"), to: place("M2"), before: place("M0") };

test("one row a layer, then what is outside, then the whole; ranks in a table of their own", () => {
  const text = weightsText(drift, pair, true, out);
  const rows = text.split("\n").map((line) => line.trim().split(/\s{2,}/));
  assert.deepEqual(rows[0], ["‖ΔW‖/‖W‖", "q_proj", "all", "changed", "cos"]);
  assert.deepEqual(rows.slice(2, 6), [["layer 0", "8.4 %", "8.4 %", "50.0 %", "+0.30"], ["layer 1", "0.021 %", "0.021 %", "50.0 %", "–"], ["embed_tokens", "2.0 %", "50.0 %", "–"], ["whole model", "5.0 %", "50.0 %", "−0.40"]]);
  assert.deepEqual(rows.slice(9, 11), [["layer 0", "7.3"], ["layer 1", "1.0"]]);
  assert.match(text, /M0 → M1.*\nA note\.\nOnly in M2: lm_head\.weight\.$/);
});

test("without an update before there is no cosine", () => {
  const text = weightsText({ ...drift, with: null }, { ...pair, before: null }, false, out);
  assert.match(text.split("\n")[0] ?? "", /^‖ΔW‖\/‖W‖ +q_proj +all +changed$/);
  assert.doesNotMatch(text, /cos:|effective rank/);
});
