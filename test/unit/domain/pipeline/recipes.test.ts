import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import { knownRecipes } from "../../../../src/domain/pipeline/pipelineSchema.ts";
import { referenceTarget } from "../../../../src/domain/pipeline/stageOptions.ts";

/** A pipeline with two sft stages and then `stage`, whose lines are written at the indentation of a list item. */
function withStage(stage: string): string {
  return `seesaw: 1
base: models/m0
skills:
  math: { probes: m.jsonl, check: { kind: number-after, marker: so } }
  tool: { probes: t.jsonl, check: { kind: json-tool-call } }
stages:
  - { id: math, recipe: sft, data: m.jsonl }
  - { id: tool, recipe: sft, data: t.jsonl }
  - ${stage}
buffers: { main: { from: [math], rows: 20 } }
`;
}

function parsed(stage: string) {
  const { pipeline, diagnostics } = parsePipeline(withStage(stage), "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  const last = pipeline?.stages.at(-1);
  assert.ok(last);
  return last;
}

function problem(stage: string): string {
  const { diagnostics } = parsePipeline(withStage(stage), "/p/seesaw.yaml");
  assert.equal(diagnostics.length, 1, diagnostics.map((one) => one.message).join("\n"));
  const [{ range, message }] = diagnostics as [(typeof diagnostics)[0]];
  return `${range.line}:${range.column} ${message}`;
}

test("every recipe is accepted with its options, and names the checkpoints that it uses", () => {
  const cases: [string, string[]][] = [
    ["{ id: x, recipe: sft, data: d.jsonl, options: { balance: data_source } }", []],
    ["{ id: x, recipe: dpo, data: d.jsonl, options: { reference: start } }", []],
    ["{ id: x, recipe: dpo, data: d.jsonl, options: { reference: math@40 } }", ["math@40"]],
    ["{ id: x, recipe: grpo, data: d.jsonl, options: { rewards: [{ skill: math, weight: 0.5 }, { function: 'r:score', path: lib }] } }", []],
    ["{ id: x, recipe: self-distill, data: d.jsonl, options: { labeller: math, check: math, samples: 4, keep: shortest } }", ["math"]],
    ["{ id: x, recipe: oracle-sft, data: d.jsonl, options: { oracles: { math: math, tool: ./models/t } } }", ["math", "./models/t"]],
    ["{ id: x, recipe: distill, data: d.jsonl, options: { teachers: { math: math, tool: { endpoint: 'http://h/v1', model: big } }, loss: gkd, beta: 0.3 } }", ["math"]],
    ["{ id: x, recipe: merge, options: { method: ties, models: [math, { model: tool, weight: 0.4 }] } }", ["math", "tool", "base"]],
    ["{ id: x, recipe: experts, data: d.jsonl }", []],
    ["{ id: x, recipe: router, data: d.jsonl, options: { experts: { math: math, tool: tool }, policy: { algorithm: none } } }", ["math", "tool"]],
    ["{ id: x, recipe: replay, options: { buffer: main }, args: { max_steps: 5 } }", []],
    ["{ id: x, recipe: command, options: { run: [python, train.py], checkpoints: out/checkpoint-* } }", []],
  ];
  for (const [stage, references] of cases) assert.deepEqual(parsed(stage).references, references, stage);
});

test("experts and their router start from the base; an expert has an adapter even if none is described", () => {
  const expert = parsed("{ id: x, recipe: experts, data: d.jsonl, adapter: { r: 4 } }");
  assert.deepEqual([expert.from, expert.adapter], [null, { r: 4, lora_alpha: 16, target_modules: "all-linear" }]);
  assert.equal(parsed("{ id: x, recipe: router, data: d.jsonl, options: { experts: { math: math } } }").from, null);
  assert.equal(parsed("{ id: x, recipe: experts, data: d.jsonl, from: math }").from, "math");
  assert.equal(parsed("{ id: x, recipe: dpo, data: d.jsonl }").from, "tool");
});

test("paths in options are absolute, whatever is nested", () => {
  const stage = parsed("{ id: x, recipe: grpo, data: d.jsonl, options: { rewards: [{ function: 'r:score', path: lib }, { check: { kind: function, function: 'c:ok', path: lib } }] } }");
  assert.deepEqual(stage.options["rewards"], [{ function: "r:score", path: "/p/lib" }, { check: { kind: "function", function: "c:ok", path: "/p/lib" } }]);
  const router = parsed("{ id: x, recipe: router, data: d.jsonl, options: { experts: { math: math }, paraphrases: { math: other/p.jsonl } } }");
  assert.deepEqual(router.options["paraphrases"], { math: "/p/other/p.jsonl" });
});

const broken: [string, string, RegExp][] = [
  ["an option of another recipe", "{ id: x, recipe: sft, data: d.jsonl, options: { reference: start } }", /^9:\d+ Unknown key "reference" in "options" of stage "x"\. Known keys: balance\.$/],
  ["data forgotten", "{ id: x, recipe: dpo }", /^9:\d+ Stage "x" has no "data": add it\. Training rows/],
  ["a needed option forgotten", "{ id: x, recipe: distill, data: d.jsonl, options: {} }", /^9:\d+ "options" of stage "x" has no "teachers": add it\. Domain/],
  ["options forgotten", "{ id: x, recipe: merge }", /^9:\d+ Stage "x" has no "options": add it\./],
  ["a loss that is none", "{ id: x, recipe: distill, data: d.jsonl, options: { teachers: { math: math }, loss: reverse } }", /"options\.loss" of stage "x" is "reverse", which is not known\./],
  ["a stage that is none", "{ id: x, recipe: merge, options: { method: average, models: [mth] } }", /Stage "x" names the checkpoint "mth", which is no stage\. Did you mean "math"\?/],
  ["itself", "{ id: x, recipe: merge, options: { method: average, models: [x] } }", /uses the checkpoint of the stage itself/],
  ["a domain that is no skill", "{ id: x, recipe: oracle-sft, data: d.jsonl, options: { oracles: { maths: math } } }", /names the skill "maths", which is not under "skills"\. Did you mean "math"\?/],
  ["a buffer that is none", "{ id: x, recipe: replay, options: { buffer: man } }", /replays from "man", which is not under "buffers"\. Did you mean "main"\?/],
  ["a router as a model", "{ id: r, recipe: router, data: d.jsonl, options: { experts: { math: math } } }\n  - { id: x, recipe: merge, from: base, options: { method: linear, models: [{ model: r, weight: 1 }, { model: math, weight: 1 }] } }", /Stage "x" uses "r" as a model, but that is a router/],
  ["a router as a start", "{ id: r, recipe: router, data: d.jsonl, options: { experts: { math: math } } }\n  - { id: x, recipe: sft, data: d.jsonl }", /Stage "x" starts from "r", a router over several experts/],
  ["a key in the file", "{ id: x, recipe: distill, data: d.jsonl, options: { teachers: { math: { endpoint: 'http://h', model: m, key: abc } } } }", /"options\.teachers\.math" of stage "x"/],
];
for (const [name, stage, expected] of broken) test(`options: ${name}`, () => assert.match(problem(stage), expected));

test("a reference is the base, a stage, one of its steps, or a path; a bare word that is no stage is none", () => {
  assert.deepEqual(referenceTarget("base", ["a"], "/p"), { kind: "base" });
  assert.deepEqual(referenceTarget("a@7", ["a"], "/p"), { kind: "stage", stage: "a", step: 7 });
  assert.deepEqual(referenceTarget("./a", ["a"], "/p"), { kind: "folder", path: "/p/a" });
  assert.equal(referenceTarget("b", ["a"], "/p"), null);
});

test("the recipes of the schema are the files of the runner, no more and no fewer", () => {
  const files = readdirSync(join(import.meta.dirname, "../../../../runner/seesaw_runner/recipes")).filter((name) => name.endsWith(".py") && name !== "__init__.py");
  assert.deepEqual(files.map((name) => name.replace(".py", "").replaceAll("_", "-")).sort(), [...knownRecipes].sort());
});
