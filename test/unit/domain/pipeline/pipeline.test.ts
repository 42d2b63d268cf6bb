import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parsePipeline, pipelineFileProblems } from "../../../../src/domain/pipeline/pipeline.ts";
import { flagDefaults, probeDefaults } from "../../../../src/domain/pipeline/pipelineDefaults.ts";
import schema from "../../../../media/seesaw.schema.json" with { type: "json" };

const small = `seesaw: 1
base: models/m0
skills:
  math: { probes: data/math.probe.jsonl, check: { kind: number-after, marker: so } }
stages:
  - id: math
    recipe: sft
    data: data/math.train.jsonl
  - { id: search, recipe: sft, data: data/search.train.jsonl }
`;

/** `line:column message` of every diagnostic. */
function problems(text: string, file = "/p/seesaw.yaml"): string[] {
  const { diagnostics, pipeline } = parsePipeline(text, file);
  if (diagnostics.some((one) => one.severity === "error")) assert.equal(pipeline, null);
  return diagnostics.map((one) => `${one.range.line}:${one.range.column} ${one.message}`);
}

/** The one diagnostic that a change of the small file gives. */
function problem(from: string, to: string): string {
  assert.ok(small.includes(from), from);
  const found = problems(small.replace(from, to));
  assert.equal(found.length, 1, found.join("\n"));
  return found[0] as string;
}

test("the small file parses, with every default filled in", () => {
  const { pipeline, diagnostics } = parsePipeline(small, "/home/me/demo/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  assert.ok(pipeline);
  assert.deepEqual([pipeline.name, pipeline.root, pipeline.base, pipeline.seed], ["demo", "/home/me/demo", "/home/me/demo/models/m0", 0]);
  assert.deepEqual(pipeline.flags, flagDefaults);
  const [math, search] = pipeline.stages;
  assert.deepEqual([math?.index, math?.from, math?.on, math?.launch, math?.probe, math?.save_every, math?.replay, math?.adapter], [1, null, "local", { kind: "python", processes: 1 }, probeDefaults, null, null, null]);
  assert.deepEqual([search?.index, search?.from, search?.data], [2, "math", "/home/me/demo/data/search.train.jsonl"]);
  assert.deepEqual(math?.range, { line: 6, column: 9, endLine: 6, endColumn: 13 });
  assert.deepEqual(pipeline.targets, [{ id: "local", kind: "local", python: null }]);
  assert.deepEqual(pipeline.ranges?.["/stages/1/data"], { line: 9, column: 38, endLine: 9, endColumn: 61 });
});

test("the schema and the code have the same defaults", () => {
  const { probe, flags } = { probe: schema.definitions.probe.properties, flags: schema.properties.flags.properties };
  assert.deepEqual(Object.fromEntries(Object.entries(probe).map(([name, rule]) => [name, rule.default])), probeDefaults);
  assert.deepEqual(Object.fromEntries(Object.entries(flags).map(([name, rule]) => [name, rule.default])), flagDefaults);
});

test("the sample pipelines are valid", () => {
  for (const name of ["", "slope/"]) {
    const text = readFileSync(new URL(`../../../../media/sample/${name}seesaw.yaml`, import.meta.url), "utf8");
    const { pipeline, diagnostics } = parsePipeline(text, `/s/${name}seesaw.yaml`);
    assert.deepEqual(diagnostics, []);
    assert.ok(pipeline !== null && pipeline.stages.length >= 3);
    assert.ok(pipeline.base.startsWith("/s/models/"), pipeline.base);
  }
});

test("everything a pipeline can say", () => {
  const { pipeline, diagnostics } = parsePipeline(`seesaw: 1
name: full
base: models/m0
seed: 7
skills:
  math: &skill { probes: p.jsonl, ood: o.jsonl, check: { kind: text, after: so, ignore_case: true }, segments: [{ name: r, pattern: "^.*;" }] }
  own: { <<: *skill, check: { kind: function, function: "checks:ok", path: lib } }
probe: { every: [40, 20, 20], top_k: 4 }
stages:
  - { id: math, recipe: sft, data: a.jsonl, probe_every: log, eval_every: null, save_every: 10, adapter: { r: 8, target_modules: all-linear }, launch: { kind: torchrun, processes: 2 }, env: { A: "1" }, on: gpu }
  - { id: b, recipe: sft, data: b.jsonl, from: base, replay: { buffer: main, ratio: 0.1 }, probe: { top_k: 2 } }
buffers:
  main: { from: [math], rows: 200, quality: { reward: 0.7 }, diversity: minhash }
  two: { from: [b], rows: 1, quality: { field: score, min: 1 }, diversity: { minhash: 0.5 } }
  three: { from: [math], rows: 1, quality: { check: true } }
targets: { gpu: { kind: local, python: .venv/bin/python }, other: { kind: local, python: python3.12 } }
`, "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  assert.ok(pipeline);
  assert.deepEqual(pipeline.skills[1]?.check, { kind: "function", function: "checks:ok", path: "/p/lib" });
  assert.equal(pipeline.skills[1]?.probes.id, "/p/p.jsonl");
  const [math, b] = pipeline.stages;
  assert.deepEqual([math?.probe.every, math?.probe.eval_every, math?.probe.top_k], ["log", null, 4]);
  assert.deepEqual([b?.probe.every, b?.probe.eval_every, b?.probe.top_k, b?.from], [[20, 40], null, 2, null]);
  assert.deepEqual(pipeline.buffers.map(({ quality, diversity }) => [quality, diversity]), [[{ field: null, min: 0.7 }, { minhash: 0.8 }], [{ field: "score", min: 1 }, { minhash: 0.5 }], [{ check: true }, null]]);
  assert.deepEqual(pipeline.targets.map((target) => target.python), [null, "/p/.venv/bin/python", "python3.12"]);
});

const cases: [string, string, string, RegExp][] = [
  ["unknown key", "    recipe: sft", "    recipe: sft\n    probes_every: 3", /^8:5 Unknown key "probes_every" in stage "math"\. Did you mean "probe_every"\?$/],
  ["unknown top-level key", "base:", "models: 1\nbase:", /^2:1 Unknown key "models" in the file\. Known keys: seesaw, name, base/],
  ["missing key", "    recipe: sft\n", "", /^6:5 Stage "math" has no "recipe": add it\. How to train/],
  ["unknown recipe", "recipe: sft\n    data", "recipe: stf\n    data", /^7:13 "recipe" of stage "math" is "stf", which is not known\. Did you mean "sft"\?/],
  ["unknown check", "kind: number-after", "kind: number_aftr", /^4:57 "check\.kind" of skill "math" is "number_aftr".* Did you mean "number-after"\? Known: text, /],
  ["check without its option", ", marker: so", "", /^4:42 "check" of skill "math" has no "marker": add it\. The word before the number/],
  ["option of another check", "marker: so", "marker: so, pattern: x", /Unknown key "pattern" in "check" of skill "math"\. Known keys: kind, marker\.$/],
  ["no skills", "  math: { probes: data/math.probe.jsonl, check: { kind: number-after, marker: so } }", "  {}", /Name at least one skill/],
  ["wrong type", "data: data/search.train.jsonl", "data: [x]", /^9:32 "data" of stage "search" is a list\. Write a path/],
  ["empty block", "    recipe: sft", "    recipe: sft\n    args:", /^8:\d+ "args" of stage "math" must be a block of keys, but it is empty\.$/],
  ["option-like path", "models/m0", "--upload-pack=x", /^2:7 "base" is "--upload-pack=x"\. Write a path .*"\.\/-name"/],
  ["id that is no folder name", "id: search", "id: ../search", /^9:11 "id" of stage "\.\.\/search" is .* it becomes part of a folder name\.$/],
  ["id with a trailing dot", "id: search", "id: search.", /folder name/],
  ["id beginning with a dash", "id: search", "id: -search", /folder name/],
  ["Windows device", "id: search", "id: nul", /^9:11 "nul" is a device on Windows/],
  ["duplicate stage", "id: search", "id: math", /^9:11 There are two stages with the id "math"/],
  ["ids that share a folder", "id: search", "id: Math", /differ only in upper and lower case/],
  ["stage named base", "id: search", "id: base", /"base" means the base model/],
  ["unknown parent", "id: search,", "id: search, from: mth,", /^9:25 Stage "search" starts from "mth", which is no stage\. Did you mean "math"\?/],
  ["later parent", "    recipe: sft", "    recipe: sft\n    from: search", /^8:11 The stages start from each other in a circle: math ← search ← math\. Let one of them start from "base"\.$/],
  ["itself as parent", "id: search,", "id: search, from: search,", /in a circle: search ← search/],
  ["replay ratio", "id: search,", "id: search, replay: { buffer: main, ratio: 1 },", /"replay\.ratio" of stage "search" must be less than 1, but it is 1\.$/],
  ["unknown buffer", "id: search,", "id: search, replay: { buffer: main, ratio: 0.1 },", /There are none: add "buffers: \{ main: \{ from: \[math\]/],
  ["unknown target", "id: search,", "id: search, on: lokal,", /^9:23 .* Did you mean "local"\? Targets: local\.$/],
  ["probe step 0", "    recipe: sft", "    recipe: sft\n    probe_every: 0", /"probe_every" of stage "math" is 0\. Write a number of steps \(20\)/],
  ["eval_every of a list with 0", "    recipe: sft", "    recipe: sft\n    eval_every: [0, 3]", /or null for only the first/],
  ["processes without torchrun", "id: search,", "id: search, launch: { kind: python, processes: 2 },", /write "kind: torchrun"/],
  ["environment value that is no text", "id: search,", "id: search, env: { A: 1 },", /in quotes/],
  ["an infinite argument", "id: search,", "id: search, args: { lr: .inf },", /^9:31 An argument cannot be infinite/],
  ["newer file", "seesaw: 1", "seesaw: 2", /^1:9 "seesaw" is 2\. This Seesaw reads version 1/],
  ["duplicate key", "    recipe: sft", "    recipe: sft\n    recipe: sft", /^8:5 The key "recipe" is written twice/],
  ["no YAML", "skills:", "skills: [", /^\d+:\d+ This is not valid YAML: /],
];

for (const [name, from, to, expected] of cases) test(`a clear sentence and place for: ${name}`, () => assert.match(problem(from, to), expected));

test("a buffer can only draw from earlier stages, that exist, and whose skill is there", () => {
  const text = `${small.replace("id: search,", "id: search, replay: { buffer: main, ratio: 0.1 },")}buffers: { main: { from: [search, mth], rows: 1, quality: { check: true } } }\n`;
  const found = problems(text);
  assert.match(found[0] as string, /^9:37 Stage "search" replays from "main", which draws from the stage itself/);
  assert.match(found[1] as string, /^10:27 Buffer "main" keeps rows that pass their skill's check, but there is no skill "search"/);
  assert.match(found[2] as string, /^10:35 Buffer "main" draws from "mth", which is no stage\. Did you mean "math"\?/);
  assert.equal(found.length, 3);
});

test("a secret in env is a warning, and the pipeline still there", () => {
  const { pipeline, diagnostics } = parsePipeline(small.replace("id: search,", 'id: search, env: { HF_TOKEN: "x" },'), "/p/seesaw.yaml");
  assert.ok(pipeline);
  assert.deepEqual(diagnostics.map((one) => one.severity), ["warning"]);
});

test("a name that every JavaScript object has is refused: what is looked up by it would be found where nothing is", () => {
  for (const name of Object.getOwnPropertyNames(Object.prototype)) {
    assert.match(problems(small.replace("id: search,", `id: ${name},`))[0] ?? "", /no word that programs keep for themselves/, name);
  }
  assert.ok(Object.getOwnPropertyNames(Object.prototype).includes("__proto__"));
});

test("several problems come in the order of the file", () => {
  assert.deepEqual(problems("base: -x\nseesaw: 1\nskils: {}\nskills: {}\nstages: []\n").map((one) => one.split(" ")[0]), ["1:7", "3:1", "4:1", "5:1"]);
});

test("line ends of Windows, also where the last one is cut, and several documents", () => {
  assert.deepEqual(problems(small.replaceAll("\n", "\r\n")), []);
  assert.deepEqual(problems(small.replaceAll("\n", "\r\n").slice(0, -1)), []);
  assert.deepEqual(problems(`${small}---\nseesaw: 1\n`), ["10:1 The file has several documents, parted by `---`: keep one of them."]);
});

test("no file is too strange", () => {
  for (const text of ["", "\ufeff", "- a", "text", "a: *b", "? [x]\n: y", "%YAML 9", "\0", "seesaw: 1\nstages: {}\nskills: []\nbase: {}", "__proto__: 1"]) assert.ok(problems(text).length > 0, JSON.stringify(text));
  assert.deepEqual(problems(small.replaceAll("\n", "\r\n")), []);
  assert.deepEqual(problems(`\ufeff${small}`), []);
});

test("files that are not there are reported where they are named", () => {
  const { pipeline } = parsePipeline(small, "/p/seesaw.yaml");
  assert.ok(pipeline);
  const found = pipelineFileProblems(pipeline, (path) => path !== "/p/data/search.train.jsonl" && path !== "/p/models/m0");
  assert.deepEqual(found.map((one) => [one.range.line, one.range.column, one.message.split(".")[0]]), [[2, 7, "The base model is not there: /p/models/m0"], [9, 38, 'The data of stage "search" is not there: /p/data/search']]);
  assert.deepEqual(pipelineFileProblems(pipeline, () => true), []);
});

test("Windows paths", () => {
  const { pipeline } = parsePipeline(small, "C:\\Users\\me\\demo\\seesaw.yaml");
  assert.deepEqual([pipeline?.root, pipeline?.name, pipeline?.stages[0]?.data], ["C:\\Users\\me\\demo", "demo", "C:\\Users\\me\\demo\\data\\math.train.jsonl"]);
});

test("what is done about a flag is said for all skills, and for one", () => {
  const { pipeline, diagnostics } = parsePipeline(small.replace("marker: so } }", "marker: so }, on_flag: stop, decision: [answer, terminator] }\nflags: { tolerance: 3, detector: nll, tolerance_nats: 0.1, on_flag: pause }"), "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  assert.deepEqual([pipeline?.skills[0]?.on_flag, pipeline?.skills[0]?.decision], ["stop", ["answer", "terminator"]]);
  assert.deepEqual(pipeline?.flags, { alpha: 0.1, tolerance: 3, detector: "nll", tolerance_nats: 0.1, on_flag: "pause" });
  assert.match(problem("marker: so } }", "marker: so }, on_flag: hold }"), /^4:\d+ "on_flag" of skill "math" is "hold", which is not known.*Known: inform, pause, stop\.$/);
  assert.match(problem("marker: so } }", "marker: so }, decision: 5 }"), /Write all, answer, first-5, or a list of names of segments\./);
});

test("a tolerance that was written in nats is told that it counts points now; nothing is refused", () => {
  const old = parsePipeline(`${small}flags: { tolerance: 0.2 }\n`, "/p/seesaw.yaml");
  assert.ok(old.pipeline);
  assert.deepEqual(old.diagnostics.map(({ severity, code, message }) => [severity, code, message]), [["warning", "old-unit", "The tolerance of flags is in points of accuracy now, so 0.2 is less than one point: write 2 for two points, or, for what it meant before, \"detector: nll\" and \"tolerance_nats: 0.2\"."]]);
  for (const fine of [0, 1, 2.5]) assert.deepEqual(problems(`${small}flags: { tolerance: ${fine} }\n`), []);
});

test("a stage can start from a step of another", () => {
  const { pipeline, diagnostics } = parsePipeline(small.replace("search.train.jsonl }", "search.train.jsonl, from: math@40 }"), "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  assert.deepEqual([pipeline?.stages[1]?.from, pipeline?.stages[1]?.fromStep], ["math", 40]);
  assert.match(problem("search.train.jsonl }", "search.train.jsonl, from: maths@40 }"), /which is no stage/);
  assert.match(problem("search.train.jsonl }", "search.train.jsonl, from: base@40 }"), /which is no stage/);
});
