import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Diagnostic, Pipeline } from "../../../src/domain/pipeline/pipelineModel.ts";
import { parseSeeds } from "../../../src/domain/pipeline/seedList.ts";
import { buildChain } from "../../../src/domain/run/chain.ts";
import { runChain } from "../../../src/targets/chainRunner.ts";
import { runSeeds, type SeedOptions } from "../../../src/targets/seedRuns.ts";
import { AppError } from "../../../src/util/errors.ts";
import { FakeWorkspace } from "./fakeWorkspace.ts";

// Several seeds of one stage on this machine, with the real agent and a stand-in recipe. Job arrays: test/targets/slurm/array.test.ts.
let box: FakeWorkspace;
beforeEach(() => {
  box = new FakeWorkspace();
});
afterEach(() => box.dispose());

const trusted = { trusted: true };
/** What was said, `seed type`, and the runs under way at the most. */
async function run(seeds: string, { pipeline, diagnostics }: { pipeline: Pipeline; diagnostics: Diagnostic[] }, more: Partial<SeedOptions> = {}) {
  const said: string[] = [];
  const going = new Set<number>();
  let most = 0;
  const result = await runSeeds(box.services, pipeline, diagnostics, {
    ...trusted, stage: "a", list: parseSeeds(seeds), ...more,
    onEvent(seed, { type }) {
      if (type !== "progress") said.push(`${seed} ${type}`);
      if (type === "started" || type === "joined") going.add(seed);
      if (type === "finished") going.delete(seed);
      most = Math.max(most, going.size);
    },
  });
  return { said, most, runs: result.runs, failed: result.failed };
}

test("one run for each seed, one after the other, beside the chain; then they are up to date", { timeout: 120_000 }, async () => {
  const loaded = await box.pipeline();
  const chain = await runChain(box.services, loaded.pipeline, loaded.diagnostics, { ...trusted, stages: ["a", "b"], onEvent: () => {} });
  const own = chain.runs[0];
  const { said, most, runs, failed } = await run("0,3,5", loaded);
  assert.deepEqual(said, ["0 up-to-date", "3 starting", "3 started", "3 finished", "5 starting", "5 started", "5 finished"]);
  assert.deepEqual([most, failed, runs.map(({ id }) => id)[0]], [1, null, own?.id]);
  assert.deepEqual(runs.map(({ spec }) => [spec.seed, spec.file_seed, spec.start.label]), [[0, undefined, "M0"], [3, 0, "M0"], [5, 0, "M0"]]);
  assert.equal(new Set(runs.map(({ spec }) => spec.fingerprint)).size, 3);
  const { runs: all } = await box.services.runs.list(box.root);
  assert.deepEqual(buildChain(loaded.pipeline, all).checkpoints.map(({ run: one, status }) => [one?.id, status]).slice(1), chain.runs.map(({ id }) => [id, "ready"]));
  assert.deepEqual((await run("3,5", loaded)).said, ["3 up-to-date", "5 up-to-date"]);
  assert.deepEqual((await run("5", loaded, { force: true })).said, ["5 starting", "5 started", "5 finished"]);
  // The next stage starts from the file's own run, with whatever seed.
  const b = await run("3", loaded, { stage: "b" });
  assert.equal(b.runs[0]?.spec.start.run, own?.id);
  // The same inputs and the file's seed set to 3: the run that there is already stands for the stage.
  assert.equal((await box.services.launcher.outlook({ ...loaded.pipeline, seed: 3 }, "a")).upToDate?.spec.seed, 3);
});

test("%2 lets two go side by side; one that fails does not stop the others", { timeout: 120_000 }, async () => {
  const loaded = await box.pipeline({ steps: 40, pause: 0.25 });
  const two = await run("1-3%2", loaded);
  assert.equal(two.most, 2);
  assert.deepEqual(two.runs.map(({ spec, state }) => [spec.seed, state.status]), [[1, "done"], [2, "done"], [3, "done"]]);
  const bad = await run("1,2", await box.pipeline({ fail_at: 1 }));
  assert.deepEqual(bad.runs.map(({ state }) => state.status), ["failed", "failed"]);
  assert.equal(bad.failed?.spec.seed, 1);
});

test("what runs already is followed, not started twice; the file's own run goes beside it", { timeout: 120_000 }, async () => {
  const loaded = await box.pipeline({ steps: 40, pause: 0.1 });
  const going = await box.services.launcher.startStage(loaded.pipeline, loaded.diagnostics, "a", { ...trusted, seed: 4 });
  await assert.rejects(box.services.launcher.startStage(loaded.pipeline, loaded.diagnostics, "a", { ...trusted, seed: 4 }), (error) => AppError.is(error, "already-running"));
  assert.equal((await box.services.launcher.outlook(loaded.pipeline, "a")).active, null, "a seed beside the chain does not hold the chain up");
  const { said, runs } = await run("4", loaded);
  assert.deepEqual([said, runs[0]?.id], [["4 joined", "4 finished"], going.id]);
});

test("interrupted, it starts nothing more, and what runs goes on", { timeout: 120_000 }, async () => {
  const loaded = await box.pipeline({ steps: 30, pause: 0.1 });
  const stop = new AbortController();
  const seen: number[] = [];
  const all = runSeeds(box.services, loaded.pipeline, loaded.diagnostics, {
    ...trusted, stage: "a", list: parseSeeds("1-3"), signal: stop.signal,
    onEvent(seed, { type }) {
      if (type === "started") seen.push(seed);
      if (type === "started") stop.abort();
    },
  });
  await assert.rejects(all, (error) => AppError.is(error, "cancelled"));
  assert.deepEqual(seen, [1]);
  const [only] = (await box.services.runs.list(box.root)).runs;
  assert.equal(only?.spec.seed, 1);
  await box.services.launcher.stopRun(box.root, only?.id ?? "", trusted);
});

test("a start that is refused says so and leaves nothing", { timeout: 60_000 }, async () => {
  const refused = await box.pipeline({ preflight: [{ severity: "error", code: "x", message: "It cannot be." }] });
  await assert.rejects(run("1,2", refused), (error) => AppError.is(error) && /It cannot be/.test(error.message));
  assert.deepEqual((await box.services.runs.list(box.root)).runs, []);
});
