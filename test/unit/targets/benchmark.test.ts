import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { BenchmarkMessage, BenchmarkRequest } from "../../../src/protocol/benchmark.ts";
import { parsePipeline } from "../../../src/domain/pipeline/pipeline.ts";
import { buildChain } from "../../../src/domain/run/chain.ts";
import { freezeRun, planStage } from "../../../src/targets/freezeRun.ts";
import { FileHasher } from "../../../src/targets/hashFiles.ts";
import { runBenchmark } from "../../../src/targets/benchmark.ts";
import type { RunSpec } from "../../../src/protocol/runSpec.ts";
import { AppError } from "../../../src/util/errors.ts";

const repo = join(import.meta.dirname, "../../..");
const box = mkdtempSync(join(tmpdir(), "seesaw-benchmark-"));
after(() => rmSync(box, { recursive: true }));

const stages = "stages:\n  - { id: a, recipe: sft, data: d.jsonl }\n  - { id: b, recipe: sft, data: d.jsonl }\n  - { id: c, recipe: sft, data: d.jsonl, from: a }\n";
const yaml = (benchmark: string): string => `seesaw: 1\nbase: m\nskills: { s: { probes: p.jsonl, check: { kind: text } } }\n${stages}${benchmark}`;

test("benchmark: in seesaw.yaml, with defaults, absolute paths, and errors that name the place", () => {
  const parse = (text: string): ReturnType<typeof parsePipeline> => parsePipeline(yaml(text), "/w/seesaw.yaml");
  assert.equal(parse("").pipeline?.benchmark, null);
  assert.deepEqual(parse("benchmark: { lm_eval: [gsm8k] }\n").pipeline?.benchmark, { lm_eval: ["gsm8k"], include_path: null, limit: null, batch_size: 8, num_fewshot: null, chat_template: false, every: "stage" });
  const full = parse("benchmark: { lm_eval: [toy], include_path: tasks, limit: 50, batch_size: auto, num_fewshot: 0, chat_template: true, every: end }\n");
  assert.deepEqual([full.pipeline?.benchmark?.include_path, full.pipeline?.benchmark?.batch_size, full.pipeline?.benchmark?.every], ["/w/tasks", "auto", "end"]);
  for (const [text, message] of [
    ["benchmark: { lm_eval: [] }", /benchmark\.lm_eval.* is empty/],
    ["benchmark: { lm_eval: [a], lmit: 5 }", /Unknown key "lmit".*Did you mean "limit"/],
    ["benchmark: { lm_eval: [a], limit: 0 }", /benchmark\.limit.*at least 1/],
    ["benchmark: { lm_eval: [a], batch_size: many }", /Write a whole number from 1, or auto/],
    ["benchmark: { lm_eval: [a], every: sometimes }", /benchmark\.every.*Known: stage, end/],
    ["benchmark: { limit: 5 }", /has no "lm_eval"/],
  ] as const) {
    const { diagnostics, pipeline } = parse(`${text}\n`);
    assert.equal(pipeline, null, text);
    assert.match(diagnostics[0]?.message ?? "", message, text);
    assert.equal(diagnostics[0]?.range.line, 8, text);
  }
});

test("run.json of a stage says what to measure; with `every: end` only stages that nothing starts from; the fingerprint is the same", async () => {
  mkdirSync(join(box, "w"));
  cpSync(join(repo, "media/sample/models/m0"), join(box, "w/m"), { recursive: true });
  for (const name of ["d", "p"]) writeFileSync(join(box, "w", `${name}.jsonl`), '{"text":"x"}\n');
  const hasher = new FileHasher(join(box, "hashes.json"));
  const plan = async (benchmark: string): Promise<RunSpec> => {
    const { pipeline } = parsePipeline(yaml(benchmark), join(box, "w/seesaw.yaml"));
    assert.ok(pipeline);
    const planned = await planStage(pipeline, "a", buildChain(pipeline, []), hasher);
    return freezeRun(pipeline, planned, { id: "a-1", trusted: true, target: { id: "local", kind: "local", python: "python" }, env: {}, versions: {} });
  };
  const [none, each, end] = [await plan(""), await plan("benchmark: { lm_eval: [x] }\n"), await plan("benchmark: { lm_eval: [x], every: end }\n")];
  assert.deepEqual([none.benchmark, end.benchmark], [null, null]);
  assert.deepEqual(each.benchmark, { lm_eval: ["x"], include_path: null, limit: null, batch_size: 8, num_fewshot: null, chat_template: false });
  assert.equal(each.fingerprint, none.fingerprint);
});

const python = join(repo, ".venv/bin/python");
const request: BenchmarkRequest = { v: 1, checkpoint: join(repo, "media/sample/models/m0"), run: "r", stage: "s", step: 0, label: "M0", benchmark: { lm_eval: ["toy"], include_path: join(box, "nowhere"), limit: null, batch_size: 8, num_fewshot: null, chat_template: false }, trusted: true, use_cpu: true };

test("the process gets the request as a file, and what it says of a task comes back", { skip: existsSync(python) ? false : "there is no .venv" }, async () => {
  const heard: BenchmarkMessage[] = [];
  const folder = join(box, "benchmarks/step-000000");
  const failed = await runBenchmark({ runnerDir: join(repo, "runner"), root: box, python, folder, request, env: {}, force: false, onMessage: (message) => heard.push(message) });
  assert.deepEqual(failed.map(({ code }) => code), ["bad-argument"]);
  assert.match(failed[0]?.message ?? "", /`benchmark\.include_path` is .*nowhere, which is no folder/);
  assert.deepEqual(heard, failed);
  assert.deepEqual(JSON.parse(readFileSync(join(folder, "request.json"), "utf8")), request);
});

test("nothing is started where the workspace is not trusted, nor from a Python that is not there", async () => {
  const start = (more: object): Promise<unknown> => runBenchmark({ runnerDir: join(repo, "runner"), root: box, python: "/nowhere/python", folder: join(box, "x"), request, env: {}, force: false, onMessage: () => {}, ...more });
  await assert.rejects(start({ request: { ...request, trusted: false } }), (error) => AppError.is(error, "untrusted"));
  assert.equal(existsSync(join(box, "x")), false);
  await assert.rejects(start({}), (error) => AppError.is(error, "spawn-failed"));
});
