import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { RunResult } from "../../../src/targets/spawn.ts";
import { recordRuns } from "../../vscode/recordRuns.ts";
import { BundledCli, repo } from "./bundledCli.ts";

const bundled = await BundledCli.build();
const box = mkdtempSync(join(tmpdir(), "seesaw-compare-"));
after(() => {
  rmSync(box, { recursive: true });
  bundled.dispose();
});

/** The sample's chain and its replay chain with recorded runs; math probes come in pairs that share a group. */
const sample = join(repo, "media/sample");
mkdirSync(join(box, ".git"));
cpSync(join(sample, "data"), join(box, "data"), { recursive: true });
cpSync(join(sample, "replay/seesaw.yaml"), join(box, "replay/seesaw.yaml"));
writeFileSync(join(box, "seesaw.yaml"), readFileSync(join(sample, "seesaw.yaml")));
const math = join(box, "data/math.probe.jsonl");
writeFileSync(math, readFileSync(math, "utf8").trimEnd().split("\n").map((line, index) => `${JSON.stringify({ ...(JSON.parse(line) as object), group: `pair ${Math.floor(index / 2)}` })}\n`).join(""));
const ids = recordRuns({ root: box });
// As the launcher freezes it: which file the probes were read from, and what was in it.
for (const id of Object.values(ids)) {
  const file = join(box, ".seesaw/runs", id, "run.json");
  const spec = JSON.parse(readFileSync(file, "utf8")) as { inputs: object[] };
  writeFileSync(file, JSON.stringify({ ...spec, inputs: [{ path: math, sha256: createHash("sha256").update(readFileSync(math)).digest("hex"), bytes: 1 }] }));
}
recordRuns({ root: join(box, "replay") });

const cli = (...args: string[]): Promise<RunResult> => bundled.run(box, args);
interface Row { question: string; measure: string; skill: string | null; split: string | null; estimate: number | null; interval: { low: number; high: number } | null; p: number | null; p_adjusted: number | null; n: number; groups: number | null; why: string | null; verdict: string; from: { label: string } | null; to: { label: string } | null; smallest_drop: number | null }
interface Document { v: number; correction: string; systems: { name: string; seeds: number[]; rows: Row[] }[]; against: { baseline: string; rows: (Row & { system: string })[] } | null }

test("compare answers the four questions of a chain, as a table, as JSON and as CSV", async () => {
  const { stdout, code, stderr } = await cli("compare");
  assert.deepEqual([code, stderr], [0, ""]);
  for (const text of ["Retention of old skills", "Gain of the new skill", "OOD robustness", "There is no router", "backward transfer", "forward transfer", "index, all stages", "1→0 forgotten", "One seed:", "corrected for"]) assert.ok(stdout.includes(text), text);
  assert.match(stdout, /math ID +kept share .* M1 \d+ % → M4 \d+ % /);

  const document = JSON.parse((await cli("compare", "--json")).stdout) as Document;
  const [system] = document.systems;
  assert.deepEqual([document.v, document.against, system?.name, system?.seeds], [1, null, "cliff", [0]]);
  const rows = system?.rows ?? [];
  const kept = rows.find(({ measure, skill }) => measure === "retention" && skill === "math");
  assert.ok(kept && (kept.estimate ?? 1) < 0.9 && kept.interval && kept.interval.low <= (kept.estimate ?? 0) && kept.interval.high >= (kept.estimate ?? 0));
  // Pairs of math prompts share a group: half as many pieces of evidence.
  assert.deepEqual([kept?.n, kept?.groups], [64, 32]);
  assert.equal(rows.find(({ measure, skill }) => measure === "retention" && skill === "search")?.groups, null);
  assert.ok(rows.every(({ p, p_adjusted }) => (p === null) === (p_adjusted === null)));

  const lines = (await cli("compare", "--csv")).stdout.trimEnd().split("\r\n");
  assert.equal(lines.length, rows.length + 1);
  assert.equal((await cli("compare", "--csv", "--json")).code, 2);
});

test("another chain is compared prompt by prompt, and what cannot be compared is refused with its field", async () => {
  const document = JSON.parse((await cli("compare", "replay/", "--json", "--correction", "benjamini-hochberg")).stdout) as Document;
  assert.equal(document.correction, "benjamini-hochberg");
  assert.deepEqual(document.systems.map(({ name }) => name), ["cliff", "replay"]);
  const old = document.against?.rows.find(({ measure }) => measure === "old-skills");
  assert.deepEqual([document.against?.baseline, old?.system, old?.from?.label, old?.to?.label], ["cliff", "replay", "cliff", "replay"]);
  assert.ok(old?.estimate !== null && old?.p !== null);

  const yaml = readFileSync(join(box, "replay/seesaw.yaml"), "utf8");
  const other = join(box, "longer");
  mkdirSync(other);
  writeFileSync(join(other, "seesaw.yaml"), yaml.replace(/^name: .*$/m, "name: longer").replace(/max_new_tokens: \d+/, "max_new_tokens: 99"));
  recordRuns({ root: other });
  const refused = JSON.parse((await cli("compare", "longer/seesaw.yaml", "--json")).stdout) as Document;
  const rows = refused.against?.rows ?? [];
  assert.ok(rows.length > 3 && rows.every(({ estimate, why }) => estimate === null && /longest answer in tokens 28 against 99/.test(why ?? "")), JSON.stringify(rows[0]));
  assert.ok(refused.systems.every(({ rows: own }) => own.some(({ estimate }) => estimate !== null)), "each for itself still stands");
});

test("a checkpoint before the end can be judged; what is not there is exit code 3", async () => {
  const { systems } = JSON.parse((await cli("compare", "--end", "M2", "--json")).stdout) as Document;
  assert.equal(systems[0]?.rows.find(({ question }) => question === "new-skill")?.skill, "search");
  assert.equal((await cli("compare", "--end", "M9")).code, 3);
  assert.match((await cli("compare", "--end", "M0")).stderr, /M0 is where the chain starts/);
  assert.match((await cli("compare", "seesaw.yaml")).stderr, /is given twice/);
});

test("probe groups of a file that changed since it was scored are not used, and that is said", async () => {
  const before = readFileSync(math, "utf8");
  writeFileSync(math, before.replaceAll("pair 1\"", "pair 0\""));
  const { stdout, stderr } = await cli("compare", "--json");
  writeFileSync(math, before);
  assert.match(stderr, /math\.probe\.jsonl was changed since it was scored: its groups are not used/);
  assert.equal((JSON.parse(stdout) as Document).systems[0]?.rows.find(({ measure, skill }) => measure === "retention" && skill === "math")?.groups, null);
});

/** Results as the runner leaves them: 40 prompts, of which the first `passes` are right. */
function measured(stage: string, step: number, label: string, passes: number, more: { prompts?: string; metric?: string; values?: number[] } = {}): void {
  const folder = join(box, ".seesaw/runs", ids[stage] ?? "", "benchmarks", `step-${String(step).padStart(6, "0")}`);
  mkdirSync(folder, { recursive: true });
  const metric = more.metric ?? "acc";
  const values = more.values ?? Array.from({ length: 40 }, (_, index) => Number(index < passes));
  const settings = { harness: "lm-eval 0.4.13", template: "none", limit: 40, dtype: "float32", task: "1.0", shots: 0, prompts: more.prompts ?? "p", sampling: "scored", max_tokens: null };
  const name = `toy_${metric}`;
  const result = { v: 1, harness: "lm-eval", task: name, run: ids[stage], stage, step, label, weights_hash: label, n: 40, settings, samples: `${name}.jsonl`, metrics: [{ metric, filter: "none", value: values.reduce((sum, value) => sum + value, 0) / 40, higher_is_better: true, per_row: true, binary: metric === "acc", main: true }] };
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(result));
  writeFileSync(join(folder, `${name}.jsonl`), values.map((value, index) => `${JSON.stringify({ key: `d${index}`, filter: "none", metrics: { [metric]: value } })}\n`).join(""));
}

test("benchmarks that were measured are shown, paired between checkpoints, and part of compare", async () => {
  const empty = await cli("benchmark", "--show");
  assert.match(empty.stdout, /No benchmark has been measured/);
  measured("math", 0, "M0", 4);
  measured("math", 80, "M1", 36);
  measured("format", 120, "M4", 10);
  measured("math", 80, "M1", 0, { metric: "f1", values: Array.from({ length: 40 }, (_, index) => (index % 4) / 4) });
  measured("format", 120, "M4", 0, { metric: "f1", values: Array.from({ length: 40 }, (_, index) => (index % 4) / 8) });
  const { results, changes } = JSON.parse((await cli("benchmark", "--show", "--json")).stdout) as { results: { checkpoint: string; task: string; value: number; interval: object | null }[]; changes: { task: string; from: string; to: string; estimate: number; p: number; p_adjusted: number; lost: number; gained: number; smallest_drop: number | null }[] };
  assert.deepEqual(results.filter(({ task }) => task === "toy_acc").map(({ checkpoint, value }) => [checkpoint, value]), [["M0", 0.1], ["M1", 0.9], ["M4", 0.25]]);
  const fall = changes.find(({ task, from, to }) => task === "toy_acc" && from === "M1" && to === "M4");
  assert.deepEqual([fall?.lost, fall?.gained, fall?.estimate], [26, 0, -0.65]);
  assert.ok(fall && fall.p < 1e-6 && fall.p_adjusted >= fall.p && (fall.smallest_drop ?? 0) > 0.1);
  const f1 = changes.find(({ task }) => task === "toy_f1");
  assert.ok(f1 && Math.abs(f1.estimate + 0.1875) < 1e-9 && f1.p < 1e-6 && f1.smallest_drop === null);

  const text = (await cli("benchmark", "--show")).stdout;
  assert.match(text, /toy_acc +acc +M1 → M4 +−65\.0 +−7\d\.\d to −4\d\.\d +26 \/ 0 +< 0\.001 +loss/);
  assert.match((await cli("compare")).stdout, /Benchmarks\n.*\n.*\ntoy_acc/);
  assert.match((await cli("gate")).stdout, /toy_acc: \+15\.0 points from M0 to M4, p .* over 40 prompts\. No skill names it/);

  // Other prompts: refused with the field, in both.
  measured("format", 120, "M4", 10, { prompts: "q" });
  assert.match((await cli("benchmark", "--show")).stdout, /toy_acc is not comparable: the prompt set differs/);
  const broken = join(box, ".seesaw/runs", ids["format"] ?? "", "benchmarks/step-000120/toy_acc.json");
  writeFileSync(broken, "{ torn");
  assert.match((await cli("benchmark", "--show")).stderr, /toy_acc\.json cannot be read .*: run `seesaw benchmark --force`/);
});

test("a router's routes are read with the checkpoint that it made", async () => {
  const routes = join(box, ".seesaw/runs", ids["format"] ?? "", "router-routes.jsonl");
  const line = (skill: string, index: number, picked: string): string => `${JSON.stringify({ key: "same hash", line: index + 1, skill, split: "id", picked, right: true, routers: {}, probabilities: [], correct: { math: skill === "math", tool: skill === "tool", base: false } })}\n`;
  writeFileSync(routes, ["math", "tool"].flatMap((skill) => Array.from({ length: 40 }, (_, index) => line(skill, index, skill === "tool" && index < 10 ? "math" : skill))).join(""));
  const { systems } = JSON.parse((await cli("compare", "--json")).stdout) as Document;
  const routed = Object.fromEntries((systems[0]?.rows ?? []).filter(({ question }) => question === "routing").map(({ measure, estimate, n }) => [measure, [estimate, n]]));
  assert.deepEqual(routed, { "routing-accuracy": [70 / 80, 80], "routing-accuracy-balanced": [0.875, 80], "routing-regret": [-10 / 80, 80] });
  writeFileSync(routes, "{ torn");
  assert.equal((await cli("compare")).code, 6);
  rmSync(routes);
});

test("benchmark says what is missing before anything is started", async () => {
  assert.match((await cli("benchmark")).stderr, /names no benchmarks: add, for instance, "benchmark: \{ lm_eval: \[gsm8k\] \}"/);
  assert.equal((await cli("benchmark", "M7")).code, 3);
});
