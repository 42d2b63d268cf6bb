import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { FileHasher } from "../../../src/targets/hashFiles.ts";
import { parseFindings } from "../../../src/targets/preflight.ts";
import { isAlive, thisProcess } from "../../../src/storage/runs/processIdentity.ts";
import { attemptName } from "../../../src/storage/runs/runStore.ts";
import { newRunId, parseRunId } from "../../../src/targets/runId.ts";
import { attemptEnv, recipeArgv, runnerEnv } from "../../../src/targets/runnerEnv.ts";
import { AppError } from "../../../src/util/errors.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "seesaw-hash-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("a file is read once while it does not change, across processes", async () => {
  const file = join(dir, "data.jsonl");
  const cache = join(dir, "cache", "hashes.json");
  writeFileSync(file, "x".repeat(3_000_000));
  const hasher = new FileHasher(cache);
  const first = await hasher.file(file);
  assert.deepEqual(first, { path: file, sha256: createHash("sha256").update("x".repeat(3_000_000)).digest("hex"), bytes: 3_000_000 });
  await hasher.save();
  const remembered = JSON.parse(readFileSync(cache, "utf8")) as { files: Record<string, { sha256: string }> };
  assert.equal(remembered.files[file]?.sha256, first.sha256);
  writeFileSync(file, "y".repeat(3_000_000));
  utimesSync(file, new Date(0), new Date(0));
  assert.notEqual((await new FileHasher(cache).file(file)).sha256, first.sha256, "same size, other content");
  writeFileSync(cache, "damaged");
  assert.ok(await new FileHasher(cache).file(file));
});

test("a model is its safetensors, configuration and tokenizer; pickles are refused unread", async () => {
  const model = join(dir, "model");
  mkdirSync(model);
  const hasher = new FileHasher(null);
  await assert.rejects(hasher.model(join(dir, "none")), (error) => AppError.is(error, "not-found"));
  await assert.rejects(hasher.model(model), (error) => AppError.is(error, "bad-input") && /has no \*\.safetensors file/.test(error.message));
  writeFileSync(join(model, "pytorch_model.bin"), "pickle");
  await assert.rejects(hasher.model(model), (error) => AppError.is(error, "bad-input") && /only pickled weights \(pytorch_model\.bin\), which can run code/.test(error.message));
  writeFileSync(join(model, "model.safetensors"), "w");
  writeFileSync(join(model, "config.json"), "{}");
  const { sha256, files } = await hasher.model(model);
  assert.deepEqual(files.map(({ path }) => path), [join(model, "config.json"), join(model, "model.safetensors")]);
  writeFileSync(join(model, "seesaw.json"), "{}");
  assert.equal((await hasher.model(model)).sha256, sha256, "what Seesaw notes beside the weights does not count");
});

test("run ids sort by time and name their stage", () => {
  const id = newRunId("math-2", new Date("2026-11-30T02:15:22.900Z"), "ab12");
  assert.equal(id, "math-2-20261130T021522-ab12");
  assert.deepEqual(parseRunId(id), { stage: "math-2", time: "20261130T021522" });
  assert.deepEqual([parseRunId("notes"), attemptName(12)], [null, "attempt-0012"]);
});

test("the attempt's environment fills in, and never overrides the person's own", () => {
  const env = attemptEnv("/runner", { NAME: "x", OMP_NUM_THREADS: "7" }, 2, { HF_HUB_OFFLINE: "0", PYTHONPATH: "/mine" });
  assert.deepEqual([env["HF_HUB_OFFLINE"], env["NAME"], env["OMP_NUM_THREADS"], env["OMP_WAIT_POLICY"], env["PYTHONPATH"]], [undefined, "x", "7", "passive", "/runner:/mine"]);
});

test("the launcher's environment is the runner's", () => {
  const source = readFileSync(join(import.meta.dirname, "../../../runner/seesaw_runner/environment.py"), "utf8");
  const body = /RUNNER_ENV[^{]*\{([^}]*)\}/.exec(source)?.[1] ?? "";
  const theirs = Object.fromEntries([...body.matchAll(/"(\w+)": "([^"]*)"/g)].map(([, name, value]) => [name, value]));
  assert.deepEqual(theirs, runnerEnv);
});

test("the command line of a recipe", () => {
  assert.deepEqual(recipeArgv("py", "sft", "/r", { kind: "python", processes: 1 }), ["py", "-m", "seesaw_runner.recipes.sft", "/r"]);
  assert.deepEqual(recipeArgv("py", "sft", "/r", { kind: "torchrun", processes: 2 }).slice(0, 6), ["py", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]);
  const accelerate = recipeArgv("py", "sft", "/r", { kind: "accelerate", processes: 2, config: "/acc.yaml", args: ["--gpu_ids", "0,1"] });
  assert.deepEqual(accelerate.slice(0, 8), ["py", "-m", "accelerate.commands.launch", "--config_file", "/acc.yaml", "--multi_gpu", "--num_processes", "2"]);
  assert.deepEqual(accelerate.slice(-5), ["--gpu_ids", "0,1", "-m", "seesaw_runner.recipes.sft", "/r"]);
  assert.ok(!recipeArgv("py", "sft", "/r", { kind: "accelerate", processes: 1 }).includes("--multi_gpu"), "one process is no group");
  const deepspeed = ["py", "-m", "deepspeed.launcher.runner", "--num_gpus", "2", "--no_local_rank", "--module", "seesaw_runner.recipes.sft", "/r"];
  assert.deepEqual(recipeArgv("py", "sft", "/r", { kind: "deepspeed", processes: 2 }), deepspeed);
});

test("a process is its pid and its start, not its pid alone", () => {
  const me = thisProcess();
  assert.equal(isAlive(me), true);
  assert.equal(isAlive({ ...me, start: (me.start ?? 0) + 1 }), false);
  assert.equal(isAlive({ ...me, boot: "another" }), false);
  assert.equal(isAlive({ ...me, host: "elsewhere" }), undefined);
});

test("findings are found among other output", () => {
  const finding = { code: "bad-data", severity: "error", message: "m" };
  assert.deepEqual(parseFindings(`[warn] banner\n${JSON.stringify([finding], null, 1)}\nbye`), [finding]);
  assert.deepEqual(parseFindings("[]\n"), []);
  assert.equal(parseFindings("Traceback"), null);
});
