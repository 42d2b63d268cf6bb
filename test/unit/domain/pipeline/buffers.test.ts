import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePipeline, pipelineFileProblems } from "../../../../src/domain/pipeline/pipeline.ts";
import type { Pipeline } from "../../../../src/domain/pipeline/pipelineModel.ts";
import { coverageText, leftOutText, nearnessText } from "../../../../src/domain/rows/bufferText.ts";

const withBuffer = (buffer: string, stage = "replay: { buffer: main, ratio: 0.1 }"): string => `seesaw: 1
base: models/m0
skills:
  math: { probes: m.jsonl, check: { kind: number-after, marker: so } }
stages:
  - { id: math, recipe: sft, data: m.jsonl }
  - { id: search, recipe: sft, data: s.jsonl }
  - { id: tool, recipe: sft, data: t.jsonl, ${stage} }
buffers: { main: ${buffer} }
`;

function parsed(buffer: string, stage?: string): Pipeline {
  const { pipeline, diagnostics } = parsePipeline(withBuffer(buffer, stage), "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  assert.ok(pipeline);
  return pipeline;
}

function problem(buffer: string, stage?: string): string {
  const { diagnostics } = parsePipeline(withBuffer(buffer, stage), "/p/seesaw.yaml");
  assert.equal(diagnostics.length, 1, diagnostics.map((one) => one.message).join("\n"));
  return diagnostics[0]?.message ?? "";
}

test("a buffer covers its rows by k-center or clusters, with or without near-duplicates", () => {
  const diversity = (text: string) => parsed(`{ from: [math], rows: 9, diversity: ${text} }`).buffers[0]?.diversity;
  assert.deepEqual(diversity("{ minhash: 0.8, k_center: true }"), { minhash: 0.8, k_center: { features: "tfidf" } });
  assert.deepEqual(diversity("{ k_center: { features: hidden } }"), { k_center: { features: "hidden" } });
  assert.deepEqual(diversity("{ clusters: 20 }"), { clusters: { features: "tfidf", count: 20 } });
  assert.deepEqual(diversity("{ clusters: { count: 5, features: hidden } }"), { clusters: { features: "hidden", count: 5 } });
  const fits = /Write minhash \(Jaccard 0\.8\), \{ minhash: 0\.8 \}, \{ k_center: true \} or \{ clusters: 20 \}/;
  for (const text of ["{ k_center: true, clusters: 3 }", "{ k_center: false }", "{ k_center: { features: words } }", "{ clusters: 1 }", "{}", "{ kcenter: true }"]) assert.match(problem(`{ from: [math], rows: 9, diversity: ${text} }`), fits, text);
});

test("quotas stand for rows, and name each stage once", () => {
  const [buffer] = parsed("{ from: [math, search], quotas: { math: 100, search: 0 } }").buffers;
  assert.deepEqual([buffer?.rows, buffer?.quotas], [100, { math: 100, search: 0 }]);
  assert.equal(parsed("{ from: [math], rows: 7 }").buffers[0]?.quotas, undefined);
  assert.match(problem("{ from: [math] }"), /Buffer "main" has no "rows": add it\. How many rows it holds at most/);
  assert.match(problem("{ from: [math, search], quotas: { math: 5 } }"), /none for search: say how many rows/);
  assert.match(problem("{ from: [math], quotas: { math: 5, serch: 3 } }"), /a quota for "serch", which is not among the stages it draws from/);
  assert.match(problem("{ from: [math], rows: 4, quotas: { math: 5 } }"), /add up to 5 rows, but it holds 4/);
  assert.match(problem("{ from: [math], quotas: { math: 0 } }"), /are all 0/);
  assert.match(problem("{ from: [math], quotas: { math: 1.5 } }"), /must be a whole number/);
});

test("a buffer takes rows near to named ones first: 1 to 64 lines of a file that is there", () => {
  const near = (text: string): string => `{ from: [math], rows: 9, near: ${text} }`;
  const pipeline = parsed(near("{ rows: m.jsonl, lines: [25, 3, 17] }"));
  assert.deepEqual(pipeline.buffers[0]?.near, { rows: "/p/m.jsonl", lines: [3, 17, 25] });
  assert.equal(parsed("{ from: [math], rows: 9 }").buffers[0]?.near, undefined);
  assert.match(problem(near("{ rows: m.jsonl }")), /"near" of buffer "main" has no "lines": add it\. Their lines in it, counted from 1/);
  assert.match(problem(near("{ rows: m.jsonl, lines: [] }")), /"near\.lines" of buffer "main" is an empty list\. Write 1 to 64 line numbers, each once, such as \[3, 17, 25\]/);
  assert.match(problem(near("{ rows: m.jsonl, lines: [3, 3] }")), /Write 1 to 64 line numbers, each once/);
  assert.match(problem(near(`{ rows: m.jsonl, lines: [${Array.from({ length: 65 }, (_, index) => index + 1).join(", ")}] }`)), /Write 1 to 64 line numbers/);
  assert.match(problem(near("{ rows: m.jsonl, lines: [3, 0] }")), /"near\.lines\.1" of buffer "main" must be at least 1, but it is 0/);
  assert.match(problem(near("{ rows: m.jsonl, lines: [1.5] }")), /must be a whole number/);
  assert.match(problem(near("{ rows: m.jsonl, line: [1], lines: [1] }")), /Unknown key "line" in "near" of buffer "main"\. Did you mean "lines"/);
  const gone = pipelineFileProblems(parsed(near("{ rows: gone.jsonl, lines: [1] }")), (path) => !path.endsWith("gone.jsonl"));
  assert.deepEqual(gone.map(({ message, range }) => [message, range.line]), [["The file whose rows \"near\" of buffer \"main\" names is not there: /p/gone.jsonl. Correct the path, or create the file.", 9]]);
});

test("the stages that replay from a buffer with a reward model name it, and it has to be there before them", () => {
  const judged = "{ from: [math], rows: 9, quality: { reward_model: ./models/rm, min: 0.5 } }";
  const { stages, buffers } = parsed(judged);
  assert.deepEqual(buffers[0]?.quality, { reward_model: "./models/rm", min: 0.5 });
  assert.deepEqual(stages.map(({ references }) => references), [[], [], ["./models/rm"]]);
  const replay = parsePipeline(withBuffer(judged, "from: math").replace("buffers:", "  - { id: r, recipe: replay, options: { buffer: main } }\nbuffers:"), "/p/seesaw.yaml").pipeline;
  assert.deepEqual(replay?.stages.map(({ references }) => references.length), [0, 0, 0, 1]);
  assert.match(problem("{ from: [math], rows: 9, quality: { reward_model: rm, min: 0.5 } }"), /The reward model "rm" of buffer "main" is no stage.*the path of a folder \(\.\/rm\)/);
  assert.match(problem("{ from: [math], rows: 9, quality: { reward_model: tool, min: 0.5 } }"), /whose reward model is the checkpoint of the stage itself/);
  assert.match(problem("{ from: [math], rows: 9, quality: { reward_model: ./rm } }"), /reward_model: models\/reward, min: 0/);
});

test("accelerate and deepspeed start several processes; only accelerate has a configuration", () => {
  const launch = (text: string) => parsed("{ from: [math], rows: 9 }", `launch: ${text}`).stages.at(-1)?.launch;
  assert.deepEqual(launch("{ kind: accelerate, processes: 2, config: acc.yaml, args: [--gpu_ids, '0,1'] }"), { kind: "accelerate", processes: 2, config: "/p/acc.yaml", args: ["--gpu_ids", "0,1"] });
  assert.deepEqual(launch("{ kind: deepspeed, processes: 2 }"), { kind: "deepspeed", processes: 2 });
  const plain = "{ from: [math], rows: 9 }";
  assert.match(problem(plain, "launch: { kind: torchrun, processes: 2, config: acc.yaml }"), /is started by torchrun: write "kind: accelerate"/);
  assert.match(problem(plain, "launch: { kind: python, args: [x] }"), /one Python needs none/);
  assert.match(problem(plain, "launch: { kind: python, processes: 2 }"), /write "kind: torchrun"/);
  assert.match(problem(plain, "launch: { kind: accelarate }"), /Did you mean "accelerate"/);
});

test("what a buffer left out is said in words", () => {
  assert.equal(leftOutText({ quality: 1200, duplicate: 2, probe: 1 }), "1,200 below the quality, 2 near-duplicates, 1 also a probe");
  const line = coverageText({ stage: "math", method: "k_center", features: "tfidf", mean: 0.25, max: 0.5, random: { mean: 0.31, max: 0.8 } });
  assert.match(line, /^math by k-center of TF-IDF: rows left out are 0\.25\d* \(at most 0\.5/);
  assert.match(line, /by chance it would be 0\.31\d* \(at most 0\.8/);
  assert.match(nearnessText({ stage: "math", rows: 100, mean: 0.52, random: { mean: 0.2 } }), /^math: 100 rows taken first, of prompts 0\.52\d* similar to the nearest that near names; by chance it would be 0\.2/);
  assert.equal(nearnessText({ stage: "math", rows: 0, mean: 0, random: { mean: 0 } }), "math: no row is like those that near names");
});
