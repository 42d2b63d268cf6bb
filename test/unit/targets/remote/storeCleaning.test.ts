import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { StoreItem, StoreSurvey } from "../../../../src/protocol/cleaning.ts";
import { localStation } from "../../../../src/targets/remote/station.ts";
import { isTrouble } from "../../../../src/targets/remote/stationErrors.ts";
import { StationRuns } from "../../../../src/targets/remote/stationRuns.ts";
import { python, runner } from "./loop.ts";

// What the real station finds and removes below a target's folder.
const station = localStation(runner, python);
const runs = new StationRuns(station, runner);
let top = "";
let dir = "";

const write = (path: string, text = "x"): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};
/** Nobody has touched it for that many hours. */
const aged = (path: string, hours = 72): void => {
  const at = Date.now() / 1000 - hours * 3600;
  for (const name of readdirSync(path)) utimesSync(join(path, name), at, at);
  utimesSync(path, at, at);
};
const names = ({ items }: Pick<StoreSurvey, "items">): string[] => items.map(({ kind, name, why }) => `${kind}/${name} ${why}`).sort();
const itemsOf = ({ items }: StoreSurvey): StoreItem[] => items.map(({ kind, name }) => ({ kind, name }));
const there = (): string[] => readdirSync(dir).flatMap((kind) => readdirSync(join(dir, kind)).map((name) => `${kind}/${name}`)).sort();

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), "seesaw-store-"));
  dir = join(top, "far");
  write(join(top, "outside/precious"), "keep me");
  // A run of ours, with what only it uses, and a link to what is not ours.
  write(join(dir, "runs/math-1/run.json"), JSON.stringify({ data: `${dir}/objects/aaa/math.jsonl`, start: `${dir}/models/m1`, cwd: `${dir}/work/math-1` }));
  write(join(dir, "runs/math-1/attempt-0001/spec.json"), JSON.stringify({ env: { PYTHONPATH: `${dir}/runner/v1` } }));
  for (const name of ["claim", "exit.json"]) write(join(dir, "runs/math-1/attempt-0001", name), "{}");
  write(join(dir, "runs/math-1/checkpoints/step-000002/model.safetensors"), "w".repeat(5000));
  symlinkSync(join(top, "outside"), join(dir, "runs/math-1/linked"));
  write(join(dir, "work/math-1/train.py"));
  // A run of somebody else, whose adapter lies on another model; its folder is called otherwise from where they are.
  write(join(dir, "runs/theirs-1/run.json"), JSON.stringify({ data: "/other/mount/seesaw/objects/bbb/x.jsonl", start: "/other/mount/seesaw/models/m2" }));
  write(join(dir, "runs/theirs-1/attempt-0001/job.sh"), "exec python /other/mount/seesaw/runner/v2/seesaw_runner/agent.py");
  write(join(dir, "models/m2/adapter_config.json"), JSON.stringify({ base_model_name_or_path: "/other/mount/seesaw/models/m3" }));
  for (const name of ["objects/aaa", "objects/bbb", "objects/old", "objects/young", "models/m1", "models/m3", "models/old", "runner/v0", "runner/v1", "runner/v2", "work/nobody-1"]) write(join(dir, name, "file"), name);
  for (const name of readdirSync(dir)) for (const one of readdirSync(join(dir, name))) if (one !== "young") aged(join(dir, name, one));
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

const withoutRuns = ["models/old unused", "objects/old unused", "runner/v0 unused", "work/nobody-1 unused"];
const withRun = [...withoutRuns, "models/m1 unused", "objects/aaa unused", "runner/v1 unused", "runs/math-1 spent", "work/math-1 spent"].sort();

test("what nobody names and nobody wanted for a day may go; a look changes nothing", async () => {
  const before = there();
  assert.deepEqual(names(await runs.survey(dir, [])), withoutRuns);
  const survey = await runs.survey(dir, ["math-1", "math-0"]);
  assert.deepEqual(names(survey), withRun);
  assert.deepEqual([survey.staying, survey.closed, survey.kept], [{}, [], { runs: 1, work: 0, objects: 2, models: 2, runner: 1, arrays: 0 }]);
  const { bytes } = survey.items.find(({ kind }) => kind === "runs") ?? { bytes: 0 };
  assert.ok(bytes > 5000 && bytes < 5600, `${bytes}`);
  assert.deepEqual(there(), before);
});

test("what is asked for and may go goes; links are cut, not followed", async () => {
  const survey = await runs.survey(dir, ["math-1"]);
  const cleared = await runs.clear(dir, ["math-1"], itemsOf(survey));
  assert.deepEqual([cleared.failed, cleared.left, cleared.removed.length], [[], 0, survey.items.length]);
  assert.deepEqual(there(), ["models/m2", "models/m3", "objects/bbb", "objects/young", "runner/v2", "runs/theirs-1"]);
  assert.equal(readFileSync(join(top, "outside/precious"), "utf8"), "keep me");
  assert.deepEqual(names(await runs.survey(dir, [])), []);
});

test("only what was said yes to goes, and only what may go then", async () => {
  const cleared = await runs.clear(dir, [], [{ kind: "objects", name: "old" }, { kind: "runs", name: "theirs-1" }, { kind: "objects", name: "bbb" }, { kind: "models", name: "m3" }, { kind: "runs", name: "../outside" }, { kind: "objects", name: "../../outside" }]);
  assert.deepEqual([cleared.removed.map(({ name }) => name), cleared.left], [["old"], 5]);
  assert.ok(existsSync(join(top, "outside/precious")) && existsSync(join(dir, "runs/theirs-1")));
  for (const name of ["../outside", "/etc", "", ".", "..", "a/b"]) await assert.rejects(runs.clear(dir, [name], []), (error) => isTrouble(error, "request"), name);
  // Somebody's start finds the data there, and with that it is wanted.
  await runs.survey(dir, ["math-1"]);
  await station.call({ verb: "have", items: [{ path: join(dir, "objects/aaa/file") }, { path: join(dir, "models/m1") }] });
  const after = await runs.clear(dir, ["math-1"], [{ kind: "objects", name: "aaa" }, { kind: "models", name: "m1" }, { kind: "runner", name: "v1" }]);
  assert.deepEqual([after.removed.map(({ name }) => name), after.left], [["v1"], 2]);
});

test("a run that has not ended there stays, and one that another run there needs", async () => {
  rmSync(join(dir, "runs/math-1/attempt-0001/exit.json"));
  const live = await runs.survey(dir, ["math-1"]);
  assert.deepEqual([names(live), live.staying], [withoutRuns, { "math-1": { why: "live" } }]);
  write(join(dir, "runs/math-1/attempt-0001/exit.json"), "{}");
  write(join(dir, "runs/theirs-1/run.json"), JSON.stringify({ start: `${dir}/runs/math-1/checkpoints/step-000002` }));
  const named = await runs.survey(dir, ["math-1"]);
  assert.deepEqual(named.staying, { "math-1": { why: "named", by: "theirs-1" } });
  assert.ok(!names(named).some((name) => /math-1|objects\/aaa|models\/m1|runner\/v1/.test(name)), names(named).join());
  assert.deepEqual((await runs.clear(dir, ["math-1"], [{ kind: "runs", name: "math-1" }])).removed, []);
});

test("a run that cannot be read may need anything that is shared", async () => {
  rmSync(join(dir, "runs/theirs-1/run.json"));
  symlinkSync(join(top, "nowhere"), join(dir, "runs/theirs-1/run.json"));
  const survey = await runs.survey(dir, ["math-1"]);
  assert.deepEqual(names(survey), ["runs/math-1 spent", "work/math-1 spent"]);
  assert.deepEqual(survey.closed, [join(dir, "runs/theirs-1/run.json")]);
});

test("links and other names below the folder are nobody's to remove", async () => {
  for (const name of ["objects/linked", "runs/linked-1"]) symlinkSync(join(top, "outside"), join(dir, name));
  for (const name of ["objects/.hidden", "objects/with blank"]) write(join(dir, name, "x"));
  rmSync(join(dir, "models"), { recursive: true });
  write(join(top, "scratch/old/weights"));
  aged(join(top, "scratch/old"));
  symlinkSync(join(top, "scratch"), join(dir, "models"));
  const survey = await runs.survey(dir, ["linked-1"]);
  assert.deepEqual(names(survey), withoutRuns.filter((name) => !name.startsWith("models")));
  await runs.clear(dir, ["linked-1"], [...itemsOf(survey), { kind: "objects", name: "linked" }, { kind: "models", name: "old" }, { kind: "runs", name: "linked-1" }]);
  assert.ok(existsSync(join(top, "scratch/old/weights")) && existsSync(join(dir, "runs/linked-1/precious")) && existsSync(join(dir, "objects/.hidden/x")));
});

test("the folder of a job array stays as long as one of its runs", async () => {
  write(join(dir, "arrays/n1/runs.json"), JSON.stringify([`${dir}/runs/math-1`, `${dir}/runs/theirs-1`]));
  write(join(dir, "arrays/n1/job.sh"), `exec python ${dir}/runner/v0/seesaw_runner/slurm_job.py --array ${dir}/arrays/n1/runs.json 1`);
  write(join(dir, "arrays/n2/runs.json"), JSON.stringify([`${dir}/runs/math-1`]));
  for (const name of ["n1", "n2"]) aged(join(dir, "arrays", name));
  const arrays = (survey: StoreSurvey): string[] => names(survey).filter((name) => /arrays|runner/.test(name));
  assert.deepEqual(arrays(await runs.survey(dir, [])), []);
  const without = await runs.survey(dir, ["math-1"]);
  assert.deepEqual([arrays(without), without.staying], [["arrays/n2 unused", "runner/v1 unused"], {}], "an array holds no run");
});

test("what a removal that was cut has left goes with the next", async () => {
  write(join(dir, "runs/math-0.77.going/run.json"), JSON.stringify({ data: "/x/objects/old" }));
  const survey = await runs.survey(dir, []);
  assert.deepEqual(names(survey), [...withoutRuns, "runs/math-0.77.going left"].sort());
  await runs.clear(dir, [], itemsOf(survey));
  assert.ok(!existsSync(join(dir, "runs/math-0.77.going")));
});
