import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { BundledCli, repo } from "../unit/cli/bundledCli.ts";

// A real chain of two stages on the sample's model: the bundled command line, the real agent, the real recipe.
const python = process.env["SEESAW_PYTHON"] ?? join(repo, ".venv/bin/python");
const sample = join(repo, "media/sample");
const cli = await BundledCli.build();
const root = mkdtempSync(join(tmpdir(), "seesaw-e2e-"));
after(() => {
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  cli.dispose();
});

const head = (name: string, rows: number): void =>
  writeFileSync(join(root, "data", `${name}.jsonl`), readFileSync(join(sample, "data", `${name}.jsonl`), "utf8").split("\n").slice(0, rows).join("\n") + "\n");

function workspace(): void {
  mkdirSync(join(root, "data"));
  mkdirSync(join(root, ".git"));
  for (const skill of ["math", "search"]) {
    head(`${skill}.train`, 200);
    head(`${skill}.probe`, 32);
  }
  head("math.ood", 32);
  const args = "{ max_steps: 6, learning_rate: 1.0e-3, per_device_train_batch_size: 8, logging_steps: 1 }";
  writeFileSync(
    join(root, "seesaw.yaml"),
    `seesaw: 1
name: tiny
base: ${sample}/models/m0
skills:
  math: { probes: data/math.probe.jsonl, ood: data/math.ood.jsonl, check: { kind: number-after, marker: so } }
  search: { probes: data/search.probe.jsonl, check: { kind: text, after: answer } }
probe: { every: 3, max_new_tokens: 8 }
stages:
  - { id: math, recipe: sft, data: data/math.train.jsonl, args: ${args} }
  - { id: search, recipe: sft, data: data/search.train.jsonl, args: ${args}, replay: { buffer: old, ratio: 0.25 } }
buffers:
  old: { from: [math], rows: 20 }
`,
  );
}

const json = async <T>(...args: string[]): Promise<T> => {
  const { stdout, stderr, code } = await cli.run(root, [...args, "--json"], { env: { SEESAW_PYTHON: python }, maxBytes: 1 << 24 });
  assert.equal(code, 0, `${args.join(" ")}: ${stderr}\n${stdout.slice(-2000)}`);
  return JSON.parse(stdout) as T;
};
const chain = async (...args: string[]) => {
  const { stdout, stderr, code } = await cli.run(root, ["run", "--all", "--json", ...args], { env: { SEESAW_PYTHON: python }, maxBytes: 1 << 24 });
  return { code, stderr, events: stdout.trim().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>) };
};

test("a chain trains, is scored token by token, and everything can be asked about it", async () => {
  assert.ok(existsSync(python), `${python} is not there: run \`node .config/scripts/setup.mjs\` first, or name a complete Python in SEESAW_PYTHON.`);
  workspace();
  const first = await chain();
  assert.equal(first.code, 0, `${first.stderr}\n${JSON.stringify(first.events.slice(-3))}`);
  assert.deepEqual(first.events.filter(({ event }) => event === "finished").map(({ stage, status, step }) => [stage, status, step]), [["math", "done", 6], ["search", "done", 6]]);
  assert.ok(first.events.some(({ event, tokens_per_s }) => event === "progress" && typeof tokens_per_s === "number"));

  const table = await json<{ checkpoints: { label: string; status: string }[]; rows: { skill: string; split: string; cells: { n: number; correct: number }[] }[] }>("checkpoints");
  assert.deepEqual(table.checkpoints.map(({ label, status }) => `${label} ${status}`), ["M0 ready", "M1 ready", "M2 ready"]);
  assert.deepEqual(table.rows.map(({ skill, split, cells }) => [skill, split, cells.map(({ n }) => n)]), [["math", "id", [32, 32, 32]], ["math", "ood", [32, 32, 32]], ["search", "id", [32, 32, 32]]]);

  const drift = await json<{ sets: { skill: string; against: string; rows: { line: number; hash: string; worst: number | null; cells: { delta_nll: number | null }[] }[] }[] }>("drift", "math", "--split", "id", "-n", "0");
  const rows = drift.sets[0]?.rows ?? [];
  assert.deepEqual([drift.sets[0]?.against, rows.length], ["M1", 32]);
  assert.deepEqual(rows.map(({ worst }) => worst), rows.map(({ worst }) => worst).sort((a, b) => (b ?? 0) - (a ?? 0)));
  const worst = rows[0];
  assert.ok(worst && worst.cells[1]?.delta_nll === 0);

  const byLine = await json<{ probe: { hash: string; reference: string }; tokens: { text: string }[]; frames: { label: string; cells: { logprob: number; alternatives: unknown[] }[]; nll: number }[] }>("tokens", `math.id:${worst.line}`);
  assert.equal(byLine.probe.hash, worst.hash);
  assert.equal(byLine.tokens.map(({ text }) => text).join(""), byLine.probe.reference);
  assert.deepEqual(byLine.frames.map(({ label }) => label), ["M0", "M1", "M2"]);
  for (const { cells, nll } of byLine.frames) {
    assert.ok(Math.abs(nll + cells.reduce((sum, { logprob }) => sum + logprob, 0)) < 1e-3, "the tokens' log-probabilities add up to the answer's");
    assert.ok(cells.every(({ alternatives }) => alternatives.length > 0));
  }
  const byHash = await json<{ probe: { hash: string } }>("tokens", worst.hash.slice(0, 16));
  assert.equal(byHash.probe.hash, worst.hash);

  const replay = await json<{ in_replay: number; members: { memberships: { stage: string; draws: number }[] }[] }>("replay", "data/math.train.jsonl", "-n", "0");
  const exact = replay.members.filter(({ memberships }) => memberships.some(({ stage }) => stage === "search"));
  assert.ok(exact.length >= 20);
  const draws = replay.members.flatMap(({ memberships }) => memberships).reduce((sum, { draws: n }) => sum + n, 0);
  assert.ok(draws >= 12, `6 steps of 8 rows with a quarter replayed draw 12 rows, found ${draws}`);

  // What the runner decided while it trained is what its traces give, in the other language.
  for (const stage of ["math", "search"]) {
    const again = await json<{ equal: boolean; differences: unknown[]; series: { id: string }[] }>("flags", stage, "--recompute", "--check");
    assert.deepEqual([again.equal, again.differences, again.series.map(({ id }) => id)], [true, [], ["math.id", "math.ood", "search.id"]], stage);
  }

  // Asked again from the saved weights, the probes are answered as they were while it trained.
  const confirmed = await json<{ n: number; before: number; now: number; step: number }>("confirm", "search", "math");
  const [, own, end] = table.rows[0]?.cells.map(({ correct }) => correct) ?? [];
  assert.deepEqual([confirmed.n, confirmed.before * 32, confirmed.now * 32, confirmed.step], [32, own, end, 6]);
  const status = await json<{ runs: { checked: { skill: string; n: number; step: number }[] }[] }>("status");
  assert.deepEqual(status.runs.flatMap(({ checked }) => checked.map(({ skill, n, step }) => [skill, n, step])), [["math", 32, 6]], "the verdict is kept where the editor looks for it");

  const report = await json<{ file: string }>("report");
  const page = readFileSync(report.file, "utf8");
  assert.match(page, /Seesaw report: tiny/);
  assert.doesNotMatch(page, /(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?\/\//);

  const start = Date.now();
  const again = await chain();
  assert.deepEqual(again.events.filter(({ event }) => event === "up-to-date").map(({ stage }) => stage), ["math", "search"]);
  assert.ok(Date.now() - start < 10_000);
});
