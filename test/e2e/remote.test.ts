import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";
import { BundledCli, repo } from "../unit/cli/bundledCli.ts";

// One real stage on another machine: the bundled command line, the real station, agent and recipe. Only ssh is a shell of this machine.
const python = process.env["SEESAW_PYTHON"] ?? join(repo, ".venv/bin/python");
const sample = join(repo, "media/sample");
const cli = await BundledCli.build();
const dir = mkdtempSync(join(tmpdir(), "seesaw-remote-"));
const [root, far, bin] = [join(dir, "work"), join(dir, "far"), join(dir, "bin")];
after(() => {
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  cli.dispose();
});
const seesaw = (...args: string[]) => cli.run(root, args, { env: { SEESAW_PYTHON: python, PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}` }, maxBytes: 1 << 24 });

test("a stage trains on another machine, is scored there, and its weights come when they are asked for", { timeout: 900_000 }, async () => {
  assert.ok(existsSync(python), `${python} is not there: run \`node .config/scripts/setup.mjs\` first, or name a complete Python in SEESAW_PYTHON.`);
  for (const folder of [join(root, "data"), join(root, ".git"), bin]) mkdirSync(folder, { recursive: true });
  copyFileSync(join(repo, "test/unit/targets/remote/loopback.sh"), join(bin, "ssh"));
  for (const [name, rows] of [["math.train", 64], ["math.probe", 16]] as const) writeFileSync(join(root, "data", `${name}.jsonl`), readFileSync(join(sample, "data", `${name}.jsonl`), "utf8").split("\n").slice(0, rows).join("\n") + "\n");
  writeFileSync(join(root, "seesaw.yaml"), `seesaw: 1
base: ${sample}/models/m0
skills:
  math: { probes: data/math.probe.jsonl, check: { kind: number-after, marker: so } }
probe: { max_new_tokens: 8 }
stages:
  - { id: math, recipe: sft, data: data/math.train.jsonl, args: { max_steps: 3, per_device_train_batch_size: 8, logging_steps: 1 }, on: box }
targets:
  box: { kind: ssh, host: gpu-box, dir: ${far}, python: ${python} }
`);
  const run = await seesaw("run", "math", "--json");
  assert.equal(run.code, 0, `${run.stderr}\n${run.stdout.slice(-2000)}`);
  const events = run.stdout.trim().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.ok(events.some(({ event, what }) => event === "copying" && String(what).includes("gpu-box")));
  const started = events.find(({ event }) => event === "started") as { run: string; dir: string };
  assert.deepEqual(events.filter(({ event }) => event === "finished").map(({ status, step }) => [status, step]), [["done", 3]]);
  // Traces and journal are here, byte for byte; the weights are there.
  const there = join(far, "runs", started.run);
  for (const name of ["journal.jsonl", "out.log", "traces/step-000003/math.id.trace"]) assert.deepEqual(readFileSync(join(started.dir, name)), readFileSync(join(there, name)), name);
  assert.deepEqual(readdirSync(join(started.dir, "checkpoints/step-000003")), ["seesaw.json"]);

  const table = JSON.parse((await seesaw("checkpoints", "--json")).stdout) as { checkpoints: { label: string; status: string }[]; rows: { cells: { n: number }[] }[] };
  assert.deepEqual(table.checkpoints.map(({ label, status }) => `${label} ${status}`), ["M0 ready", "M1 ready"]);
  assert.deepEqual(table.rows[0]?.cells.map(({ n }) => n), [16, 16]);
  const weights = await seesaw("weights", "M0", "M1");
  assert.equal(weights.code, 3, weights.stdout);
  assert.match(weights.stderr, new RegExp(`lie on \`box\` \\(gpu-box\\)\\. Bring them here with \`seesaw fetch ${started.run} --step 3\``));
  const fetched = await seesaw("fetch", "math");
  assert.equal(fetched.code, 0, fetched.stderr);
  assert.deepEqual(readFileSync(join(started.dir, "checkpoints/step-000003/model.safetensors")), readFileSync(join(there, "checkpoints/step-000003/model.safetensors")));
  const again = await seesaw("run", "math");
  assert.match(again.stdout, /up to date/);
});
