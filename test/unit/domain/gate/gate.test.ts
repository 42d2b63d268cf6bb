import assert from "node:assert/strict";
import { test } from "node:test";
import { known } from "../../../../src/domain/cost/devices.ts";
import { estimateStage } from "../../../../src/domain/cost/stageCost.ts";
import { emptyRow, type EvaluationRow } from "../../../../src/domain/evaluation/evaluationRow.ts";
import { checkGate, type GateInput, type GateItem } from "../../../../src/domain/gate/gate.ts";
import { parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import type { ChainRun } from "../../../../src/domain/run/chain.ts";
import type { RunState } from "../../../../src/domain/run/runState.ts";
import { parseRouterReport } from "../../../../src/protocol/routerReport.ts";
import { costInput } from "../cost/models.ts";
import { file, makeRun } from "../../host/views.ts";

const yaml = `seesaw: 1
base: m0
skills:
  math: { probes: math.jsonl, check: { kind: number-after, marker: so } }
  search: { probes: search.jsonl, check: { kind: text } }
stages:
  - { id: math, recipe: sft, data: math.jsonl, args: { max_steps: 80 } }
  - { id: search, recipe: sft, data: search.jsonl, args: { max_steps: 60 }, replay: { buffer: main, ratio: 0.1 } }
  - { id: expert-math, recipe: experts, data: math.jsonl, args: { max_steps: 80 } }
  - { id: expert-search, recipe: experts, data: search.jsonl, args: { max_steps: 80 } }
  - { id: route, recipe: router, data: all.jsonl, options: { experts: { math: expert-math, search: expert-search } } }
  - { id: mix, recipe: merge, from: search, options: { method: linear, models: [math, search], weight: 0.5 } }
buffers: { main: { from: [math], rows: 200, quality: { check: true } } }
`;
const { pipeline, diagnostics } = parsePipeline(yaml, file);
assert.ok(pipeline !== null, JSON.stringify(diagnostics));

const run = (stage: string, spec: Partial<ChainRun["spec"]>, state: Partial<RunState> = {}, id = `${stage}-1`): ChainRun => {
  const made = makeRun(stage, { status: "done", ...state }, id);
  return { ...made, spec: { ...made.spec, ...spec } };
};
const report = { rule: { kind: "tfidf", accuracy: { id: { n: 100, count: 90, estimate: 0.9, low: 0.82, high: 0.95 }, paraphrase: { n: 0, count: 0, estimate: null, low: null, high: null } } }, policy: { kind: "reinforce", accuracy: { id: 0.97, paraphrase: 0.85 } }, chosen: "policy", difference: { estimate: 7, low: 2.5, high: 11.5 }, margin: 5 };
const cost: RunState["cost"] = { step: 1, memory: { kind: "device", before: 0, start: 1e9, peak: 20e9, reserved: 22e9 }, train_s: 1, probe_s: 1, tokens: 1 };
const route = run("route", { options: { experts: { math: "expert-math", search: "expert-search" } } }, { cost, device: "NVIDIA H200" });
const merge = (weight: number): ChainRun => run("mix", { options: { method: "linear", models: ["math", "search"], weight } }, { evals: [{ step: 1, skill: "math", split: "id", n: 64, correct: 30 }] }, `mix-${weight}`);
const row = (skill: string, change: Partial<EvaluationRow> = {}): EvaluationRow => ({ ...emptyRow({ question: "retention", measure: "retention", skill, split: "id" }, ""), why: null, p: 0.004, adjusted: 0.008, n: 64, from: { label: "M1", accuracy: 0.9 }, to: { label: "M2", accuracy: 0.7 }, ...change });
const whole: GateInput = {
  pipeline,
  runs: [run("search", { replay: { buffer: "main", ratio: 0.1, rows: 200, from: [], quality: { check: true }, diversity: null } })],
  routers: [{ run: route, report: parseRouterReport(JSON.stringify(report)) }],
  merges: [0.3, 0.5, 0.7].map((weight) => ({ run: merge(weight), reported: true })),
  memory: { plan: null },
  evaluation: [row("math"), row("search")],
  why: null,
};
const item = (id: GateItem["id"], change: Partial<GateInput> = {}): GateItem => checkGate({ ...whole, ...change }).items.find((one) => one.id === id) as GateItem;
const states = (change: Partial<GateInput>): string => checkGate({ ...whole, ...change }).items.map(({ state }) => state).join(" ");

test("a chain that has everything is ready, and every finding names its run or figure", () => {
  const result = checkGate(whole);
  assert.deepEqual(result.items.map(({ id, state, todo }) => [id, state, todo]), [["router", "met", []], ["replay", "met", []], ["memory", "met", []], ["sweep", "met", []], ["benchmark", "met", []]]);
  assert.equal(result.ready, true);
  const text = result.items.flatMap(({ found }) => found).join("\n");
  for (const part of [/route-1: tfidf: id 90 %\./, /Trained router: reinforce: id 97 %, paraphrase 85 %; /, /\+7\.0 points against the rule \(95 % interval \+2\.5 to \+11\.5\)/, /search-1: 10 % replay from main/, /2 experts: 20 GB at the peak on NVIDIA H200/, /linear of math, search: 3 coefficients \(0\.3; 0\.5; 0\.7\)/, /math: −20\.0 points from M1 to M2, p = 0\.008 over 64 prompts/]) assert.match(text, part);
});

test("one demand that is not met is enough, and only that one is told", () => {
  assert.equal(states({ routers: [] }), "missing met missing met met");
  assert.equal(states({ merges: whole.merges.slice(0, 2) }), "met met met missing met");
  assert.equal(states({ runs: [] }), "met missing met met met");
  assert.equal(states({ evaluation: null, why: "No SQLite." }), "met met met met missing");
  assert.equal(checkGate({ ...whole, evaluation: null, why: "No SQLite." }).ready, false);
});

test("the trained router has to be better by the margin, with an interval above 0; or the rule goes live alone", () => {
  const with_ = (change: object): GateItem => item("router", { routers: [{ run: route, report: parseRouterReport(JSON.stringify({ ...report, ...change })) }] });
  assert.equal(with_({ difference: { estimate: 4.9, low: 2, high: 8 } }).state, "failed");
  const wide = with_({ difference: { estimate: 7, low: -0.5, high: 14 } });
  assert.deepEqual([wide.state, /its interval includes 0/.test(wide.todo[0] ?? "")], ["failed", true]);
  assert.equal(with_({ margin: 3, difference: { estimate: 4, low: 1, high: 7 } }).state, "met");
  assert.equal(with_({ policy: null }).state, "missing");
  const alone = { ...route, spec: { ...route.spec, options: { ...route.spec.options, policy: { algorithm: "none" } } } };
  assert.equal(item("router", { routers: [{ run: alone, report: parseRouterReport(JSON.stringify({ ...report, policy: null, difference: null })) }] }).state, "met");
  assert.equal(with_({ rule: null }).state, "missing");
  assert.equal(item("router", { routers: [{ run: route, report: null }] }).state, "missing");
});

test("a report of another version is read as far as it goes", () => {
  assert.equal(parseRouterReport("{"), null);
  assert.equal(parseRouterReport("[1]"), null);
  assert.deepEqual(parseRouterReport('{"rule":{"kind":"tag","accuracy":0.5},"chosen":"oracle","difference":{"estimate":1},"new":true}'), { rule: { kind: "tag", accuracy: { id: 0.5 } }, policy: null, chosen: null, difference: null, margin: null });
});

test("replay: the gate has to be on in the file and in the run", () => {
  const open = { ...pipeline, buffers: pipeline.buffers.map((buffer) => ({ ...buffer, quality: null })) };
  const ungated = [run("search", { replay: { buffer: "main", ratio: 0.1, rows: 200, from: [], quality: null, diversity: null } })];
  assert.match(item("replay", { pipeline: open, runs: ungated }).todo[0] ?? "", /Buffer main takes every row/);
  assert.equal(item("replay", { pipeline: open, runs: ungated }).state, "failed");
  assert.match(item("replay", { runs: ungated }).todo[0] ?? "", /search-1 was run before buffer main had a quality gate: seesaw run search/);
  assert.equal(item("replay", { pipeline: { ...pipeline, stages: pipeline.stages.filter(({ id }) => id !== "search") } }).state, "missing");
});

test("memory: measured with as many experts as there are, and within the device", () => {
  const plan = (name: string) => estimateStage(costInput({ device: known(name), stage: { recipe: "router", args: {}, options: {} }, experts: [{ name: "a", parameters: 20e6 }] }));
  const fewer = { ...route, spec: { ...route.spec, options: { experts: { math: "expert-math" } } } };
  assert.match(item("memory", { routers: [{ run: fewer, report: null }] }).todo[0] ?? "", /The pipeline has 2 experts by now/);
  assert.equal(item("memory", { memory: { plan: plan("NVIDIA H200") } }).state, "met");
  assert.equal(item("memory", { memory: { plan: plan("Tesla T4") } }).state, "failed");
  const untold = { ...route, state: { ...route.state, cost: null } };
  assert.match(item("memory", { routers: [{ run: untold, report: null }] }).todo[0] ?? "", /seesaw run route, then seesaw plan route --measured/);
});

test("a sweep is of the same models and method; merges without report or checks are no points", () => {
  const other = (weight: number): ChainRun => ({ ...merge(weight), spec: { ...merge(weight).spec, options: { method: "ties", models: ["math", "search"], weight } } });
  assert.equal(item("sweep", { merges: [merge(0.3), merge(0.5), other(0.7)].map((one) => ({ run: one, reported: true })) }).state, "missing");
  assert.equal(item("sweep", { merges: [merge(0.3), merge(0.3), merge(0.3)].map((one) => ({ run: one, reported: true })) }).state, "missing");
  assert.match(item("sweep", { merges: whole.merges.map((one, index) => ({ ...one, reported: index > 0 })) }).found.join(" "), /mix-0\.3 has no merge-report\.json/);
  const unchecked = whole.merges.map(({ run: one }) => ({ run: { ...one, state: { ...one.state, evals: [] } }, reported: true }));
  assert.equal(item("sweep", { merges: unchecked }).state, "missing");
  const lists = [[0.2, 0.8], [0.5, 0.5], [0.8, 0.2]].map((weights) => ({ reported: true, run: { ...merge(1), id: `mix-${weights[0]}`, spec: { ...merge(1).spec, options: { method: "average", models: [{ model: "math", weight: weights[0] }, { model: "search", weight: weights[1] }] } } } }));
  assert.match(item("sweep", { merges: lists }).found[0] ?? "", /average of math, search: 3 coefficients \(0\.2 \+ 0\.8; 0\.5 \+ 0\.5; 0\.8 \+ 0\.2\)/);
});

test("a skill without a test is named with its reason; too few prompts are not enough", () => {
  const unknown = item("benchmark", { evaluation: [row("math"), row("search", { p: null, why: "search was not known at M1 (3 %): there was nothing to retain." })] });
  assert.deepEqual([unknown.state, unknown.found[1]], ["met", "search: search was not known at M1 (3 %): there was nothing to retain. (64 prompts at M1 and M2)"], "compared, and nothing to lose");
  const untested = item("benchmark", { evaluation: [row("math"), row("search", { p: null, n: 0, from: null, to: null, why: "search was not known at M1." })] });
  assert.deepEqual([untested.state, untested.todo.length, /search has no paired test: search was not known at M1\./.test(untested.todo[0] ?? "")], ["missing", 1, true]);
  assert.equal(item("benchmark", { evaluation: [row("math"), row("search", { tooFew: "Only 12 prompts." })] }).state, "failed");
  assert.equal(item("benchmark", { evaluation: [row("math")] }).state, "missing");
});

test("a skill that names lm-eval tasks is judged by them, since its own stage where they were measured there", () => {
  const task = (from: string, change: Partial<EvaluationRow> = {}): EvaluationRow => ({ ...row("gsm8k", change), question: "benchmark", split: "benchmark", from: { label: from, accuracy: 0.5 }, ...("to" in change ? {} : { to: { label: "M2", accuracy: 0.45 } }) });
  const named = { ...pipeline, skills: pipeline.skills.map((skill) => (skill.id === "math" ? { ...skill, benchmark: ["gsm8k"] } : skill)) };
  const at = (...rows: EvaluationRow[]): GateItem => item("benchmark", { pipeline: named, evaluation: [row("math"), row("search"), ...rows] });
  const met = at(task("M0", { to: { label: "M1", accuracy: 0.9 } }), task("M1"), task("M0"));
  assert.deepEqual([met.state, met.found], ["met", ["math, gsm8k: −5.0 points from M1 to M2, p = 0.008 over 64 prompts.", "search: −20.0 points from M1 to M2, p = 0.008 over 64 prompts."]]);
  assert.match(at(task("M0")).found[0] ?? "", /gsm8k: −5\.0 points from M0 to M2/, "not measured at its own stage: since the first time");
  const missing = at();
  assert.deepEqual([missing.state, /^math has no paired test on gsm8k: it was not measured at two checkpoints/.test(missing.todo[0] ?? "")], ["missing", true], "its check alone is not enough");
  const refused = at({ ...emptyRow({ question: "benchmark", measure: "benchmark", skill: "gsm8k", split: "benchmark" }, "gsm8k is not comparable: the prompt set differs. Score both with the same settings.") });
  assert.match(refused.todo[0] ?? "", /not comparable: the prompt set differs/);
  assert.equal(at(task("M1", { tooFew: "Only 12 prompts." })).state, "failed");
  const other = item("benchmark", { evaluation: [row("math"), row("search"), task("M0")] });
  assert.deepEqual([other.state, /^gsm8k: −5\.0 points.*No skill names it under `benchmark`\.$/.test(other.found[2] ?? "")], ["met", true]);
});

test("the file names a skill's benchmarks alone or as a list", () => {
  const read = (benchmark: string) => parsePipeline(yaml.replace("probes: math.jsonl,", `probes: math.jsonl, benchmark: ${benchmark},`), file);
  assert.deepEqual(read("gsm8k").pipeline?.skills[0]?.benchmark, ["gsm8k"]);
  assert.deepEqual(read("[gsm8k, minerva]").pipeline?.skills[0]?.benchmark, ["gsm8k", "minerva"]);
  assert.equal(pipeline.skills[0]?.benchmark, undefined);
  assert.match(read("3").diagnostics[0]?.message ?? "", /Write the name of a task, such as gsm8k/);
});
