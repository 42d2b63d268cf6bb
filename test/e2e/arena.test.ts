import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { BundledCli, repo } from "../unit/cli/bundledCli.ts";

// A real arena within a budget of tokens: one seed, one remedy, the sample's model and the real recipes.
const python = process.env["SEESAW_PYTHON"] ?? join(repo, ".venv/bin/python");
const sample = join(repo, "media/sample");
const cli = await BundledCli.build();
const root = mkdtempSync(join(tmpdir(), "seesaw-arena-"));
after(() => {
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  cli.dispose();
});

const budget = 5000;

function workspace(): void {
  mkdirSync(join(root, "data"));
  mkdirSync(join(root, ".git"));
  for (const [name, rows] of [["math.train", 200], ["search.train", 200], ["math.probe", 32], ["search.probe", 32]] as const)
    writeFileSync(join(root, "data", `${name}.jsonl`), readFileSync(join(sample, "data", `${name}.jsonl`), "utf8").split("\n").slice(0, rows).join("\n") + "\n");
  const stage = (id: string): string => `  - { id: ${id}, recipe: sft, data: data/${id}.train.jsonl, args: { max_steps: 4, learning_rate: 1.0e-3, per_device_train_batch_size: 8 } }\n`;
  writeFileSync(
    join(root, "seesaw.yaml"),
    `seesaw: 1
name: tiny
base: ${sample}/models/m0
skills:
  math: { probes: data/math.probe.jsonl, check: { kind: number-after, marker: so } }
  search: { probes: data/search.probe.jsonl, check: { kind: text, after: answer } }
probe: { every: 100, max_new_tokens: 4 }
stages:
${stage("math")}${stage("search")}arena:
  seeds: [0]
  budget: { tokens: ${budget} }
  remedies: [{ kind: replay, ratio: 0.25, rows: 20 }]
`,
  );
}

interface Document {
  event?: string;
  stage?: string;
  entries?: { id: string; missing: unknown[]; cost: { own: { tokens: number; optimizerSteps: number } | null } }[];
}

test("a remedy gets about the tokens of the budget, in stages that only the budget makes necessary too", async () => {
  assert.ok(existsSync(python), `${python} is not there: run \`node .config/scripts/setup.mjs\` first, or name a complete Python in SEESAW_PYTHON.`);
  workspace();
  const { stdout, stderr, code } = await cli.run(root, ["arena", "--json"], { env: { SEESAW_PYTHON: python }, maxBytes: 1 << 24 });
  assert.equal(code, 0, stderr);
  const told = stdout.trim().split("\n").map((line) => JSON.parse(line) as Document);
  // The chain's own first stage is too short for the budget: the remedy has to train its own.
  assert.deepEqual(told.filter(({ event }) => event === "finished").map(({ stage }) => stage), ["math", "search", "replay-25-math", "replay-25-search"]);
  const [chain, replay] = told.at(-1)?.entries ?? [];
  assert.deepEqual([chain?.id, chain?.cost.own?.optimizerSteps, replay?.id, replay?.missing], ["chain", 8, "replay-25", []]);
  const spent = replay?.cost.own?.tokens ?? 0;
  assert.ok(Math.abs(spent - budget) < 0.15 * budget, `${spent} tokens of ${budget}`);
  assert.ok((chain?.cost.own?.tokens ?? 0) < 0.6 * budget);
});
