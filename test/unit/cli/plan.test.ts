import assert from "node:assert/strict";
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { recordRuns } from "../../vscode/recordRuns.ts";
import { BundledCli, repo } from "./bundledCli.ts";

const bundled = await BundledCli.build();
const box = mkdtempSync(join(tmpdir(), "seesaw-plan-"));
after(() => {
  rmSync(box, { recursive: true });
  bundled.dispose();
});
const cli = async (...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> => bundled.run(root, args);

/** The sample's chain with recorded runs; each also tells what it took, and what was predicted for it. */
const root = join(box, "chain");
mkdirSync(root);
for (const name of ["data", "models"]) symlinkSync(join(repo, "media/sample", name), join(root, name));
cpSync(join(repo, "media/sample/seesaw.yaml"), join(root, "seesaw.yaml"));
const ids = recordRuns({ root });
const dirOf = (stage: string): string => join(root, ".seesaw/runs", ids[stage] ?? "");
for (const stage of Object.keys(ids)) {
  const file = join(dirOf(stage), "run.json");
  const spec = JSON.parse(readFileSync(file, "utf8")) as object;
  writeFileSync(file, JSON.stringify({ ...spec, predicted: { v: 1, memory: { device: null, resident: { expected: 228e6, low: 200e6, high: 300e6 } }, tokens: 98_355, flops: 2.5e11, seconds: { expected: 7, low: 5, high: 9 } } }));
  const journal = join(dirOf(stage), "journal.jsonl");
  const lines = readFileSync(journal, "utf8").trimEnd().split("\n");
  const last = JSON.parse(lines.at(-1) ?? "") as { seq: number; t: number };
  const cost = { v: 1, seq: last.seq, t: last.t, attempt: 1, type: "cost.measured", step: 100_000, memory: { kind: "resident", before: 558e6, start: 730e6, peak: 791e6, reserved: null }, train_s: 8, probe_s: 2, tokens: 98_332 };
  writeFileSync(journal, `${[...lines.slice(0, -1), JSON.stringify(cost)].join("\n")}\n`);
  appendFileSync(journal, `${JSON.stringify({ ...last, seq: last.seq + 1 })}\n`);
}

test("plan prices one stage: parts, sizes, experts, work, and where each number comes from", async () => {
  const { code, stdout } = await cli("plan", "math", "--device", "80GB");
  assert.equal(code, 0);
  for (const part of [/^math: sft on 430,752 parameters, 430,752 of them trained, A100 80GB/, /Peak memory .* to .*, /, /weights +1\.7 MB/, /141 GB +fits/, /train +student +98,355 +254 GFLOP +6ND/, /· Lengths are those of 200 of 2,000 rows in the model's own tokens/, /Assumed: A100 80GB at 35 %/]) assert.match(stdout, part);
});

test("plan of all stages is a table; --json has every number", async () => {
  const all = await cli("plan");
  assert.match(all.stdout, /stage +recipe +peak memory +range +24 GB +40 GB +80 GB +141 GB +tokens +work +time/);
  assert.match(all.stdout, /All stages: \d+ [GT]FLOP/);
  const { stages } = JSON.parse((await cli("plan", "--json")).stdout) as { stages: { stage: string; memory: { peak: number; parts: object }; flops: number }[] };
  assert.deepEqual(stages.map(({ stage }) => stage), ["math", "search", "tool", "format"]);
  for (const { memory, flops } of stages) assert.ok(memory.peak > 0 && flops > 0);
});

test("plan --measured and status show predicted beside measured, without Python's own memory", async () => {
  const { stdout, stderr } = await cli("plan", "--measured", "math");
  assert.match(stdout, /peak memory +228 MB \(200 MB to 300 MB\) +233 MB +0\.98 +yes/);
  assert.match(stdout, /trained tokens +98,355 +98,332 +1\.00/);
  assert.match(stderr, /Memory is without the 558 MB/);
  assert.match((await cli("status")).stdout, /M1 math +done .* 233 MB, predicted 228 MB/);
  const { runs } = JSON.parse((await cli("status", "--json")).stdout) as { runs: { measured: { model_bytes: number }; predicted: { tokens: number } }[] };
  assert.deepEqual([runs[0]?.measured.model_bytes, runs[0]?.predicted.tokens], [233e6, 98_355]);
  const report = join(box, "report.html");
  await cli("report", "-o", report);
  assert.match(readFileSync(report, "utf8"), /233 MB <small>\(predicted 228 MB\)<\/small>/);
});

test("plan refuses what it does not understand", async () => {
  const device = await cli("plan", "--device", "fast");
  assert.deepEqual([device.code, /--device takes a size such as 80GB/.test(device.stderr)], [2, true]);
  const stage = await cli("plan", "mth");
  assert.deepEqual([stage.code, /Did you mean "math"/.test(stage.stderr)], [3, true]);
});

test("gate: exit code 1 with what is missing and how to get it; 0 when nothing is", async () => {
  const first = await cli("gate");
  assert.equal(first.code, 1);
  for (const part of [/○ Rule router recorded.* \(missing\)/, /→ Add a buffer/, /○ Merge coefficients swept/, /✓ One benchmark per skill, with a paired test/, /math: .* points from M1 to M4, p .* over 64 prompts/, /Not ready: 4 demands of 5 not met\./]) assert.match(first.stdout, part);
  const { ready, items } = JSON.parse((await cli("gate", "--json")).stdout) as { ready: boolean; items: { id: string; state: string; todo: string[] }[] };
  assert.equal(ready, false);
  assert.ok(items.filter(({ state }) => state !== "met").every(({ todo }) => todo.length > 0));

  completeChain();
  const whole = await cli("gate");
  assert.equal(whole.code, 0, whole.stdout);
  assert.match(whole.stdout, /Ready to go live\./);
  assert.equal((await cli("gate", "--device", "80GB")).code, 0);

  // The report of the router decides, not that it is there.
  const router = join(root, ".seesaw/runs", readdirSync(join(root, ".seesaw/runs")).find((name) => name.startsWith("route-")) ?? "", "router-report.json");
  writeFileSync(router, readFileSync(router, "utf8").replace('"low":2', '"low":-2'));
  const worse = await cli("gate");
  assert.equal(worse.code, 1);
  assert.match(worse.stdout, /✗ Rule router recorded.* \(failed\)[\s\S]*its interval includes 0/);
});

/** Adds what the list asks for: a router over two experts, three merges, and a replay with its gate on. */
function completeChain(): void {
  const file = join(root, "seesaw.yaml");
  const yaml = readFileSync(file, "utf8").replace(/(  - id: format\n(?:.*\n)*?)(    args:)/, "$1    replay: { buffer: main, ratio: 0.1 }\n$2");
  const merges = [0.3, 0.5, 0.7].map((weight) => `  - { id: mix${weight * 10}, recipe: merge, from: format, options: { method: task-arithmetic, models: [math, search], weight: ${weight} } }\n`).join("");
  writeFileSync(file, `${yaml.trimEnd()}
  - { id: expert-math, recipe: experts, data: data/math.train.jsonl }
  - { id: expert-search, recipe: experts, data: data/search.train.jsonl }
  - { id: route, recipe: router, data: data/math.train.jsonl, options: { experts: { math: expert-math, search: expert-search } } }
${merges}buffers: { main: { from: [math, search], rows: 200, quality: { check: true } } }
`);
  copyRun("format", "format", { replay: { buffer: "main", ratio: 0.1, rows: 200, from: [], quality: { check: true }, diversity: null } });
  writeFileSync(join(copyRun("format", "route", { recipe: "router", options: { experts: { math: "expert-math", search: "expert-search" } } }), "router-report.json"), JSON.stringify({ rule: { kind: "tfidf", accuracy: { id: 0.9 } }, policy: { kind: "reinforce", accuracy: { id: 0.98 } }, chosen: "policy", difference: { estimate: 8, low: 2, high: 14 }, margin: 5 }));
  for (const weight of [0.3, 0.5, 0.7]) writeFileSync(join(copyRun("format", `mix${weight * 10}`, { recipe: "merge", options: { method: "task-arithmetic", models: ["math", "search"], weight } }), "merge-report.json"), JSON.stringify({ v: 1, method: "task-arithmetic" }));
}

/** A run of another stage with the journal of one that is there. */
function copyRun(from: string, stage: string, change: object): string {
  const id = `${stage}-20991231T000000-00aa`;
  const dir = join(root, ".seesaw/runs", id);
  cpSync(dirOf(from), dir, { recursive: true });
  const spec = JSON.parse(readFileSync(join(dir, "run.json"), "utf8")) as { created: number };
  writeFileSync(join(dir, "run.json"), JSON.stringify({ ...spec, id, stage, created: spec.created + 1000, ...change }));
  return dir;
}
